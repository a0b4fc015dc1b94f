/**
 * The work queue: which keys need a reconcile.
 *
 * A key is in the queue at most once, and never handed out twice at the same time: added while it is
 * worked on, it waits until `done`. Order is first come, first served, and a key that comes again goes to
 * the back, so one busy key can't starve the others. Failing keys come back after an exponential
 * back-off of their own, within an overall rate for all retries. Time comes from the given clock.
 */
import { assert, type Clock, type Timer } from "@kontinuum/std";
import { exponential, TokenBucket } from "./backoff.ts";
import { limits } from "./limits.ts";

/** Options of a {@link WorkQueue}. */
export interface WorkQueueOptions {
  readonly clock: Clock;
  /** Distinct keys that may wait. Default 1,000,000. */
  readonly limit?: number;
  /** First and longest back-off of a failing key. Default 5 ms and 1000 s. */
  readonly backoff?: { readonly baseMs: number; readonly maxMs: number };
  /** All retries together. Default 10 per second, 100 at once. */
  readonly retryRate?: { readonly perSecond: number; readonly burst: number };
}

/** Facts for metrics. */
export interface QueueStats {
  /** Keys that wait to be handed out now. */
  readonly waiting: number;
  /** Keys that are being worked on. */
  readonly active: number;
  /** Keys that come back later. */
  readonly delayed: number;
  /** How long the key at the front has waited, milliseconds. */
  readonly oldestMs: number;
}

interface Delayed {
  readonly at: number;
  readonly timer: Timer;
}

/** See the module's comment. */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #backoff: { readonly baseMs: number; readonly maxMs: number };
  readonly #retries: TokenBucket;
  /** Key to the time it was added, in hand-out order (a Map keeps insertion order). */
  readonly #waiting = new Map<string, number>();
  /** Keys being worked on; `true` when added again meanwhile. */
  readonly #active = new Map<string, boolean>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #closed = false;

  constructor(options: WorkQueueOptions) {
    this.#clock = options.clock;
    this.#limit = options.limit ?? limits.queueKeys;
    this.#backoff = options.backoff ?? { baseMs: 5, maxMs: 1_000_000 };
    const { perSecond, burst } = options.retryRate ?? { perSecond: 10, burst: 100 };
    this.#retries = new TokenBucket(options.clock, perSecond, burst);
  }

  /** Whether {@link close} was called: then nothing is taken any more, and that is as it should be. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Adds a key. `false`: the queue is full or closed and the key was not taken. */
  add(key: string): boolean {
    if (this.#closed) return false;
    if (this.#waiting.has(key)) return true;
    if (this.#active.has(key)) {
      this.#active.set(key, true);
      return true;
    }
    const taker = this.#takers.shift();
    if (taker) {
      this.#active.set(key, false);
      taker(key);
      return true;
    }
    if (this.#waiting.size >= this.#limit) return false;
    this.#waiting.set(key, this.#clock.monotonic());
    return true;
  }

  /** Adds a key after `delayMs`. Of several delays for one key the earliest counts. */
  addAfter(key: string, delayMs: number): boolean {
    if (this.#closed) return false;
    if (delayMs <= 0) return this.add(key);
    const at = this.#clock.monotonic() + delayMs;
    const present = this.#delayed.get(key);
    if (present && present.at <= at) return true;
    if (!present && this.#delayed.size >= this.#limit) return false;
    present?.timer.clear();
    const timer = this.#clock.timer(delayMs, () => {
      this.#delayed.delete(key);
      // A full queue must not lose a promised key: it tries again when some have been worked off.
      if (!this.add(key)) this.addAfter(key, this.#backoff.maxMs);
    });
    this.#delayed.set(key, { at, timer });
    return true;
  }

  /** Adds a key after its back-off. */
  addFailed(key: string): boolean {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return this.addAfter(key, Math.max(exponential(this.#backoff, failures), this.#retries.reserve()));
  }

  /** Forgets the failures of a key. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Failures of a key in a row. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, waiting for one; `undefined` once the queue is closed. Every key taken must be `done`. */
  take(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const next = this.#waiting.keys().next();
    if (next.done === true) return new Promise((resolve) => this.#takers.push(resolve));
    this.#waiting.delete(next.value);
    this.#active.set(next.value, false);
    return Promise.resolve(next.value);
  }

  /** Ends the work on a key; if it was added meanwhile it waits again, at the back. */
  done(key: string): void {
    const again = this.#active.get(key);
    assert(again !== undefined, `work on ${JSON.stringify(key)} ended that never began`);
    this.#active.delete(key);
    if (again && !this.add(key)) this.addAfter(key, this.#backoff.maxMs);
  }

  /** Hands out nothing more and forgets what waits. */
  close(): void {
    this.#closed = true;
    for (const { timer } of this.#delayed.values()) timer.clear();
    this.#delayed.clear();
    this.#waiting.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  /** Facts for metrics. */
  stats(): QueueStats {
    const oldest = this.#waiting.values().next();
    return {
      waiting: this.#waiting.size,
      active: this.#active.size,
      delayed: this.#delayed.size,
      oldestMs: oldest.done === true ? 0 : this.#clock.monotonic() - oldest.value,
    };
  }
}
