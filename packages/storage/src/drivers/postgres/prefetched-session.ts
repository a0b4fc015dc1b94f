/**
 * A session over data that was fetched before the work runs: decisions are synchronous, the database is
 * not. What the work applies is seen by what comes after it, and handed to the database as one statement.
 */
import { assert } from "@kontinuum/std";
import type { KeyValue, LeaseId, Revision } from "../../contract.ts";
import type { Change, LeaseRecord, Position, Scan, Scanned, Session } from "../../engine/backend.ts";
import { inSpan } from "../../engine/span.ts";

/** What was fetched under the writer's lock. */
export interface Fetched {
  readonly position: Position;
  readonly pairs: readonly KeyValue[];
  readonly leases: readonly LeaseRecord[];
  /** Answers of reads in the past, by the scan that asked. */
  readonly history: ReadonlyMap<Scan, Scanned>;
}

/** The session of one group. */
export class PrefetchedSession implements Session {
  readonly compactRevision: Revision;
  /** Everything applied, in order. */
  readonly changes: Change[] = [];
  /** Leases started (with their time to live) or dropped. */
  readonly leaseChanges = new Map<LeaseId, number | undefined>();
  #revision: Revision;
  readonly #pairs = new Map<string, KeyValue>();
  readonly #leases = new Map<LeaseId, LeaseRecord>();
  readonly #history: Fetched["history"];

  constructor(fetched: Fetched) {
    this.#revision = fetched.position.revision;
    this.compactRevision = fetched.position.compactRevision;
    for (const kv of fetched.pairs) this.#pairs.set(kv.key.toString("latin1"), kv);
    for (const lease of fetched.leases) this.#leases.set(lease.id, lease);
    this.#history = fetched.history;
  }

  get revision(): Revision {
    return this.#revision;
  }

  get(key: Buffer): KeyValue | undefined {
    return this.#pairs.get(key.toString("latin1"));
  }

  scan(scan: Scan): Scanned {
    if (scan.revision > 0) {
      const found = this.#history.get(scan);
      assert(found, "a read in the past was fetched");
      return found;
    }
    const kvs = [...this.#pairs.values()].filter((kv) => inSpan(scan.span, kv.key));
    kvs.sort((a, b) => (scan.descending === true ? b.key.compare(a.key) : a.key.compare(b.key)));
    return { kvs: scan.limit > 0 ? kvs.slice(0, scan.limit) : kvs, count: kvs.length };
  }

  hasLease(id: LeaseId): boolean {
    return this.#leases.has(id);
  }

  lease(id: LeaseId): LeaseRecord | undefined {
    return this.#leases.get(id);
  }

  leaseKeys(id: LeaseId): readonly Buffer[] {
    const bound = [...this.#pairs.values()].filter((kv) => kv.lease === id);
    return bound.map((kv) => kv.key).sort((a, b) => a.compare(b));
  }

  apply(changes: readonly Change[]): void {
    this.#revision++;
    for (const { type, kv } of changes) {
      assert(kv.modRevision === this.#revision, "a change carries the revision it makes");
      if (type === "put") this.#pairs.set(kv.key.toString("latin1"), kv);
      else this.#pairs.delete(kv.key.toString("latin1"));
    }
    this.changes.push(...changes);
  }

  putLease(id: LeaseId, ttl: number): void {
    this.#leases.set(id, { id, ttl, remainingMs: ttl * 1_000 });
    this.leaseChanges.set(id, ttl);
  }

  dropLease(id: LeaseId): void {
    this.#leases.delete(id);
    this.leaseChanges.set(id, undefined);
  }
}
