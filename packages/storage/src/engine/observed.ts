/**
 * Conditions under which something that was read is still so: what a layer above a store adds to a
 * transaction that it decided on from a read.
 */
import type { Compare, KeyRange, KeyValue, RangeResult } from "../contract.ts";
import { fault } from "../faults.ts";
import { spanOf } from "./span.ts";

/** Pairs of a range that can be held still in one transaction. */
const maxObservedPairs = 100;

/** The range only, without whatever else the object carries. */
export function keysOf(range: KeyRange): KeyRange {
  return range.end === undefined ? { key: range.key } : { key: range.key, end: range.end };
}

/** Holds while the keys of `range` are exactly as found. */
export function stillSo(range: KeyRange, found: RangeResult): Compare[] {
  if (spanOf(range).single) return [unchanged(range.key, found.kvs[0])];
  if (found.kvs.length > maxObservedPairs)
    throw fault(
      "too_many_ops",
      `a condition or delete on a range covers at most ${maxObservedPairs} keys here`,
    );
  return [
    // Nothing was added or changed, and nothing that was there is gone.
    { ...keysOf(range), target: "mod", result: "less", operand: found.revision + 1 },
    ...found.kvs.map((kv) => unchanged(kv.key, kv)),
  ];
}

function unchanged(key: KeyRange["key"], kv: KeyValue | undefined): Compare {
  return { key, target: "mod", result: "equal", operand: kv?.modRevision ?? 0 };
}
