/**
 * Pools: hold the wanted number of machines, no more, no fewer.
 *
 * What to do is decided in `instancepool.plan.ts`; this shell carries it out. A pool whose cluster is being
 * deleted wants nothing, or it would claim a machine again the moment its cluster gave it back.
 */
import {
  addFinalizer,
  defineController,
  hasFinalizer,
  isDeleting,
  keyOf,
  parseKey,
  removeFinalizer,
  watchOf,
  type CachedClient,
  type DefinedController,
} from "@kontinuum/controller";
import type { Edges, Log } from "@kontinuum/std";
import {
  finalizers,
  instanceKind,
  instancePoolKind,
  talosClusterKind,
  type Instance,
  type InstancePool,
} from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { writeStatus } from "../transition-events.ts";
import { poolNames } from "../taloscluster/members.ts";
import { leaseRetry, objectKey } from "../zone-lease/zone-leases.ts";
import { claim, giveBack } from "./instancepool.claim.ts";
import { planPool } from "./instancepool.plan.ts";
import { poolStatus } from "./instancepool.status.ts";

/** The controller `instancepool`. */
export function instancePoolController({ timings, leases }: DomainContext): DefinedController {
  const waiting = new PoolsByNamespace();
  return defineController({
    name: "instancepool",
    concurrency: 4,
    watches: [
      watchOf(instancePoolKind.resource, { map: (pool) => waiting.note(pool) }),
      watchOf(instanceKind.resource, { map: (instance) => waiting.of(instance.metadata.namespace ?? "") }),
      watchOf(talosClusterKind.resource, {
        map: (cluster) => poolNames(cluster).map((name) => `${cluster.metadata.namespace}/${name}`),
      }),
    ],
    async reconcile(key, { client, edges, log }) {
      const pool = await client.find(instancePoolKind.resource, parseKey(key));
      if (!pool) return waiting.forget(key);
      if (isDeleting(pool) && !hasFinalizer(pool, finalizers.instancePool)) return;
      if (!(await leases.tryAcquire(client, objectKey("instancepool", pool)))) {
        return leaseRetry(timings.poolRetryMs, edges.random);
      }
      if (addFinalizer(pool, finalizers.instancePool)) {
        await client.update(instancePoolKind.resource, pool);
        return;
      }
      const enough = await reconcilePool(client, pool, edges, log);
      return enough ? undefined : { requeueAfterMs: timings.poolRetryMs };
    },
  });
}

/** One step towards the wanted number. True when nothing more is to be done. */
async function reconcilePool(
  client: CachedClient,
  pool: InstancePool,
  edges: Edges,
  log: Log,
): Promise<boolean> {
  const namespace = pool.metadata.namespace;
  const { items: instances } = await client.list(instanceKind.resource, { namespace });
  const plan = planPool(pool, instances, await wantedReplicas(client, pool));
  for (const instance of plan.release) {
    if (await giveBack(client, instance, edges.clock))
      log.info("gives back a machine", { instance: keyOf(instance) });
  }
  if (isDeleting(pool)) {
    const held = plan.keep.length + plan.release.length + plan.leaving.length;
    if (held > 0) return false;
    if (removeFinalizer(pool, finalizers.instancePool)) await client.update(instancePoolKind.resource, pool);
    return true;
  }
  const held: Instance[] = [...plan.keep];
  for (const candidate of plan.candidates) {
    if (held.length >= plan.keep.length + plan.missing) break;
    if (!(await claim(client, candidate, pool.metadata.name))) continue;
    held.push(candidate);
    log.info("claimed a machine", { instance: keyOf(candidate) });
  }
  const status = poolStatus(pool, held, edges.clock);
  if (status) await writeStatus({ client, clock: edges.clock, log }, instancePoolKind.resource, pool, status);
  return held.length >= plan.keep.length + plan.missing;
}

async function wantedReplicas(client: CachedClient, pool: InstancePool): Promise<number> {
  if (isDeleting(pool)) return 0;
  const { items } = await client.list(talosClusterKind.resource, { namespace: pool.metadata.namespace });
  const users = items.filter((cluster) => poolNames(cluster).includes(pool.metadata.name));
  return users.some((cluster) => isDeleting(cluster)) ? 0 : pool.spec.replicas;
}

/** Which pools there are, so that a change of a machine wakes those of its namespace. */
class PoolsByNamespace {
  readonly #keys = new Set<string>();

  note(pool: InstancePool): string[] {
    const key = keyOf(pool);
    this.#keys.add(key);
    return [key];
  }

  of(namespace: string): string[] {
    return [...this.#keys].filter((key) => key.startsWith(`${namespace}/`));
  }

  forget(key: string): void {
    this.#keys.delete(key);
  }
}
