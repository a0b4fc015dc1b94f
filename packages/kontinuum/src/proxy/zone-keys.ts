/**
 * How many objects of its own a zone has, so that it can't fill the hub's store.
 *
 * The count is read at most once in {@link countedForMs}, however many creates wait for it; a create that was let through
 * holds its key until a later count must have seen it, so that creates at the same time can't pass the bound
 * together. Each process of the hub counts for itself.
 */
import { CodedError, type Clock } from "@kontinuum/std";
import { prefixRange, type Store } from "@kontinuum/storage";
import { group, processSecretName, systemNamespace } from "../kinds/index.ts";
import { zoneLeasePrefix, zoneMayRead, type ZoneScope } from "./zone-rules.ts";

/** How long one count is taken for the present one, milliseconds. */
export const countedForMs = 1000;
/** How long a create may be on its way to the store, milliseconds. */
export const createTakesMs = 10_000;

/** The keys of one zone. */
export class ZoneKeys {
  readonly #store: Pick<Store, "range">;
  readonly #clock: Clock;
  readonly #scope: ZoneScope;
  readonly #bound: number;
  /** Keys that are on their way, with the time until which they are held. At most the bound. */
  readonly #held = new Map<string, number>();
  #counted: ReadonlySet<string> = new Set();
  #countedAt = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | undefined;

  /** @param bound objects of its own that the zone may have. */
  constructor(store: Pick<Store, "range">, clock: Clock, scope: ZoneScope, bound: number) {
    this.#store = store;
    this.#clock = clock;
    this.#scope = scope;
    this.#bound = bound;
  }

  /** Lets one create through, or fails with `rate_limited`. */
  async hold(key: string): Promise<void> {
    if (this.#clock.monotonic() >= this.#countedAt + countedForMs) {
      this.#counting ??= this.#count().finally(() => (this.#counting = undefined));
      await this.#counting;
    }
    const now = this.#clock.monotonic();
    let total = this.#counted.size;
    for (const [held, until] of this.#held) {
      if (until <= now) this.#held.delete(held);
      else if (!this.#counted.has(held)) total++;
    }
    if (total >= this.#bound && !this.#held.has(key) && !this.#counted.has(key)) {
      throw new CodedError("rate_limited", `zone ${this.#scope.name} has ${this.#bound} objects of its own`, {
        retryAfterMs: countedForMs,
      });
    }
    this.#held.set(key, now + createTakesMs);
  }

  async #count(): Promise<void> {
    const startedAt = this.#clock.monotonic();
    const found = new Set<string>();
    for (const place of [
      `${group}/kontinuums/${systemNamespace}/`,
      `secrets/${systemNamespace}/${processSecretName("")}`,
      `coordination.k8s.io/leases/${systemNamespace}/${zoneLeasePrefix(this.#scope.uid)}`,
    ]) {
      const { kvs } = await this.#store.range(prefixRange(`/registry/${place}`));
      for (const kv of kvs) {
        const key = kv.key.toString("utf8");
        if (zoneMayRead(this.#scope, key, kv.value)) found.add(key);
      }
    }
    this.#counted = found;
    this.#countedAt = startedAt;
  }
}
