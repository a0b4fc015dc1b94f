/**
 * Leases by key: of several processes that run the same controllers on the same data, one acts per key.
 *
 * A key is usually `region-zone`; the empty key is everybody's. A process that was started for a key (a
 * worker) never acts for that key nor for the empty one: it must not manage what it runs on.
 */
import type { Edges } from "@kontinuum/std";
import { jitter } from "./backoff.ts";
import type { Client } from "./client.ts";
import { LeaseLock } from "./lease-lock.ts";

/** Options of {@link ZoneLease}. */
export interface ZoneLeaseOptions {
  /** Must ask the server. */
  readonly client: Client;
  readonly edges: Edges;
  /** Name of this process. */
  readonly holder: string;
  /** Key this process was started for; empty for a process that serves all. */
  readonly ownKey?: string;
  /** Default `kontinuum-system`. */
  readonly namespace?: string;
  /** Default 45. */
  readonly durationSeconds?: number;
}

/** The key of a zone, or the empty key when either part is empty. */
export function zoneKey(region: string | undefined, zone: string | undefined): string {
  return region && zone ? `${region}-${zone}` : "";
}

/** Name of the lease of a key. */
export function zoneLeaseName(key: string): string {
  return `zonelock-${key === "" ? "global" : key}`;
}

/** See the module's comment. */
export class ZoneLease {
  readonly #options: ZoneLeaseOptions;

  constructor(options: ZoneLeaseOptions) {
    this.#options = options;
  }

  /** Takes, renews or takes over the lease of `key`; `false` when another process acts for it. */
  async tryAcquire(key: string, signal?: AbortSignal): Promise<boolean> {
    const {
      client,
      edges,
      holder,
      ownKey = "",
      namespace = "kontinuum-system",
      durationSeconds = 45,
    } = this.#options;
    if (ownKey !== "" && (key === "" || key === ownKey)) return false;
    const lock = new LeaseLock({
      client,
      edges,
      namespace,
      name: zoneLeaseName(key),
      holder,
      durationSeconds,
    });
    return lock.tryAcquire(signal);
  }

  /** When to ask again after a `false`: a random time in `[baseMs / 2, baseMs]`. */
  retryAfterMs(baseMs: number): number {
    return jitter(baseMs, this.#options.edges.random);
  }
}
