/**
 * Failed sign-ins are limited per address, before anything costly is done for it.
 */
import type { Clock } from "@kontinuum/std";

/** Failures an address may have at once. */
export const failureBurst = 20;
/** Failures that are forgiven per second. */
export const failuresPerSecond = 0.5;
const maxAddresses = 50_000;

/** Counts failures per address in a leaky bucket. */
export class FailureLimit {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, { level: number; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds this address has to wait; 0 when it may try. */
  waitMs(address: string): number {
    const level = this.#level(address);
    return level < failureBurst ? 0 : Math.ceil(((level - failureBurst + 1) / failuresPerSecond) * 1000);
  }

  /** Counts a failure. */
  failed(address: string): void {
    const level = this.#level(address) + 1;
    this.#buckets.delete(address);
    if (this.#buckets.size >= maxAddresses) {
      const oldest = this.#buckets.keys().next();
      if (!oldest.done) this.#buckets.delete(oldest.value);
    }
    this.#buckets.set(address, { level, at: this.#clock.monotonic() });
  }

  #level(address: string): number {
    const bucket = this.#buckets.get(address);
    if (!bucket) return 0;
    const level = bucket.level - ((this.#clock.monotonic() - bucket.at) / 1000) * failuresPerSecond;
    if (level <= 0) this.#buckets.delete(address);
    return Math.max(0, level);
  }
}
