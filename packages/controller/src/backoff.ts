/**
 * Waiting longer after each failure, and never in step with others.
 */
import type { Clock, Random } from "@kontinuum/std";

/** Shape of an exponential back-off. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** `base * 2^failures`, at most `max`; `failures` counts from 0. */
export function exponential({ baseMs, maxMs }: BackoffOptions, failures: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(failures, 60));
}

/** A random time in `[baseMs / 2, baseMs]`: how long to wait for something that others wait for too. */
export function jitter(baseMs: number, random: Random): number {
  return Math.round(baseMs / 2 + random.float() * (baseMs / 2));
}

/** The back-off of one loop, with jitter. */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: Random;
  #failures = 0;

  constructor(options: BackoffOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  /** The wait after one more failure. */
  next(): number {
    return jitter(exponential(this.#options, this.#failures++), this.#random);
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** A token bucket: `perSecond` on average, `burst` at once. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#at = clock.monotonic();
  }

  /** Takes a token, on credit if need be; returns how long to wait until it is covered, milliseconds. */
  reserve(): number {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond);
    this.#at = now;
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : Math.ceil((-this.#tokens / this.#perSecond) * 1000);
  }
}
