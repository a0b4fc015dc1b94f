/**
 * A replica's life in the store: one lease, kept alive, to which its claims are bound.
 *
 * When the process dies or is cut off the lease runs out, its claims vanish, and other replicas take
 * over. A session that could not be renewed for most of its time to live counts as lost *before* the
 * store ends it: work stops first, then somebody else may begin.
 */
import { CodedError, isCoded, messageOf, type Edges, type Timer } from "@kontinuum/std";
import { reasonOf, type LeaseId, type Store } from "@kontinuum/storage/client";
import type { Change, Committed } from "./change.ts";
import { keys } from "./keyspace.ts";

/** Time to live of a replica's lease, seconds. */
export const sessionTtlSeconds = 9;
const renewEveryMs = (sessionTtlSeconds * 1000) / 3;
const lostAfterMs = (sessionTtlSeconds * 1000 * 2) / 3;
const retryMs = 500;

/** One lease and the signal that ends with it. */
export interface Lease {
  readonly id: LeaseId;
  /** Aborts when the lease is lost or given up. */
  readonly signal: AbortSignal;
}

/** Keeps a lease; makes a new one when it is lost. */
export class ReplicaSession {
  readonly replicaId: string;
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #stop = new AbortController();
  #current: { lease: Lease; abort: AbortController } | undefined;
  #opening: Promise<Lease> | undefined;
  #timer: Timer | undefined;
  #renewedAt = 0;

  constructor(store: Store, edges: Edges) {
    this.#store = store;
    this.#edges = edges;
    this.replicaId = edges.random.uuid();
  }

  /** The present lease, made on first use. Rejects with the store's error when it cannot be had. */
  lease(): Promise<Lease> {
    if (this.#current) return Promise.resolve(this.#current.lease);
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /**
   * Makes a change that binds keys to `lease`. Fails with `unavailable` when the store has ended the lease: then
   * nothing was changed, and the next try has a new one.
   */
  async commit(change: Change, lease: Lease): Promise<Committed> {
    try {
      return await change.commit(this.#store, this.#edges);
    } catch (error) {
      if (reasonOf(error) !== "lease_not_found") throw error;
      if (this.#current?.lease === lease) this.#drop("the store ended it");
      throw new CodedError("unavailable", "this replica lost its lease in the store", { cause: error });
    }
  }

  /** Gives everything up at once, so that others need not wait for the time to run out. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#timer?.clear();
    const current = this.#current;
    this.#drop("the replica stops");
    if (!current) return;
    try {
      await this.#store.leaseRevoke(current.lease.id);
    } catch (error) {
      this.#edges.log.debug("lease could not be revoked and will run out", { problem: messageOf(error) });
    }
  }

  async #open(): Promise<Lease> {
    const granted = await this.#store.leaseGrant(sessionTtlSeconds);
    await this.#store.txn({
      success: [
        {
          type: "put",
          key: keys.replica(this.replicaId),
          value: JSON.stringify({ since: this.#edges.clock.now() }),
          lease: granted.id,
        },
      ],
    });
    const abort = new AbortController();
    const lease: Lease = { id: granted.id, signal: abort.signal };
    this.#current = { lease, abort };
    this.#renewedAt = this.#edges.clock.monotonic();
    this.#renewIn(renewEveryMs);
    return lease;
  }

  #renewIn(delayMs: number): void {
    if (this.#stop.signal.aborted) return;
    this.#timer = this.#edges.clock.timer(delayMs, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const current = this.#current;
    if (!current) return;
    // The deadline stands on its own timer: a renewal that hangs must not outlive the lease.
    const left = Math.max(0, lostAfterMs - (this.#edges.clock.monotonic() - this.#renewedAt));
    const deadline = this.#edges.clock.timer(left, () => this.#drop("the store did not answer in time"));
    const startedAt = this.#edges.clock.monotonic();
    try {
      const info = await this.#store.leaseKeepAlive(current.lease.id);
      if (info.ttl <= 0) this.#drop("the lease ran out");
      this.#renewedAt = startedAt;
      this.#renewIn(renewEveryMs);
    } catch (error) {
      const over = isCoded(error, "not_found");
      if (over || this.#edges.clock.monotonic() - this.#renewedAt >= lostAfterMs)
        this.#drop(messageOf(error));
      else this.#renewIn(retryMs);
    } finally {
      deadline.clear();
    }
  }

  #drop(reason: string): void {
    const current = this.#current;
    if (!current) return;
    this.#current = undefined;
    if (!this.#stop.signal.aborted) this.#edges.log.warn("replica lost its lease", { reason });
    current.abort.abort(reason);
  }
}
