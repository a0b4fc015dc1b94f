/**
 * Deadlines of leases in a process that owns its store alone.
 *
 * While the process lives, time runs on the monotonic clock, so a jump of the wall clock neither
 * expires nor prolongs a lease. Across a restart the absolute wall time counts, clamped to the time
 * to live that was asked for.
 */
import type { Clock } from "@kontinuum/std";
import type { LeaseId } from "../contract.ts";
import type { LeaseRecord } from "./backend.ts";

interface Deadline {
  readonly ttl: number;
  readonly at: number;
}

/** The leases of an exclusive backend, in memory. */
export class LeaseDeadlines {
  readonly #clock: Clock;
  readonly #leases = new Map<LeaseId, Deadline>();
  #undo: [LeaseId, Deadline | undefined][] | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes over a lease read from disk with its absolute expiry, milliseconds since the epoch. */
  restore(id: LeaseId, ttl: number, expiresAt: number): void {
    const left = Math.min(expiresAt - this.#clock.now(), ttl * 1_000);
    this.#leases.set(id, { ttl, at: this.#clock.monotonic() + left });
  }

  /** Starts a lease's time, `left` seconds of it; returns its absolute expiry for the disk. */
  start(id: LeaseId, ttl: number, left = ttl): number {
    this.#undo?.push([id, this.#leases.get(id)]);
    this.#leases.set(id, { ttl, at: this.#clock.monotonic() + left * 1_000 });
    return this.#clock.now() + left * 1_000;
  }

  drop(id: LeaseId): void {
    this.#undo?.push([id, this.#leases.get(id)]);
    this.#leases.delete(id);
  }

  get(id: LeaseId): LeaseRecord | undefined {
    const found = this.#leases.get(id);
    return found && { id, ttl: found.ttl, remainingMs: found.at - this.#clock.monotonic() };
  }

  ids(): LeaseId[] {
    return [...this.#leases.keys()];
  }

  /** Runs `work`; what it did to leases is undone when it throws. */
  atomically(work: () => void): void {
    const undo: [LeaseId, Deadline | undefined][] = [];
    this.#undo = undo;
    try {
      work();
    } catch (error) {
      for (const [id, before] of undo.reverse()) {
        if (before) this.#leases.set(id, before);
        else this.#leases.delete(id);
      }
      throw error;
    } finally {
      this.#undo = undefined;
    }
  }

  due(limit: number): { ids: LeaseId[]; nextMs: number | undefined } {
    const now = this.#clock.monotonic();
    const due: { id: LeaseId; at: number }[] = [];
    let next: number | undefined;
    for (const [id, { at }] of this.#leases) {
      if (at <= now) due.push({ id, at });
      else if (next === undefined || at < next) next = at;
    }
    due.sort((a, b) => a.at - b.at);
    const nextMs = due.length > limit ? 0 : next === undefined ? undefined : next - now;
    return { ids: due.slice(0, limit).map((entry) => entry.id), nextMs };
  }
}
