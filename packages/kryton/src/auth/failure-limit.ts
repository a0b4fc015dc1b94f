/**
 * Failed sign-ins are limited per address, before anything costly is done for it.
 *
 * Many callers can share an address (a balancer, a proxy, a company's gateway). So that one of them cannot lock the
 * others out, a credential that has worked is not held up by the address's failures; it is still checked.
 */
import type { Clock } from "@kontinuum/std";

/** Failures an address may have at once. */
export const failureBurst = 20;
/** Failures that are forgiven per second. */
export const failuresPerSecond = 0.5;
const maxAddresses = 50_000;
const maxCredentials = 10_000;

/** Counts failures per address in a leaky bucket. */
export class FailureLimit {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, { level: number; at: number }>();

  /** Digests of credentials that worked, the most recent last. */
  readonly #worked = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds this address has to wait before `credential` is looked at; 0 when it may try. */
  waitMs(address: string, credential: string): number {
    if (this.#worked.has(credential)) return 0;
    const level = this.#level(address);
    return level < failureBurst ? 0 : Math.ceil(((level - failureBurst + 1) / failuresPerSecond) * 1000);
  }

  /** Remembers a credential that worked. */
  worked(credential: string): void {
    this.#worked.delete(credential);
    if (this.#worked.size >= maxCredentials) {
      const oldest = this.#worked.keys().next();
      if (!oldest.done) this.#worked.delete(oldest.value);
    }
    this.#worked.add(credential);
  }

  /** Counts a failure. One that has worked before was ended or asks for more than it may: no guess. */
  failed(address: string, credential: string): void {
    if (this.#worked.has(credential)) return;
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
