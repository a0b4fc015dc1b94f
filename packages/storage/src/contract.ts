/**
 * The storage contract: a revisioned key-value store with etcd's semantics.
 *
 * - **Keys and values are bytes.** Keys are ordered byte by byte. A string given where bytes are
 *   expected means its UTF-8 bytes.
 * - **One global revision.** An empty store is at revision 1. Every transaction that changes
 *   something raises it by exactly one, whatever the number of its operations; its events carry
 *   that revision, in the order of the operations. A transaction that changes nothing does not.
 * - **Per key**: `createRevision` (revision of its creation), `modRevision` (of its last change) and
 *   `version` (1 on creation, plus one per change). Deleting ends the generation: a later put starts
 *   again at version 1.
 * - **Reads** are linearizable: a read that starts after a write was acknowledged sees it. A read at a
 *   revision sees exactly the state after that revision; a future revision fails with
 *   `invalid_argument` (etcd's "future revision"), a compacted one with `gone`.
 * - **Watches** deliver every event from `startRevision` on, each once, in revision order, never half a
 *   revision; a compacted start is refused before the first event. Progress says "everything up to R
 *   was delivered" and comes from the cursor that delivers.
 * - **Leases** bind keys to a time to live. Expiry is an ordinary transaction that deletes the keys.
 * - **Durability**: an acknowledged write survives a crash of the process and, for drivers on a disk,
 *   loss of power. Events are sent only for durable writes.
 *
 * Source of the semantics: etcd v3 API guarantees and `etcdserverpb` (public documentation).
 */

/** Bytes, or a string that stands for its UTF-8 bytes. */
export type BytesLike = string | Uint8Array;

/** A revision: a positive safe integer. */
export type Revision = number;

/** A lease id: a non-zero signed 64-bit integer. */
export type LeaseId = bigint;

/** A key with its value and the revisions that made it. Buffers are shared: never change them. */
export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
  readonly version: number;
  /** The lease the key is bound to; 0n for none. */
  readonly lease: LeaseId;
}

/** Which keys: one key, or a half-open interval. */
export interface KeyRange {
  readonly key: BytesLike;
  /**
   * Absent: exactly `key`. Otherwise every key in `[key, end)`; the single byte 0 as `end` means "to the
   * end of the key space" (etcd's `range_end` convention). See {@link prefixRange}.
   */
  readonly end?: BytesLike;
}

/** A read of a range at one revision. */
export interface RangeRequest extends KeyRange {
  /** State after this revision. Absent or 0: the newest. */
  readonly revision?: Revision;
  /** At most so many pairs; 0 or absent: all. */
  readonly limit?: number;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
  /** With a limit: spare the walk over what follows it. `count` is then only a lower bound; `more` still tells. */
  readonly uncounted?: boolean;
  /** Default: by key, ascending. */
  readonly sort?: {
    readonly by: "key" | "version" | "create" | "mod" | "value";
    readonly descending?: boolean;
  };
  /** Inclusive bounds on revisions, 0 or absent for none. They filter pairs, not `count`. */
  readonly minModRevision?: Revision;
  readonly maxModRevision?: Revision;
  readonly minCreateRevision?: Revision;
  readonly maxCreateRevision?: Revision;
}

/** The answer to a {@link RangeRequest}. */
export interface RangeResult {
  /** The store's revision when the read was made: where a watch may continue (plus one). */
  readonly revision: Revision;
  readonly kvs: readonly KeyValue[];
  /** Pairs in the range at that revision, regardless of `limit`; a lower bound of it when `uncounted` was asked for. */
  readonly count: number;
  /** More pairs exist after the last returned one. */
  readonly more: boolean;
}

/** A condition of a transaction, on one key (or on each existing key of a range). */
export type Compare = KeyRange & {
  readonly result: "equal" | "greater" | "less" | "not_equal";
} & (
    | { readonly target: "mod" | "create" | "version"; readonly operand: number }
    | { readonly target: "lease"; readonly operand: LeaseId }
    | { readonly target: "value"; readonly operand: BytesLike }
  );

/** Writes `value`; the key's lease is replaced by `lease` (0n or absent: none). */
export interface PutOp {
  readonly type: "put";
  readonly key: BytesLike;
  readonly value: BytesLike;
  readonly lease?: LeaseId;
  readonly prevKv?: boolean;
  /** Keep the present value (fails with `invalid_argument` when the key does not exist). */
  readonly ignoreValue?: boolean;
  /** Keep the present lease (fails with `invalid_argument` when the key does not exist). */
  readonly ignoreLease?: boolean;
}

/** Deletes every key of the range. */
export interface DeleteOp extends KeyRange {
  readonly type: "delete";
  readonly prevKv?: boolean;
}

/** Reads inside the transaction: sees the operations before it. */
export interface RangeOp extends RangeRequest {
  readonly type: "range";
}

/** A transaction inside a transaction. */
export interface TxnOp extends TxnRequest {
  readonly type: "txn";
}

/** One step of a transaction. */
export type Op = PutOp | DeleteOp | RangeOp | TxnOp;

/** If all of `compare` hold, do `success`, else `failure`, as one step. A key may be put only once. */
export interface TxnRequest {
  readonly compare?: readonly Compare[];
  readonly success?: readonly Op[];
  readonly failure?: readonly Op[];
}

/** What one operation answered, in the order of the operations. */
export type OpResult =
  | { readonly type: "put"; readonly prev?: KeyValue }
  | { readonly type: "delete"; readonly deleted: number; readonly prev: readonly KeyValue[] }
  | { readonly type: "range"; readonly range: RangeResult }
  | { readonly type: "txn"; readonly txn: TxnResult };

/** The answer to a transaction. */
export interface TxnResult {
  /** Whether the comparison held. */
  readonly succeeded: boolean;
  /** The store's revision after the transaction. */
  readonly revision: Revision;
  readonly results: readonly OpResult[];
}

/** One change of one key. */
export interface StoreEvent {
  readonly type: "put" | "delete";
  /** For a delete: the key, an empty value and the revision of the deletion as `modRevision`. */
  readonly kv: KeyValue;
  /** The pair before the change, when asked for, when it existed and is not compacted. */
  readonly prev?: KeyValue;
}

/** What to watch. */
export interface WatchRequest extends KeyRange {
  /** First revision to deliver. Absent or 0: the next one. */
  readonly startRevision?: Revision;
  readonly prevKv?: boolean;
  /** Leave out puts or deletes. */
  readonly filters?: readonly ("noput" | "nodelete")[];
  /** Send progress when nothing else was sent for a while. */
  readonly progressNotify?: boolean;
  readonly signal?: AbortSignal;
}

/** A step of a watch. */
export interface WatchBatch {
  /** Events in order, whole revisions only; empty for a progress notice. */
  readonly events: readonly StoreEvent[];
  /** Every event of the range up to and including this revision was delivered. */
  readonly revision: Revision;
}

/**
 * A running watch. Iterating waits for events; the iteration throws `gone` (with
 * `details.compactRevision`) when a start below the compaction mark was asked for, and `unavailable`
 * when the watch fell too far behind or the store was lost: then start again after the last revision
 * seen. Breaking out of the loop or aborting the signal ends it.
 */
export interface Watch extends AsyncIterable<WatchBatch> {
  /** Resolves with the store's revision once the watch is registered: later writes will be seen. */
  readonly ready: Promise<Revision>;
  /** Asks for a progress notice as soon as everything so far is delivered. */
  progress(): void;
  close(): void;
}

/** A lease as it stands. */
export interface LeaseInfo {
  readonly id: LeaseId;
  /** Time to live asked for, seconds. */
  readonly grantedTtl: number;
  /** Seconds left; -1 when it does not exist (any more). */
  readonly ttl: number;
  /** Bound keys, when asked for. */
  readonly keys: readonly Buffer[];
}

/** Facts about the store. */
export interface StoreStatus {
  /** Driver name: `memory`, `sqlite`, `postgres`, `etcd`, … */
  readonly driver: string;
  readonly revision: Revision;
  /** Reads and watches below this fail with `gone`; 0 when never compacted. */
  readonly compactRevision: Revision;
  /** Bytes taken, and bytes in use by live data and retained history. */
  readonly sizeBytes: number;
  readonly sizeInUseBytes: number;
  /** Live keys. */
  readonly keys: number;
}

/** `no_space`: the last write was refused because there is no room. `corrupt`: data was found to be damaged (etcd only). */
export type StoreAlarm = "no_space" | "corrupt";

/** Options of one call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/**
 * A store. Every method fails with a `CodedError`: `invalid_argument` (bad request), `gone`
 * (compacted), `not_found` (lease), `already_exists` (lease id), `unavailable` and
 * `deadline_exceeded` (retryable; whether a write happened is unknown), `payload_too_large`.
 */
export interface Store {
  range(request: RangeRequest, options?: CallOptions): Promise<RangeResult>;
  txn(request: TxnRequest, options?: CallOptions): Promise<TxnResult>;
  watch(request: WatchRequest): Watch;
  /** Drops history below `revision`. Fails with `gone` when already compacted, `invalid_argument` when in the future. */
  compact(revision: Revision, options?: CallOptions): Promise<void>;
  /** Grants a lease of `ttl` seconds; `id` absent or 0n: the store picks one. */
  leaseGrant(ttl: number, id?: LeaseId): Promise<LeaseInfo>;
  /** Starts the lease's time again. Fails with `not_found`. */
  leaseKeepAlive(id: LeaseId): Promise<LeaseInfo>;
  /** Ends a lease and deletes its keys in one transaction. Fails with `not_found`. */
  leaseRevoke(id: LeaseId): Promise<{ readonly revision: Revision }>;
  leaseTimeToLive(id: LeaseId, withKeys?: boolean): Promise<LeaseInfo>;
  leases(): Promise<readonly LeaseId[]>;
  /** The newest revision, linearizable and cheap. */
  revision(): Promise<Revision>;
  status(): Promise<StoreStatus>;
  /** A hash over the live contents at a revision; equal contents and revisions give equal hashes on every driver. */
  hash(
    revision?: Revision,
  ): Promise<{ readonly hash: number; readonly revision: Revision; readonly compactRevision: Revision }>;
  /**
   * The database's own snapshot file, where it has one (etcd's bbolt file with its SHA-256): streamed, for its own tools to
   * restore. Absent where there is none, and where what lies below must not be read past this store.
   */
  snapshot?(options?: CallOptions): AsyncIterable<Uint8Array>;
  /** Removes the history below the compaction mark and gives free space back, before it resolves. Absent where that cannot be asked for. */
  defragment?(): Promise<void>;
  /** What is wrong with the store as a whole; empty when nothing is. Absent: nothing is known of it. */
  alarms?(): Promise<readonly StoreAlarm[]>;
  /** Forgets an alarm; it comes back when its reason does. */
  disarm?(alarm: StoreAlarm): Promise<void>;
  /** Ends all watches, waits for writes under way, releases files and connections. */
  close(): Promise<void>;
}

/** The range of all keys that start with `prefix`; an empty prefix means every key. */
export function prefixRange(prefix: BytesLike): { key: Buffer; end: Buffer } {
  const key = toBytes(prefix);
  if (key.length === 0) return { key: Buffer.from([0]), end: Buffer.from([0]) };
  const end = Buffer.from(key);
  for (let i = end.length - 1; i >= 0; i--) {
    const byte = end[i] ?? 0;
    if (byte < 0xff) {
      end[i] = byte + 1;
      return { key, end: end.subarray(0, i + 1) };
    }
  }
  return { key, end: Buffer.from([0]) };
}

/** Bytes of a {@link BytesLike}; not copied when already bytes. */
export function toBytes(value: BytesLike): Buffer {
  if (typeof value === "string") return Buffer.from(value, "utf8");
  return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}
