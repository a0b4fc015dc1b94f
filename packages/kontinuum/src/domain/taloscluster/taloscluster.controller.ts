/**
 * Clusters: from claimed machines to a Kubernetes cluster with its addons, and back.
 */
import {
  addFinalizer,
  defineController,
  hasFinalizer,
  isDeleting,
  parseKey,
  watchOf,
  type DefinedController,
} from "@kontinuum/controller";
import type { Clock } from "@kontinuum/std";
import {
  addonKind,
  finalizers,
  instanceKind,
  labels,
  talosClusterKind,
  type TalosCluster,
} from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { leaseRetry, objectKey } from "../zone-lease/zone-leases.ts";
import { poolNames } from "./members.ts";
import { HealthMemory } from "./taloscluster.health.ts";
import { ClusterPass } from "./taloscluster.pass.ts";
import { tearDownCluster } from "./taloscluster.teardown.ts";

/** Clusters worked on at the same time: a slow one, waiting for its health check, must not hold up the others. */
const concurrency = 16;

/** The controller `taloscluster`. */
export function talosClusterController(
  { config, timings, leases }: DomainContext,
  clock: Clock,
): DefinedController {
  const health = new HealthMemory(timings, clock);
  const users = new ClustersByPool();
  return defineController({
    name: "taloscluster",
    concurrency,
    watches: [
      watchOf(talosClusterKind.resource, { map: (cluster) => users.note(cluster) }),
      watchOf(instanceKind.resource, {
        map: ({ metadata }) => users.of(metadata.namespace ?? "", metadata.labels?.[labels.claimedBy] ?? ""),
      }),
      watchOf(addonKind.resource, {
        map: ({ metadata, spec }) => [`${metadata.namespace ?? ""}/${spec.talosClusterRef.name}`],
      }),
    ],
    async reconcile(key, { client, edges, log, signal }) {
      const cluster = await client.find(talosClusterKind.resource, parseKey(key));
      if (!cluster) return users.forget(key);
      if (isDeleting(cluster) && !hasFinalizer(cluster, finalizers.talosCluster)) return;
      const lease = objectKey("taloscluster", cluster);
      if (!(await leases.tryAcquire(client, lease))) {
        return leaseRetry(timings.retryMs, edges.random);
      }
      if (isDeleting(cluster)) {
        const done = await tearDownCluster(client, cluster, edges.clock, log);
        return done ? undefined : { requeueAfterMs: timings.retryMs };
      }
      if (addFinalizer(cluster, finalizers.talosCluster)) {
        await client.update(talosClusterKind.resource, cluster);
        return;
      }
      const requeueAfterMs = await leases.whileHeld(client, lease, signal, (held) => {
        const context = {
          client,
          edges,
          log,
          signal: held,
          timings,
          health,
          allowed: config.discovery.allowed,
        };
        return new ClusterPass(context, cluster).run();
      });
      return { requeueAfterMs };
    },
  });
}

/** Which clusters use which pool, so that a change of a machine wakes the right ones. */
class ClustersByPool {
  readonly #pools = new Map<string, ReadonlySet<string>>();

  note(cluster: TalosCluster): string[] {
    const key = `${cluster.metadata.namespace ?? ""}/${cluster.metadata.name}`;
    this.#pools.set(key, new Set(poolNames(cluster)));
    return [key];
  }

  of(namespace: string, pool: string): string[] {
    return [...this.#pools]
      .filter(([key, pools]) => key.startsWith(`${namespace}/`) && pools.has(pool))
      .map(([key]) => key);
  }

  forget(key: string): void {
    this.#pools.delete(key);
  }
}
