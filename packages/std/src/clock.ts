/**
 * Time as a parameter. Only this module reads the machine's clock or sets its timers.
 *
 * `SimulatedClock` moves only when told, so that a test of an hour takes a millisecond and a seed
 * reproduces it.
 */
import { CodedError } from "./errors.ts";

/** A timer that can be cleared. */
export interface Timer {
  /** Stops it; harmless when it already ran. */
  clear(): void;
}

/** Wall time, monotonic time and timers. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonic(): number;
  /** Runs `callback` once, after `delayMs`. The timer does not keep the process alive. */
  timer(delayMs: number, callback: () => void): Timer;
  /** Resolves after `delayMs`; rejects with `cancelled` when `signal` aborts first. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

function cancelled(signal: AbortSignal): CodedError {
  return new CodedError("cancelled", "cancelled", { cause: signal.reason });
}

function sleepOn(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(cancelled(signal));
    const onAbort = (): void => {
      timer.clear();
      if (signal) reject(cancelled(signal));
    };
    const timer = clock.timer(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(delayMs, callback) {
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), 2 ** 31 - 1));
    handle.unref();
    return { clear: () => clearTimeout(handle) };
  },
  sleep(delayMs, signal) {
    // A sleep is awaited by somebody, so unlike a bare timer it keeps the process alive.
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(cancelled(signal));
      const onAbort = (): void => {
        clearTimeout(handle);
        if (signal) reject(cancelled(signal));
      };
      const handle = setTimeout(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      }, delayMs);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  },
};

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until {@link SimulatedClock.advance} is called. */
export class SimulatedClock implements Clock {
  #now: number;
  readonly #start: number;
  #order = 0;
  #pending: Pending[] = [];

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#now = startMs;
    this.#start = startMs;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  timer(delayMs: number, callback: () => void): Timer {
    const pending: Pending = { at: this.#now + Math.max(0, delayMs), order: this.#order++, callback };
    this.#pending.push(pending);
    return {
      clear: () => {
        this.#pending = this.#pending.filter((p) => p !== pending);
      },
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  /** Time of the next timer in milliseconds since the epoch, or `undefined` when none waits. */
  nextAt(): number | undefined {
    return this.#earliest()?.at;
  }

  /** Moves time forward by `ms`, running due timers in order and letting promises settle between them. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settle();
      const next = this.#earliest();
      if (!next || next.at > until) break;
      this.#pending = this.#pending.filter((p) => p !== next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = until;
    await settle();
  }

  #earliest(): Pending | undefined {
    let best: Pending | undefined;
    for (const p of this.#pending) {
      if (!best || p.at < best.at || (p.at === best.at && p.order < best.order)) best = p;
    }
    return best;
  }
}

/** Lets every promise that can settle without time passing do so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
