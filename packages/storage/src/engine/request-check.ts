/**
 * Turns a request into a checked plan, before anything is queued: bytes resolved, spans normalised,
 * and everything refused that can be refused without looking at data.
 *
 * The rules and their order are etcd's (`checkTxnRequest` in its public documentation of errors): no
 * empty key, at most 128 operations on each level, a key put at most once on a path.
 */
import {
  toBytes,
  type Compare,
  type DeleteOp,
  type LeaseId,
  type PutOp,
  type RangeRequest,
  type TxnRequest,
} from "../contract.ts";
import { fault } from "../faults.ts";
import type { Needs, Scan } from "./backend.ts";
import { inSpan, pointSpan, spanOf, type Span } from "./span.ts";

/** Operations on one level of a transaction; etcd's default. */
const maxTxnOps = 128;
/** Bytes of keys and values in one request; etcd's default, 1.5 MiB. */
export const maxRequestBytes = 1536 * 1024;
/** Transactions inside transactions. */
const maxTxnDepth = 8;

/** A checked operation. */
export type PlannedOp =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Buffer; readonly op: PutOp }
  | { readonly type: "delete"; readonly span: Span; readonly op: DeleteOp }
  | { readonly type: "range"; readonly range: PlannedRange }
  | { readonly type: "txn"; readonly txn: PlannedTxn };

/** A checked condition. */
export interface PlannedCompare {
  readonly span: Span;
  readonly compare: Compare;
}

/** A checked transaction. */
export interface PlannedTxn {
  readonly compare: readonly PlannedCompare[];
  readonly success: readonly PlannedOp[];
  readonly failure: readonly PlannedOp[];
  /** Whether any branch could change something. */
  readonly writes: boolean;
  readonly bytes: number;
}

/** A checked read. */
export interface PlannedRange {
  readonly span: Span;
  readonly request: RangeRequest;
  /** What the backend is asked; order and filters beyond it are applied to its answer. */
  readonly scan: Scan;
  /** The scan answers the request as it is. */
  readonly direct: boolean;
  /** The scan looks for one pair more than is wanted, to know whether there are more, and counts nothing. */
  readonly uncounted: boolean;
}

/** Checks a read. */
export function planRange(request: RangeRequest): PlannedRange {
  const span = spanOf(request);
  const { revision = 0, limit = 0, sort } = request;
  if (!Number.isSafeInteger(revision) || revision < 0)
    throw fault("invalid_range", `revision ${revision} is not a whole number of 0 or more`);
  if (!Number.isSafeInteger(limit) || limit < 0)
    throw fault("invalid_range", `limit ${limit} is not a whole number of 0 or more`);
  const bounds = [
    request.minModRevision,
    request.maxModRevision,
    request.minCreateRevision,
    request.maxCreateRevision,
  ];
  const filtered = bounds.some((bound) => bound !== undefined && bound !== 0);
  const direct = !filtered && (sort === undefined || sort.by === "key");
  const byValue = sort?.by === "value";
  const uncounted = request.uncounted === true && direct && limit > 0 && request.countOnly !== true;
  const scan: Scan = {
    span,
    revision,
    limit: direct ? limit + (uncounted ? 1 : 0) : 0,
    descending: direct && sort?.descending === true,
    keysOnly: request.keysOnly === true && !byValue,
    countOnly: request.countOnly === true,
    uncounted,
  };
  return { span, request, scan, direct, uncounted };
}

/** Checks a transaction. */
export function planTxn(request: TxnRequest): PlannedTxn {
  const txn = plan(request, 0);
  if (txn.bytes > maxRequestBytes)
    throw fault(
      "request_too_large",
      `the request holds ${txn.bytes} bytes of keys and values; the limit is ${maxRequestBytes}`,
    );
  checkOverlap(txn.success);
  checkOverlap(txn.failure);
  return txn;
}

function plan(request: TxnRequest, depth: number): PlannedTxn {
  const { compare = [], success = [], failure = [] } = request;
  if (depth > maxTxnDepth || Math.max(compare.length, success.length, failure.length) > maxTxnOps)
    throw fault(
      "too_many_ops",
      `a transaction holds at most ${maxTxnOps} operations, ${maxTxnDepth} levels deep`,
    );
  let bytes = 0;
  let writes = false;
  const compares = compare.map((c) => {
    const span = spanOf(c);
    bytes += span.start.length + (c.target === "value" ? toBytes(c.operand).length : 0);
    return { span, compare: c };
  });
  const planOp = (op: NonNullable<TxnRequest["success"]>[number]): PlannedOp => {
    switch (op.type) {
      case "put": {
        const put = planPut(op);
        writes = true;
        bytes += put.key.length + put.value.length;
        return put;
      }
      case "delete": {
        const span = spanOf(op);
        writes = true;
        bytes += span.start.length;
        return { type: "delete", span, op };
      }
      case "range":
        return { type: "range", range: planRange(op) };
      case "txn": {
        const txn = plan(op, depth + 1);
        writes ||= txn.writes;
        bytes += txn.bytes;
        return { type: "txn", txn };
      }
    }
  };
  return { compare: compares, success: success.map(planOp), failure: failure.map(planOp), writes, bytes };
}

function planPut(op: PutOp): PlannedOp & { type: "put" } {
  const { key, value } = ownBytes(toBytes(op.key), toBytes(op.value));
  if (key.length === 0) throw fault("empty_key", "a key must not be empty");
  if (op.ignoreValue === true && value.length > 0)
    throw fault("value_provided", "a value was given together with ignoreValue");
  if (op.ignoreLease === true && (op.lease ?? 0n) !== 0n)
    throw fault("lease_provided", "a lease was given together with ignoreLease");
  return { type: "put", key, value, op };
}

/**
 * Key and value in memory of their own: the caller may reuse its buffers, and a slice of a network chunk or of
 * Node's shared pool would keep all of that alive as long as the pair.
 */
function ownBytes(key: Buffer, value: Buffer): { key: Buffer; value: Buffer } {
  const bytes = Buffer.allocUnsafeSlow(key.length + value.length);
  key.copy(bytes);
  value.copy(bytes, key.length);
  return { key: bytes.subarray(0, key.length), value: bytes.subarray(key.length) };
}

/**
 * Refuses paths that would put a key twice, or put a key that a delete on the same path covers.
 * Branches of a nested transaction exclude each other, so each is checked against what surrounds it.
 */
function checkOverlap(ops: readonly PlannedOp[]): { puts: Set<string>; deletes: Span[] } {
  const puts = new Set<string>();
  const deletes: Span[] = [];
  const duplicate = (): never => {
    throw fault("duplicate_key", "a transaction changes one key twice");
  };
  for (const op of ops) if (op.type === "delete") deletes.push(op.span);
  for (const op of ops) {
    if (op.type !== "txn") continue;
    const yes = checkOverlap(op.txn.success);
    const no = checkOverlap(op.txn.failure);
    const inner = new Set([...yes.puts, ...no.puts]);
    for (const key of inner) {
      if (puts.has(key) || deletes.some((span) => inSpan(span, Buffer.from(key, "latin1")))) duplicate();
    }
    for (const key of inner) puts.add(key);
    const innerDeletes = [...yes.deletes, ...no.deletes];
    // Earlier siblings' puts against this sibling's deletes: only keys from outside this sibling count.
    for (const key of puts)
      if (!inner.has(key) && innerDeletes.some((span) => inSpan(span, Buffer.from(key, "latin1"))))
        duplicate();
    deletes.push(...innerDeletes);
  }
  for (const op of ops) {
    if (op.type !== "put") continue;
    const key = op.key.toString("latin1");
    if (puts.has(key) || deletes.some((span) => inSpan(span, op.key))) duplicate();
    puts.add(key);
  }
  return { puts, deletes };
}

/** Everything a transaction may look at, on any path. */
export function needsOf(txn: PlannedTxn): Needs {
  const scans: Scan[] = [];
  const leases: LeaseId[] = [];
  const visit = (t: PlannedTxn): void => {
    for (const c of t.compare) scans.push({ span: c.span, revision: 0, limit: 0 });
    for (const op of [...t.success, ...t.failure]) {
      if (op.type === "put") {
        scans.push({ span: pointSpan(op.key), revision: 0, limit: 0 });
        if (op.op.lease !== undefined && op.op.lease !== 0n) leases.push(op.op.lease);
      } else if (op.type === "delete") scans.push({ span: op.span, revision: 0, limit: 0 });
      else if (op.type === "range") scans.push(op.range.scan);
      else visit(op.txn);
    }
  };
  visit(txn);
  return { scans, leases, leaseKeys: [] };
}
