/**
 * One transaction against the newest state, etcd's way: first every condition on the whole path is
 * decided on the state before the transaction, then everything that can fail is checked, then the
 * operations run in order and cannot fail any more.
 *
 * Pure but for the session it reads and applies to; knows nothing of queues, files or watches.
 */
import { assert } from "@kontinuum/std";
import {
  toBytes,
  type Compare,
  type KeyValue,
  type OpResult,
  type Revision,
  type TxnResult,
} from "../contract.ts";
import { compacted, fault, futureRevision, leaseNotFound } from "../faults.ts";
import type { Change, Scan, Scanned, Session } from "./backend.ts";
import type { PlannedCompare, PlannedOp, PlannedTxn } from "./request-check.ts";
import { answerRange } from "./selection.ts";
import { inSpan, pointSpan, type Span } from "./span.ts";

const empty = Buffer.alloc(0);

/** Evaluates and applies. Throws before anything was applied. */
export function evaluate(session: Session, txn: PlannedTxn): TxnResult {
  const path = choose(session, txn);
  check(session, path);
  const stage = new Stage(session);
  const running = run(stage, path);
  if (stage.changes.length > 0) session.apply(stage.changes);
  return settle(running, session.revision);
}

/** A transaction with its branch chosen. */
interface Path {
  readonly succeeded: boolean;
  readonly steps: readonly Step[];
}
type Step = Exclude<PlannedOp, { type: "txn" }> | { readonly type: "txn"; readonly path: Path };

function choose(session: Session, txn: PlannedTxn): Path {
  const succeeded = txn.compare.every((c) => holds(session, c));
  const steps = (succeeded ? txn.success : txn.failure).map((op): Step =>
    op.type === "txn" ? { type: "txn", path: choose(session, op.txn) } : op,
  );
  return { succeeded, steps };
}

function holds(session: Session, { span, compare }: PlannedCompare): boolean {
  if (span.single) return holdsFor(session.get(span.start), compare);
  return compareHolds(compare, session.scan({ span, revision: 0, limit: 0 }).kvs);
}

/** Whether a condition holds for the pairs that its range has. */
export function compareHolds(compare: Compare, kvs: readonly KeyValue[]): boolean {
  // A range without keys: etcd compares against an absent key, unless the value is asked for.
  if (kvs.length === 0) return holdsFor(undefined, compare);
  return kvs.every((kv) => holdsFor(kv, compare));
}

function holdsFor(kv: KeyValue | undefined, compare: Compare): boolean {
  let difference: number;
  switch (compare.target) {
    case "value":
      if (!kv) return false;
      difference = kv.value.compare(toBytes(compare.operand));
      break;
    case "lease": {
      const lease = kv?.lease ?? 0n;
      difference = lease < compare.operand ? -1 : lease > compare.operand ? 1 : 0;
      break;
    }
    case "mod":
      difference = (kv?.modRevision ?? 0) - compare.operand;
      break;
    case "create":
      difference = (kv?.createRevision ?? 0) - compare.operand;
      break;
    case "version":
      difference = (kv?.version ?? 0) - compare.operand;
      break;
  }
  switch (compare.result) {
    case "equal":
      return difference === 0;
    case "not_equal":
      return difference !== 0;
    case "greater":
      return difference > 0;
    case "less":
      return difference < 0;
  }
}

/** Everything that can fail: first the puts of the whole path, then its reads, so that the same failure is named as by etcd. */
function check(session: Session, path: Path): void {
  const steps = stepsOf(path);
  for (const step of steps) {
    if (step.type !== "put") continue;
    const { ignoreValue, ignoreLease, lease = 0n } = step.op;
    if ((ignoreValue === true || ignoreLease === true) && !session.get(step.key))
      throw fault("key_not_found", "a put that keeps value or lease needs an existing key");
    if (lease !== 0n && !session.hasLease(lease)) throw leaseNotFound(lease);
  }
  for (const step of steps) if (step.type === "range") checkRevision(session, step.range.scan.revision);
}

/** The operations of a path in their order. */
function stepsOf({ steps }: Path): readonly Exclude<Step, { type: "txn" }>[] {
  return steps.flatMap((step) => (step.type === "txn" ? stepsOf(step.path) : [step]));
}

function checkRevision(session: Session, revision: Revision): void {
  if (revision > session.revision) throw futureRevision(revision, session.revision);
  if (revision > 0 && revision < session.compactRevision) throw compacted(revision, session.compactRevision);
}

/** Changes of one transaction before they are applied, and reads that see them. */
class Stage {
  readonly changes: Change[] = [];
  readonly session: Session;
  readonly #byKey = new Map<string, Change>();

  constructor(session: Session) {
    this.session = session;
  }

  get revision(): Revision {
    return this.session.revision + 1;
  }

  get(key: Buffer): KeyValue | undefined {
    const staged = this.#byKey.get(key.toString("latin1"));
    if (!staged) return this.session.get(key);
    return staged.type === "put" ? staged.kv : undefined;
  }

  add(change: Change): void {
    const name = change.kv.key.toString("latin1");
    assert(!this.#byKey.has(name), "a transaction changes a key once");
    this.#byKey.set(name, change);
    this.changes.push(change);
  }

  scan(scan: Scan): Scanned {
    if (this.changes.length === 0 || (scan.revision > 0 && scan.revision <= this.session.revision))
      return this.session.scan(scan);
    if (!this.changes.some((change) => inSpan(scan.span, change.kv.key))) return this.session.scan(scan);
    return this.#merged(scan);
  }

  #merged(scan: Scan): Scanned {
    const below = this.session.scan({
      span: scan.span,
      revision: 0,
      limit: 0,
      keysOnly: scan.keysOnly === true,
    });
    const kvs = below.kvs.filter((kv) => !this.#byKey.has(kv.key.toString("latin1")));
    for (const change of this.changes)
      if (change.type === "put" && inSpan(scan.span, change.kv.key)) kvs.push(change.kv);
    kvs.sort((a, b) => a.key.compare(b.key));
    if (scan.descending === true) kvs.reverse();
    return { kvs: scan.limit > 0 ? kvs.slice(0, scan.limit) : kvs, count: kvs.length };
  }

  list(span: Span): readonly KeyValue[] {
    if (!span.single) return this.scan({ span, revision: 0, limit: 0 }).kvs;
    const kv = this.get(span.start);
    return kv ? [kv] : [];
  }
}

interface Running {
  readonly succeeded: boolean;
  readonly results: readonly OpResult[];
}

function run(stage: Stage, path: Path): Running {
  return { succeeded: path.succeeded, results: path.steps.map((step) => runStep(stage, step)) };
}

function runStep(stage: Stage, step: Step): OpResult {
  switch (step.type) {
    case "put": {
      const prev = stage.get(step.key);
      const { ignoreValue, ignoreLease, lease = 0n, prevKv } = step.op;
      const kv: KeyValue = {
        key: step.key,
        value: ignoreValue === true && prev ? prev.value : step.value,
        createRevision: prev?.createRevision ?? stage.revision,
        modRevision: stage.revision,
        version: (prev?.version ?? 0) + 1,
        lease: ignoreLease === true && prev ? prev.lease : lease,
      };
      stage.add({ type: "put", kv, ...(prev ? { prev } : {}) });
      return { type: "put", ...(prevKv === true && prev ? { prev } : {}) };
    }
    case "delete": {
      const removed = stage.list(step.span);
      for (const prev of removed) stage.add(deletion(prev, stage.revision));
      return { type: "delete", deleted: removed.length, prev: step.op.prevKv === true ? removed : [] };
    }
    case "range": {
      const found = stage.scan(step.range.scan);
      const revision = stage.session.revision + (stage.changes.length > 0 ? 1 : 0);
      return { type: "range", range: answerRange(step.range, found, revision) };
    }
    case "txn": {
      const inner = run(stage, step.path);
      return { type: "txn", txn: { ...inner, revision: 0 } };
    }
  }
}

/** The log entry that ends `prev`. */
export function deletion(prev: KeyValue, revision: Revision): Change {
  const kv = { key: prev.key, value: empty, createRevision: 0, modRevision: revision, version: 0, lease: 0n };
  return { type: "delete", kv, prev };
}

/** Deletes the keys of a lease in one revision and drops it. */
export function revoke(session: Session, id: bigint): readonly Change[] {
  const changes: Change[] = [];
  for (const key of session.leaseKeys(id)) {
    const prev = session.get(pointSpan(key).start);
    if (prev) changes.push(deletion(prev, session.revision + 1));
  }
  if (changes.length > 0) session.apply(changes);
  session.dropLease(id);
  return changes;
}

/** Nested transactions answer with the revision of the whole. */
function settle(running: Running, revision: Revision): TxnResult {
  return {
    succeeded: running.succeeded,
    revision,
    results: running.results.map((r) =>
      r.type === "txn" ? { type: "txn", txn: settle(r.txn, revision) } : r,
    ),
  };
}
