/**
 * Ends leases when their time is over: one timer, and an ordinary transaction per lease.
 *
 * The due lease is looked at again inside the write, so that a keep-alive that was acknowledged before
 * wins. Failures are retried; nothing here gives up.
 */
import { isCoded, messageOf, type Edges, type Timer } from "@kontinuum/std";
import type { LeaseId } from "../contract.ts";
import type { Backend } from "./backend.ts";

/** Leases ended in one go. */
const maxExpiredAtOnce = 128;
/** Longest wait between looks at a store that others write to as well, in milliseconds. */
const sharedPollMs = 1_000;
/** Wait after a failed attempt, in milliseconds. */
const expiryRetryMs = 1_000;

/** Runs expiry for one store. */
export class LeaseExpiry {
  readonly #backend: Backend;
  readonly #edges: Edges;
  readonly #expire: (id: LeaseId) => Promise<void>;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  #running: Promise<void> | undefined;
  #closed = false;

  /** `expire` ends one lease if it is still due. */
  constructor(backend: Backend, edges: Edges, expire: (id: LeaseId) => Promise<void>) {
    this.#backend = backend;
    this.#edges = edges;
    this.#expire = expire;
  }

  /** Looks at the leases now and from then on. */
  start(): void {
    this.within(0);
  }

  /** A lease may be due in `ms`: makes sure somebody looks then. */
  within(ms: number): void {
    if (this.#closed) return;
    const at = this.#edges.clock.monotonic() + ms;
    if (at >= this.#timerAt) return;
    this.#timer?.clear();
    this.#timerAt = at;
    this.#timer = this.#edges.clock.timer(ms, () => {
      this.#timerAt = Infinity;
      this.#running ??= this.#run().finally(() => (this.#running = undefined));
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      const asked = this.#edges.clock.monotonic();
      const { ids, nextMs } = await this.#backend.due(maxExpiredAtOnce);
      await Promise.all(ids.map((id) => this.#expire(id)));
      const late = this.#edges.clock.monotonic() - asked;
      const wait =
        ids.length === maxExpiredAtOnce ? 0 : nextMs === undefined ? undefined : Math.max(0, nextMs - late);
      if (!this.#backend.exclusive) this.within(Math.min(wait ?? sharedPollMs, sharedPollMs));
      else if (wait !== undefined) this.within(Math.ceil(wait));
    } catch (error) {
      if (this.#closed) return;
      this.#edges.log.warn("leases could not be expired, trying again", {
        code: isCoded(error) ? error.code : "internal",
        reason: messageOf(error),
      });
      this.within(expiryRetryMs);
    }
  }
}
