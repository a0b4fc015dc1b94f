/**
 * The part of a read that does not depend on storage: bounds on revisions, order by something other
 * than the key, the limit, and what the answer looks like.
 *
 * Order of steps is etcd's: filter by revisions, sort, cut at the limit. `count` is of the span,
 * before all of them.
 */
import type { KeyValue, RangeResult, Revision } from "../contract.ts";
import type { Scanned } from "./backend.ts";
import type { PlannedRange } from "./request-check.ts";

const empty = Buffer.alloc(0);

/** Makes the answer to `plan` from what the backend found. */
export function answerRange(plan: PlannedRange, found: Scanned, revision: Revision): RangeResult {
  const { request } = plan;
  if (request.countOnly === true) return { revision, kvs: [], count: found.count, more: false };
  if (plan.direct) {
    const kvs = plan.uncounted ? found.kvs.slice(0, request.limit) : found.kvs;
    return { revision, kvs: strip(plan, kvs), count: found.count, more: kvs.length < found.count };
  }
  const kept = found.kvs.filter(
    (kv) =>
      above(kv.modRevision, request.minModRevision) &&
      below(kv.modRevision, request.maxModRevision) &&
      above(kv.createRevision, request.minCreateRevision) &&
      below(kv.createRevision, request.maxCreateRevision),
  );
  const sorted = request.sort ? sortBy(kept, request.sort.by, request.sort.descending === true) : kept;
  const limit = request.limit ?? 0;
  const cut = limit > 0 && sorted.length > limit ? sorted.slice(0, limit) : sorted;
  return { revision, kvs: strip(plan, cut), count: found.count, more: cut.length < sorted.length };
}

function strip(plan: PlannedRange, kvs: readonly KeyValue[]): readonly KeyValue[] {
  if (plan.request.keysOnly !== true) return kvs;
  return kvs.map((kv) => (kv.value.length === 0 ? kv : { ...kv, value: empty }));
}

function above(value: number, bound: number | undefined): boolean {
  return bound === undefined || bound === 0 || value >= bound;
}

function below(value: number, bound: number | undefined): boolean {
  return bound === undefined || bound === 0 || value <= bound;
}

type SortBy = NonNullable<PlannedRange["request"]["sort"]>["by"];

const order: Record<SortBy, (a: KeyValue, b: KeyValue) => number> = {
  key: (a, b) => a.key.compare(b.key),
  version: (a, b) => a.version - b.version,
  create: (a, b) => a.createRevision - b.createRevision,
  mod: (a, b) => a.modRevision - b.modRevision,
  value: (a, b) => a.value.compare(b.value),
};

function sortBy(kvs: readonly KeyValue[], by: SortBy, descending: boolean): KeyValue[] {
  const compare = order[by];
  // Array.prototype.sort is stable: equal elements stay in key order either way.
  return [...kvs].sort(descending ? (a, b) => compare(b, a) : compare);
}
