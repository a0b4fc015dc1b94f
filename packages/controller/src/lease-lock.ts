/**
 * A lock made of a `Lease` object: at most one holder at a time, taken over when it stops renewing.
 *
 * The server's compare-and-swap on resourceVersion decides every race; a lost race is `false`, never an
 * error. Expiry compares the holder's renew time with the own clock, so clocks that differ by more than the
 * duration break it: `LeaderElection` has the stricter form. There is no release: a holder that goes away
 * is followed after the duration.
 *
 * Source: Kubernetes API reference, coordination.k8s.io/v1 Lease.
 */
import { isCoded, type Edges } from "@kontinuum/std";
import type { Client } from "./client.ts";
import { formatMicroTime } from "./condition.ts";
import { leases, namespaces, type Lease } from "./core-resources.ts";
import type { ObjectRef } from "./resource.ts";
import { hasCause } from "./status.ts";

/** Options of a {@link LeaseLock}. */
export interface LeaseLockOptions {
  /** Must ask the server: a cached read would lose races for nothing. */
  readonly client: Client;
  readonly edges: Edges;
  readonly namespace: string;
  readonly name: string;
  /** Unique per process. */
  readonly holder: string;
  /** Whole seconds. */
  readonly durationSeconds: number;
}

/** See the module's comment. */
export class LeaseLock {
  readonly #options: LeaseLockOptions;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
  }

  /** Takes, renews or takes over the lease. `true`: it is held now, for the duration. */
  async tryAcquire(signal?: AbortSignal): Promise<boolean> {
    const call = signal ? { signal } : {};
    const { client, namespace, name, holder } = this.#options;
    const ref: ObjectRef = { namespace, name };
    const lease = await client.find(leases, ref, call);
    if (!lease) return this.#create(ref, call);
    if (lease.spec?.holderIdentity !== holder && !this.isExpired(lease)) return false;
    try {
      await client.update(leases, { ...lease, spec: this.#renewed(lease) }, call);
      return true;
    } catch (error) {
      if (isCoded(error, "conflict") || isCoded(error, "not_found")) return false;
      throw error;
    }
  }

  /** Whether a lease may be taken over: no renew time, or one that is older than its own duration. */
  isExpired(lease: Lease): boolean {
    const renewed = Date.parse(lease.spec?.renewTime ?? "");
    if (Number.isNaN(renewed)) return true;
    const seconds = lease.spec?.leaseDurationSeconds ?? this.#options.durationSeconds;
    return this.#options.edges.clock.now() - renewed > seconds * 1000;
  }

  #renewed({ spec }: Lease): NonNullable<Lease["spec"]> {
    const { holder, durationSeconds, edges } = this.#options;
    const now = formatMicroTime(edges.clock.now());
    const mine = { ...spec, holderIdentity: holder, leaseDurationSeconds: durationSeconds, renewTime: now };
    if (spec?.holderIdentity === holder) return mine;
    return { ...mine, acquireTime: now, leaseTransitions: (spec?.leaseTransitions ?? 0) + 1 };
  }

  async #create(ref: ObjectRef, call: { signal?: AbortSignal }): Promise<boolean> {
    const { client, namespace, name, holder, durationSeconds, edges } = this.#options;
    const now = formatMicroTime(edges.clock.now());
    const lease: Lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { namespace, name },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: durationSeconds,
        acquireTime: now,
        renewTime: now,
      },
    };
    try {
      await ensureNamespace(client, ref.namespace ?? "", call);
      await client.create(leases, lease, call);
      return true;
    } catch (error) {
      // Lost the race, or the namespace is on its way out: there is nothing to hold now.
      if (isCoded(error, "already_exists") || hasCause(error, "NamespaceTerminating")) return false;
      throw error;
    }
  }
}

/** Creates a namespace unless it exists. */
export async function ensureNamespace(
  client: Client,
  name: string,
  call: { signal?: AbortSignal } = {},
): Promise<void> {
  if (await client.find(namespaces, { name }, call)) return;
  try {
    await client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name } }, call);
  } catch (error) {
    if (!isCoded(error, "already_exists")) throw error;
  }
}
