/**
 * Who may do what through the etcd face: the caller of the package decides, per call.
 *
 * Without an authorizer every call has full access: then the listener itself must be private. A
 * restricted access filters reads (never refuses them), keeps revisions, counts only what is visible,
 * and has every write checked against the pair it would replace.
 */
import type { KeyValue, LeaseId } from "../contract.ts";

/** One call, before it is served. */
export interface EtcdCall {
  /** For example `/etcdserverpb.KV/Range`. */
  readonly method: string;
  /** Request metadata; `authorization` carries a bearer token, etcd's own clients send it as `token`. */
  readonly headers: Headers;
}

/** One change that a caller wants to make. */
export interface EtcdWrite {
  readonly key: Buffer;
  /** The new value; `undefined` for a delete. */
  readonly value: Buffer | undefined;
  /** The pair it replaces; the write happens only if this is still the present one. */
  readonly previous: KeyValue | undefined;
  /** Lease the key would be bound to; 0n for none. */
  readonly lease: LeaseId;
}

/** What a caller may do. Every part left out allows. */
export interface EtcdAccess {
  /** Whether the caller may see a pair. Decides by key, or by key and value; must be quick. */
  readonly canRead?: (kv: KeyValue) => boolean;
  /** Throws a `CodedError` (`permission_denied`, `invalid_argument`) to refuse a write. */
  readonly checkWrite?: (write: EtcdWrite) => void | Promise<void>;
  /** Throws to refuse the use of a lease. `grant` comes with the id asked for, 0n for any. */
  readonly checkLease?: (action: "grant" | "use" | "revoke" | "list", id: LeaseId) => void | Promise<void>;
  /** The id of a lease that the caller lets the store choose, so that it can be told from others' later. Default: the store's choice. */
  readonly chooseLease?: () => LeaseId;
  /** May compact, snapshot, defragment, hash and see sizes. Default: only when reads and writes are not restricted. */
  readonly operator?: boolean;
  /** Ends the caller's streams when it aborts (a revoked identity). */
  readonly signal?: AbortSignal;
  /** Watches the caller may have on one stream. Default: the face's own bound. */
  readonly maxWatches?: number;
  /** A stream of the caller opens; returns what to call at its end. Throws to refuse one more. */
  readonly streamOpened?: () => () => void;
}

/** Finds out who calls. Throws a `CodedError` `unauthenticated` to refuse. */
export type EtcdAuthorizer = (call: EtcdCall) => EtcdAccess | Promise<EtcdAccess>;

/** Everything. */
export const fullAccess: EtcdAccess = {};

/** Whether operator calls are allowed. */
export function isOperator(access: EtcdAccess): boolean {
  return access.operator ?? (access.canRead === undefined && access.checkWrite === undefined);
}
