/**
 * Leases that give short-lived objects (events) their end. One lease serves many objects, so that a thousand events
 * do not cost a thousand leases; it lives a little longer than asked for instead.
 */
import { isCoded, type Clock } from "@kontinuum/std";
import type { LeaseId, Store } from "@kontinuum/storage";

/** Objects bound to one lease at most. */
const maxObjects = 1000;
/** A lease is shared for this part of its time to live, at most a minute. */
const shareRatio = 0.05;
const maxShareMs = 60_000;

interface Shared {
  readonly id: LeaseId;
  readonly until: number;
  uses: number;
}

/** Hands out shared leases. */
export class LeasePool {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #shared = new Map<number, Promise<Shared>>();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Runs a write with a lease of `ttlSeconds` (0: none). A shared lease that is gone, because somebody revoked it, is
   * replaced once.
   */
  async bind<T>(ttlSeconds: number, write: (lease: LeaseId) => Promise<T>): Promise<T> {
    if (ttlSeconds === 0) return write(0n);
    const lease = await this.#lease(ttlSeconds);
    try {
      return await write(lease);
    } catch (error) {
      if (!isCoded(error, "not_found")) throw error;
      this.#shared.delete(ttlSeconds);
      return write(await this.#lease(ttlSeconds));
    }
  }

  /** A lease that lives at least `ttlSeconds` from now. */
  async #lease(ttlSeconds: number): Promise<LeaseId> {
    const present = await this.#shared.get(ttlSeconds)?.catch(() => undefined);
    if (present && present.uses < maxObjects && this.#clock.monotonic() < present.until) {
      present.uses++;
      return present.id;
    }
    const shareMs = Math.min(ttlSeconds * 1000 * shareRatio, maxShareMs);
    const until = this.#clock.monotonic() + shareMs;
    const made = this.#store
      .leaseGrant(Math.ceil(ttlSeconds + shareMs / 1000))
      .then(({ id }): Shared => ({ id, until, uses: 1 }));
    this.#shared.set(ttlSeconds, made);
    return (await made).id;
  }
}
