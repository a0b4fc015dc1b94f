/**
 * What a driver is: a place that keeps a log of changes, the newest pair of every key, and leases.
 *
 * The engine above it decides (conditions, revisions, watches, expiry, when to compact); a backend
 * stores and finds. It never interprets a transaction. `write` is the only way to change anything:
 * it gives the engine a session that sees the newest state, holds the exclusive right to write, and
 * either makes everything durable or nothing.
 */
import type { CallOptions, KeyValue, LeaseId, Revision } from "../contract.ts";
import type { Span } from "./span.ts";

/** One entry of the log. */
export interface Change {
  readonly type: "put" | "delete";
  /** For a delete: the key, an empty value and the revision of the deletion as `modRevision`. */
  readonly kv: KeyValue;
  /** The pair it replaced. Absent on creation, and on reading the log when not asked for or compacted. */
  readonly prev?: KeyValue;
}

/** Which pairs to find, in key order. */
export interface Scan {
  readonly span: Span;
  /** State after this revision; 0 for the newest. */
  readonly revision: Revision;
  /** At most so many pairs; 0: all. */
  readonly limit: number;
  /** From the greatest key down. */
  readonly descending?: boolean;
  /** Values may be left empty. */
  readonly keysOnly?: boolean;
  /** Only `count` matters. */
  readonly countOnly?: boolean;
  /** `count` may be the number of pairs found: nothing beyond the limit need be looked at. */
  readonly uncounted?: boolean;
}

/** Pairs found. */
export interface Scanned {
  readonly kvs: readonly KeyValue[];
  /** Pairs in the span, whatever the limit; those found when the scan was `uncounted`. */
  readonly count: number;
}

/** A lease as stored. */
export interface LeaseRecord {
  readonly id: LeaseId;
  /** Seconds asked for. */
  readonly ttl: number;
  /** Milliseconds left; not above `ttl`, at or below 0 when due. */
  readonly remainingMs: number;
}

/** The newest state, and the right to change it. Valid only inside `write`. */
export interface Session {
  readonly revision: Revision;
  readonly compactRevision: Revision;
  get(key: Buffer): KeyValue | undefined;
  /** Sees changes applied before. */
  scan(scan: Scan): Scanned;
  /** Whether there is such a lease. */
  hasLease(id: LeaseId): boolean;
  /** Keys bound to a lease, in key order. */
  leaseKeys(id: LeaseId): readonly Buffer[];
  /** Applies one transaction's changes, all of revision `revision + 1`, and makes that the newest. */
  apply(changes: readonly Change[]): void;
  /** Grants a lease or starts its time again. */
  putLease(id: LeaseId, ttl: number): void;
  dropLease(id: LeaseId): void;
  /** The lease with its stored time to live. */
  lease(id: LeaseId): LeaseRecord | undefined;
}

/** What a group of writes will look at, for backends that must fetch before they decide. */
export interface Needs {
  readonly scans: readonly Scan[];
  readonly leases: readonly LeaseId[];
  /** Leases whose keys are looked at, too. */
  readonly leaseKeys: readonly LeaseId[];
}

/** Where a store stands. */
export interface Position {
  readonly revision: Revision;
  readonly compactRevision: Revision;
}

/** A page of the log. */
export interface LogPage {
  readonly changes: readonly Change[];
  /** Every change of the span up to and including this revision is in this page or before it. */
  readonly through: Revision;
}

/** Bytes and keys. */
export interface BackendStatus {
  readonly sizeBytes: number;
  readonly sizeInUseBytes: number;
  readonly keys: number;
}

/** Everything that a restored store starts with. */
export interface Contents {
  /** Pairs in key order, with their own revisions. */
  readonly pairs: AsyncIterable<readonly KeyValue[]>;
  readonly leases: readonly {
    readonly id: LeaseId;
    readonly ttl: number;
    readonly remainingSeconds: number;
  }[];
  /** The store's revision afterwards; history below it is gone. Not below any pair's. */
  readonly revision: Revision;
}

/** A storage driver under the engine. Failures are `CodedError`s made by `faults.ts`. */
export interface Backend {
  readonly driver: string;
  /** The newest durable position, seeing every acknowledged write of every process. */
  position(options?: CallOptions): Promise<Position>;
  /**
   * The position this process knows without asking. Equal to `position()` when {@link exclusive}.
   */
  readonly known: Position;
  /** This process is the only writer: what it knows is what is. */
  readonly exclusive: boolean;
  /**
   * Finds pairs; the state is checked against compaction inside the same snapshot. Fails with
   * `gone` below the compaction mark and `invalid_argument` in the future.
   */
  scan(scan: Scan, options?: CallOptions): Promise<Scanned & { readonly at: Revision }>;
  /** Runs `work` as one atomic, durable step. Never called again before it settled. */
  write(needs: Needs, work: (session: Session) => void): Promise<void>;
  /** Changes from `from` on, whole revisions only, about `limit` entries looked at. */
  log(request: {
    readonly from: Revision;
    readonly span: Span;
    readonly prevKv: boolean;
    readonly limit: number;
  }): Promise<LogPage>;
  /** Calls `listener` when `known` has moved on, with the changes when they are at hand. */
  onCommit(listener: (changes: readonly Change[] | undefined) => void): void;
  /** Calls `listener` when commits that were handed on may not have been kept, and `known` is what is. Absent: that cannot happen. */
  onLoss?(listener: () => void): void;
  /** Moves the compaction mark, durably. The caller checked the bounds; a lower mark is a no-op. */
  setCompact(revision: Revision): Promise<void>;
  /** Removes some history below the mark, within about `budgetMs`; `true` when there is more to do. */
  sweep(budgetMs: number): Promise<boolean>;
  /** Gives back what removal alone leaves behind (logs of the database's own). Absent: nothing is left. */
  shrink?(): Promise<void>;
  lease(id: LeaseId): Promise<LeaseRecord | undefined>;
  leases(): Promise<readonly LeaseId[]>;
  leaseKeys(id: LeaseId): Promise<readonly Buffer[]>;
  /** Leases that are due, soonest first, and milliseconds until the next one when known. */
  due(limit: number): Promise<{ readonly ids: readonly LeaseId[]; readonly nextMs: number | undefined }>;
  status(): Promise<BackendStatus>;
  /** Fills an empty store, all or nothing. The caller checked that it is empty and that nobody else uses it. */
  load(contents: Contents): Promise<void>;
  /** Looks for damage; each finding names what is wrong. */
  check(): AsyncIterable<string>;
  close(): Promise<void>;
}
