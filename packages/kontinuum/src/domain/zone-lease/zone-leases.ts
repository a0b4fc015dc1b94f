/**
 * Who may act on a zone: several hub processes run the same controllers on the same data, and one Lease per
 * zone lets exactly one of them act.
 *
 * Keys come from the labels of an object where it has a placement, else from its kind and name, so that an
 * object outside the naming scheme never shares a lease with an unrelated one. A lease is renewed once a
 * third of its time has passed, not on every step: a reconcile that changes nothing writes nothing.
 */
import { ZoneLease, type CachedClient, type KubeObject, type ReconcileResult } from "@kontinuum/controller";
import { CodedError, isDnsSubdomain, messageOf, type Edges, type Random } from "@kontinuum/std";
import { createHash } from "node:crypto";
import { labels, systemNamespace } from "../../kinds/index.ts";

/** The key of work that belongs to no zone. */
export const globalKey = "";

/** Most keys whose lease is remembered; beyond it the oldest is asked for again. */
const rememberedKeys = 10_000;

/** What {@link ZoneLeases} needs to know. */
export interface ZoneLeasesOptions {
  readonly edges: Edges;
  /** Name of this process, unique among those that share the store. */
  readonly holder: () => string;
  readonly durationMs: number;
}

/** Takes and renews leases for this process. */
export class ZoneLeases {
  readonly #options: ZoneLeasesOptions;
  readonly #heldSince = new Map<string, number>();
  readonly #asking = new Map<string, Promise<boolean>>();

  constructor(options: ZoneLeasesOptions) {
    this.#options = options;
  }

  /** Whether this process holds the lease of `key` now; takes it when it is free or expired. */
  async tryAcquire(client: CachedClient, key: string): Promise<boolean> {
    const since = this.#heldSince.get(key);
    const { clock } = this.#options.edges;
    if (since !== undefined && clock.monotonic() - since < this.#options.durationMs / 3) return true;
    // Two workers with one key must not race each other for it.
    const asking = this.#asking.get(key) ?? this.#ask(client, key);
    this.#asking.set(key, asking);
    try {
      return await asking;
    } finally {
      this.#asking.delete(key);
    }
  }

  /**
   * Runs a step that may take longer than a lease lasts, with the lease of `key` renewed meanwhile. The step's signal aborts
   * with `signal`, and as soon as somebody else holds the lease or it could not be renewed in its time: then another
   * process acts, and this one must not. Take the lease first.
   */
  async whileHeld<T>(
    client: CachedClient,
    key: string,
    signal: AbortSignal,
    step: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const over = new AbortController();
    const lost = new AbortController();
    const renewing = this.#renewUntil(client, key, over.signal).then((isHeld) => {
      if (!isHeld)
        lost.abort(new CodedError("cancelled", `another process acts for ${key || "everybody"} now`));
    });
    try {
      return await step(AbortSignal.any([signal, lost.signal]));
    } finally {
      over.abort();
      await renewing;
    }
  }

  /** Renews until `over` aborts: true; or the lease is lost: false. */
  async #renewUntil(client: CachedClient, key: string, over: AbortSignal): Promise<boolean> {
    const { edges, durationMs } = this.#options;
    const { clock, log } = edges;
    let heldAt = this.#heldSince.get(key) ?? clock.monotonic();
    for (;;) {
      await clock.sleep(durationMs / 6, over).catch(() => {});
      if (over.aborted) return true;
      try {
        if (!(await this.tryAcquire(client, key))) return false;
        heldAt = this.#heldSince.get(key) ?? heldAt;
      } catch (error) {
        log.warn("a lease could not be renewed", { lease: key, reason: messageOf(error) });
        // Stops before anybody else may begin.
        if (clock.monotonic() - heldAt > (durationMs * 2) / 3) return false;
      }
    }
  }

  async #ask(client: CachedClient, key: string): Promise<boolean> {
    const { edges, holder, durationMs } = this.#options;
    const started = edges.clock.monotonic();
    const lease = new ZoneLease({
      client: client.live,
      edges,
      holder: holder(),
      namespace: systemNamespace,
      durationSeconds: Math.max(1, Math.ceil(durationMs / 1000)),
    });
    this.#heldSince.delete(key);
    if (!(await lease.tryAcquire(key))) return false;
    this.#heldSince.set(key, started);
    if (this.#heldSince.size > rememberedKeys) {
      const [oldest] = this.#heldSince.keys();
      if (oldest !== undefined) this.#heldSince.delete(oldest);
    }
    return true;
  }
}

/** Key of a placement; the global key when either part is missing. */
export function placementKey(region: string | undefined, zone: string | undefined): string {
  return region && zone ? leaseSafe(`${region}-${zone}`) : globalKey;
}

/** Key of an object's placement labels; the global key when it has none. */
export function labelKey({ metadata }: KubeObject): string {
  return placementKey(metadata.labels?.[labels.region], metadata.labels?.[labels.zone]);
}

/** Key of an object: its placement labels, else its own kind, namespace and name. */
export function objectKey(kind: string, object: KubeObject): string {
  const { namespace = "", name } = object.metadata;
  return labelKey(object) || leaseSafe(`${kind}.${namespace}.${name}`);
}

/** When to try again after somebody else held the lease: a random time between half of `baseMs` and all of it. */
export function leaseRetry(baseMs: number, random: Random): ReconcileResult {
  return { requeueAfterMs: Math.round(baseMs / 2 + (random.float() * baseMs) / 2) };
}

// Labels may hold what object names may not, and names may be longer than what fits behind the lease's prefix.
function leaseSafe(key: string): string {
  if (isDnsSubdomain(key) && key.length <= 200) return key;
  return `x${createHash("sha256").update(key).digest("hex").slice(0, 40)}`;
}
