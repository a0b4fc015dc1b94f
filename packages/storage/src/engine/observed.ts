/**
 * Conditions under which something that was read is still so: what a layer above a store adds to a
 * transaction that it decided on from a read.
 */
import type {
  CallOptions,
  Compare,
  KeyRange,
  KeyValue,
  RangeResult,
  Store,
  TxnRequest,
  TxnResult,
} from "../contract.ts";
import { fault } from "../faults.ts";
import { spanOf } from "./span.ts";

/** Pairs of a range that can be held still in one transaction. */
const maxObservedPairs = 100;
/** Conditions on one level of a transaction, and levels of them. */
const guardsPerLevel = 128;
const maxGuardLevels = 5;

/** The range only, without whatever else the object carries. */
export function keysOf(range: KeyRange): KeyRange {
  return range.end === undefined ? { key: range.key } : { key: range.key, end: range.end };
}

/** Holds while the keys of `range` are among those found, and as they were: some may be gone. One condition, whatever their number. */
export function nothingNew(range: KeyRange, found: RangeResult): Compare {
  return { ...keysOf(range), target: "mod", result: "less", operand: found.revision + 1 };
}

/** Holds while the keys of `range` are exactly as found. */
export function stillSo(range: KeyRange, found: RangeResult): Compare[] {
  if (spanOf(range).single) return [unchanged(range.key, found.kvs[0])];
  if (found.kvs.length > maxObservedPairs)
    throw fault("too_many_ops", `a condition on a range covers at most ${maxObservedPairs} keys here`);
  return [
    // Nothing was added or changed, and nothing that was there is gone.
    nothingNew(range, found),
    ...found.kvs.map((kv) => unchanged(kv.key, kv)),
  ];
}

/**
 * Does `request` if all of `guards` hold, however many there are (they are spread over nested transactions). `undefined` when
 * one does not: then nothing was done.
 */
export async function guardedTxn(
  store: Store,
  guards: readonly Compare[],
  request: TxnRequest,
  options?: CallOptions,
): Promise<TxnResult | undefined> {
  if (guards.length > guardsPerLevel * maxGuardLevels)
    throw fault("too_many_ops", "the transaction touches more keys than can be checked: split it");
  let whole = request;
  let levels = 0;
  for (let from = 0; from < guards.length; from += guardsPerLevel) {
    whole = { compare: guards.slice(from, from + guardsPerLevel), success: [{ type: "txn", ...whole }] };
    levels++;
  }
  let result = await store.txn(whole, options);
  for (; levels > 0; levels--) {
    const inner = result.results[0];
    if (!result.succeeded || inner?.type !== "txn") return undefined;
    result = inner.txn;
  }
  return result;
}

function unchanged(key: KeyRange["key"], kv: KeyValue | undefined): Compare {
  return { key, target: "mod", result: "equal", operand: kv?.modRevision ?? 0 };
}
