/**
 * Addresses for pods: each has one of its own in 127/8, so that all may listen on the same port.
 */
import { CodedError } from "@kontinuum/std";
import { addressNumber, addressText } from "../machine-spec.ts";

/** Addresses from a base on, lowest free first. */
export class PodAddresses {
  readonly #first: number;
  readonly #count: number;
  readonly #used = new Set<number>();
  #next = 0;

  /** `base` is the first address; at most `count` are given out. */
  constructor(base: string, count = 60_000) {
    this.#first = addressNumber(base);
    this.#count = count;
  }

  /** A free address. Fails with `unavailable` when there is none. */
  take(): string {
    for (let tries = 0; tries < this.#count; tries++) {
      const candidate = this.#first + ((this.#next + tries) % this.#count);
      const last = candidate % 256;
      if (last === 0 || last === 255 || this.#used.has(candidate)) continue;
      this.#next = candidate - this.#first + 1;
      this.#used.add(candidate);
      return addressText(candidate);
    }
    throw new CodedError("unavailable", `all ${this.#count} pod addresses of the rack are in use`);
  }

  /** Marks an address that a pod has already. */
  reserve(address: string): void {
    this.#used.add(addressNumber(address));
  }

  /** Gives an address back. */
  release(address: string): void {
    this.#used.delete(addressNumber(address));
  }
}
