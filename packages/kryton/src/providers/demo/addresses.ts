/**
 * Addresses of demo guests: 10.44.0.20 upwards, 254 to a /24, each at most once.
 *
 * The number only proposes; the creation of the address key in the guest's own transaction decides,
 * so replicas can propose the same one without harm.
 */
import { prefixRange, type Store } from "@kontinuum/storage/client";
import { keys } from "../../store/keyspace.ts";

const first = 20;
const perNet = 254;
const last = 256 * perNet - 1;

function format(n: number): string {
  return `10.44.${Math.floor(n / perNet)}.${(n % perNet) + 1}`;
}

/** Proposes addresses. */
export class DemoAddresses {
  readonly #store: Store;
  #next = first - 1;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The next proposal and the key that must not exist yet. */
  next(): { address: string; key: string } {
    const n = this.#next;
    this.#next = n >= last ? first - 1 : n + 1;
    return { address: format(n), key: keys.demoAddress(String(n).padStart(5, "0")) };
  }

  /** Continues above the highest address in use, after a proposal was taken by somebody else. */
  async refresh(): Promise<void> {
    const { kvs } = await this.#store.range({
      ...prefixRange(keys.demoAddresses),
      keysOnly: true,
      limit: 1,
      sort: { by: "key", descending: true },
    });
    const highest = Number(kvs[0]?.key.toString("utf8").slice(keys.demoAddresses.length));
    if (Number.isInteger(highest) && highest >= this.#next && highest < last) this.#next = highest + 1;
  }
}
