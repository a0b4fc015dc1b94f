/**
 * Reads and transactions under a restricted {@link EtcdAccess}.
 *
 * A write is checked against the pair it replaces, and done only if that pair is still there: the
 * caller's transaction runs inside one that compares the revisions that were checked. Lost races are
 * tried again a bounded number of times.
 */
import {
  toBytes,
  type CallOptions,
  type Compare,
  type KeyRange,
  type KeyValue,
  type Op,
  type OpResult,
  type RangeRequest,
  type RangeResult,
  type Store,
  type TxnRequest,
  type TxnResult,
} from "../contract.ts";
import { guardedTxn, keysOf, nothingNew, stillSo } from "../engine/observed.ts";
import { pagesOf } from "../engine/paging.ts";
import { compareHolds } from "../engine/evaluate.ts";
import { planRange } from "../engine/request-check.ts";
import { answerRange } from "../engine/selection.ts";
import { spanOf } from "../engine/span.ts";
import { fault } from "../faults.ts";
import type { EtcdAccess } from "./access.ts";

/** Times a checked write is tried when the checked pairs change meanwhile. */
const maxWriteAttempts = 16;
/** Pairs looked at for one filtered read. */
const maxFilteredPairs = 1_000_000;

/** A read that shows only what may be seen. */
export async function restrictedRange(
  store: Store,
  access: EtcdAccess,
  request: RangeRequest,
  options: CallOptions = {},
): Promise<RangeResult> {
  const { canRead } = access;
  if (!canRead) return store.range(request, options);
  const { start, end } = spanOf(request);
  let newest = 0;
  let seen = 0;
  const kvs: KeyValue[] = [];
  for await (const page of pagesOf(store, { key: start, end: end ?? "\0" }, request.revision, options)) {
    ({ newest } = page);
    for (const kv of page.kvs) if (canRead(kv)) kvs.push(kv);
    seen += page.kvs.length;
    if (seen > maxFilteredPairs)
      throw fault(
        "overloaded",
        `a filtered read looks at no more than ${maxFilteredPairs} keys: ask for a smaller range`,
      );
  }
  return filtered(request, kvs, newest);
}

/** Applies order, bounds, limit and projections of a request to what may be seen. */
function filtered(request: RangeRequest, kvs: readonly KeyValue[], revision: number): RangeResult {
  const plan = planRange(request);
  const ordered = request.sort?.by === "key" && request.sort.descending === true ? kvs.toReversed() : kvs;
  const limit = request.limit ?? 0;
  const cut = plan.direct && limit > 0 ? ordered.slice(0, limit) : ordered;
  return answerRange(plan, { kvs: cut, count: kvs.length }, revision);
}

/** A transaction whose writes are checked and whose answers are filtered. */
export async function restrictedTxn(
  store: Store,
  access: EtcdAccess,
  request: TxnRequest,
  options: CallOptions = {},
): Promise<TxnResult> {
  if (!access.checkWrite && !access.canRead && !access.checkLease) return store.txn(request, options);
  const touched = collect(request);
  for (let attempt = 0; attempt < maxWriteAttempts; attempt++) {
    const { guards, decided } = await inspect(store, access, touched, options);
    const result = await guardedTxn(store, guards, widen(access, request, decided), options);
    if (result) return project(access, request, result);
  }
  throw fault("overloaded", "the keys kept changing while the write was checked: try again");
}

interface Touched {
  readonly puts: {
    readonly key: Buffer;
    readonly value: Buffer;
    readonly lease: bigint;
    readonly keepValue: boolean;
  }[];
  readonly deletes: KeyRange[];
  readonly compares: Compare[];
}

function collect(request: TxnRequest, into: Touched = { puts: [], deletes: [], compares: [] }): Touched {
  into.compares.push(...(request.compare ?? []));
  for (const op of [...(request.success ?? []), ...(request.failure ?? [])]) {
    if (op.type === "put")
      into.puts.push({
        key: toBytes(op.key),
        value: toBytes(op.value),
        lease: op.lease ?? 0n,
        keepValue: op.ignoreValue === true,
      });
    else if (op.type === "delete") into.deletes.push(op);
    else if (op.type === "txn") collect(op, into);
  }
  return into;
}

interface Inspected {
  /** What must still be so when the transaction runs. */
  readonly guards: Compare[];
  /** Conditions on keys that may not be read, and whether they hold as if those keys were absent. */
  readonly decided: ReadonlyMap<Compare, boolean>;
}

/** A condition that never holds: no version is below zero. */
const never: Compare = { key: Buffer.from([0]), target: "version", result: "less", operand: 0 };

/** Checks everything the transaction touches; answers the conditions under which the check still holds. */
async function inspect(
  store: Store,
  access: EtcdAccess,
  touched: Touched,
  options: CallOptions,
): Promise<Inspected> {
  const guards: Compare[] = [];
  const decided = new Map<Compare, boolean>();
  const { canRead } = access;
  for (const compare of canRead ? touched.compares : []) {
    const found = await store.range(keysOf(compare), options);
    const visible = found.kvs.filter((kv) => canRead?.(kv));
    if (visible.length === found.kvs.length) {
      // A key that appears meanwhile must not be compared unseen.
      guards.push(...stillSo(compare, found));
      continue;
    }
    // What may not be read does not exist: the condition is decided here, for the state the guards hold on to.
    decided.set(compare, compareHolds(compare, visible));
    guards.push(...stillSo(compare, found));
  }
  for (const put of touched.puts) {
    const found = await store.range({ key: put.key }, options);
    const previous = found.kvs[0];
    const value = put.keepValue && previous ? previous.value : put.value;
    if (put.lease !== 0n) await access.checkLease?.("use", put.lease);
    await access.checkWrite?.({ key: put.key, value, previous, lease: put.lease });
    guards.push(...stillSo({ key: put.key }, found));
  }
  for (const range of touched.deletes) {
    const found = await store.range(keysOf(range), options);
    for (const previous of found.kvs)
      await access.checkWrite?.({ key: previous.key, value: undefined, previous, lease: 0n });
    // A pair that was checked and is gone meanwhile needs not be deleted any more.
    guards.push(nothingNew(range, found));
  }
  return { guards, decided };
}

/** Reads inside are made whole, so that they can be filtered and cut afterwards. */
function widen(access: EtcdAccess, request: TxnRequest, decided: ReadonlyMap<Compare, boolean>): TxnRequest {
  if (!access.canRead) return request;
  const op = (each: Op): Op => {
    if (each.type === "txn") return { type: "txn", ...widen(access, each, decided) };
    if (each.type === "range") return { type: "range", ...keysOf(each), revision: each.revision ?? 0 };
    return each;
  };
  return {
    compare: (request.compare ?? []).flatMap((compare) => {
      const holds = decided.get(compare);
      return holds === undefined ? [compare] : holds ? [] : [never];
    }),
    success: (request.success ?? []).map(op),
    failure: (request.failure ?? []).map(op),
  };
}

function project(access: EtcdAccess, request: TxnRequest, result: TxnResult): TxnResult {
  const { canRead } = access;
  if (!canRead) return result;
  const ops = (result.succeeded ? request.success : request.failure) ?? [];
  const results = result.results.map((each, i): OpResult => {
    const op = ops[i];
    if (each.type === "range" && op?.type === "range")
      return { type: "range", range: filtered(op, each.range.kvs.filter(canRead), each.range.revision) };
    if (each.type === "txn" && op?.type === "txn") return { type: "txn", txn: project(access, op, each.txn) };
    if (each.type === "put" && each.prev && !canRead(each.prev)) return { type: "put" };
    if (each.type === "delete") return { ...each, prev: each.prev.filter(canRead) };
    return each;
  });
  return { ...result, results };
}
