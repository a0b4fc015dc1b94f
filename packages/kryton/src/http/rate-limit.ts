/**
 * Requests per caller: a token bucket, refilled steadily.
 *
 * Each replica counts for itself; behind a balancer the effective limit is the configured one times the
 * number of replicas a caller reaches.
 */
import type { Clock } from "@kontinuum/std";

const idleMs = 10 * 60_000;
const maxBuckets = 50_000;

/** See the module comment. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #rps: number;
  readonly #burst: number;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  /** `rps` 0 turns it off; `burst` 0 means the same as `rps`. */
  constructor(clock: Clock, rps: number, burst: number) {
    this.#clock = clock;
    this.#rps = rps;
    this.#burst = Math.max(1, burst > 0 ? burst : rps);
  }

  /** Takes a token: 0 when there was one, else the milliseconds until there is. */
  take(caller: string): number {
    if (this.#rps <= 0) return 0;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(caller);
    const tokens = bucket
      ? Math.min(this.#burst, bucket.tokens + ((now - bucket.at) / 1000) * this.#rps)
      : this.#burst;
    const left = tokens >= 1 ? tokens - 1 : tokens;
    // Re-inserted, so that the map stays ordered by last use and the oldest can be dropped.
    this.#buckets.delete(caller);
    this.#sweep(now);
    this.#buckets.set(caller, { tokens: left, at: now });
    return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / this.#rps) * 1000);
  }

  /** Buckets held. */
  get size(): number {
    return this.#buckets.size;
  }

  #sweep(now: number): void {
    for (const [caller, bucket] of this.#buckets) {
      if (now - bucket.at < idleMs && this.#buckets.size < maxBuckets) return;
      this.#buckets.delete(caller);
    }
  }
}
