/**
 * A group of writes as the parameters of one statement.
 */
import type { KeyValue, LeaseId } from "../../contract.ts";
import type { Change } from "../../engine/backend.ts";
import { byteaArray, int4Array, int8Array, leaseArray } from "./arrays.ts";
import type { PrefetchedSession } from "./prefetched-session.ts";

/** A change and its place inside its revision. */
export interface Numbered {
  readonly change: Change;
  readonly sub: number;
}

/** Changes with their place inside their revision. */
export function* numbered(changes: readonly Change[]): Generator<Numbered, void, undefined> {
  let last = 0;
  let sub = 0;
  for (const change of changes) {
    sub = change.kv.modRevision === last ? sub + 1 : 0;
    last = change.kv.modRevision;
    yield { change, sub };
  }
}

/** The newest change of every key of a group, by {@link keyName}. */
export function newestOf(changes: readonly Change[]): ReadonlyMap<string, Numbered> {
  const newest = new Map<string, Numbered>();
  for (const entry of numbered(changes)) newest.set(keyName(entry.change.kv.key), entry);
  return newest;
}

/** A key as a name: one character a byte. */
export function keyName(key: KeyValue["key"]): string {
  return key.toString("latin1");
}

/** The parameters of `writeGroup`; `base` is the revision that the session was decided on. */
export function groupValues(session: PrefetchedSession, base: number): unknown[] {
  const entries = [...numbered(session.changes)];
  const kvs = entries.map(({ change }) => change.kv);
  const newest = [...newestOf(session.changes).values()];
  const live = newest.filter(({ change }) => change.type === "put");
  const dead = newest.filter(({ change }) => change.type === "delete");
  const leases = [...session.leaseChanges];
  const started = leases.filter((lease): lease is [LeaseId, number] => lease[1] !== undefined);
  return [
    int8Array(kvs.map((kv) => kv.modRevision)),
    int4Array(entries.map(({ sub }) => sub)),
    byteaArray(kvs.map((kv) => kv.key)),
    int8Array(kvs.map((kv) => kv.createRevision)),
    int8Array(kvs.map((kv) => kv.version)),
    leaseArray(kvs.map((kv) => kv.lease)),
    int8Array(entries.map(({ change }) => change.prev?.modRevision ?? 0)),
    byteaArray(kvs.map((kv) => kv.value)),
    byteaArray(live.map(({ change }) => change.kv.key)),
    int8Array(live.map(({ change }) => change.kv.modRevision)),
    int4Array(live.map(({ sub }) => sub)),
    leaseArray(live.map(({ change }) => change.kv.lease)),
    byteaArray(dead.map(({ change }) => change.kv.key)),
    leaseArray(started.map(([id]) => id)),
    int8Array(started.map(([, ttl]) => ttl)),
    leaseArray(leases.filter(([, ttl]) => ttl === undefined).map(([id]) => id)),
    session.revision,
    base,
  ];
}
