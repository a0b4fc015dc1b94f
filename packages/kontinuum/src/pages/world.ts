/**
 * What the pages show, read in one go with the rights of whoever looks.
 */
import type { Client } from "@kontinuum/controller";
import {
  addonKind,
  instanceKind,
  instancePoolKind,
  kontinuumKind,
  labels,
  systemNamespace,
  talosClusterKind,
  zoneKind,
  type Addon,
  type Instance,
  type InstancePool,
  type Kontinuum,
  type TalosCluster,
  type Zone,
} from "../kinds/index.ts";

/** The objects of one namespace, and the processes of the whole hub. */
export interface World {
  readonly namespace: string;
  readonly zones: readonly Zone[];
  readonly clusters: readonly TalosCluster[];
  readonly pools: readonly InstancePool[];
  readonly instances: readonly Instance[];
  readonly addons: readonly Addon[];
  readonly processes: readonly Kontinuum[];
}

/** Reads a namespace. */
export async function readWorld(client: Client, namespace: string): Promise<World> {
  const [zones, clusters, pools, instances, addons, processes] = await Promise.all([
    client.list(zoneKind.resource, { namespace }),
    client.list(talosClusterKind.resource, { namespace }),
    client.list(instancePoolKind.resource, { namespace }),
    client.list(instanceKind.resource, { namespace }),
    client.list(addonKind.resource, { namespace }),
    client.list(kontinuumKind.resource, { namespace: systemNamespace }),
  ]);
  return {
    namespace,
    zones: zones.items,
    clusters: clusters.items,
    pools: pools.items,
    instances: instances.items,
    addons: addons.items,
    processes: processes.items,
  };
}

/** The pool that claimed a machine, by name. */
export const claimedBy = (instance: Instance): string | undefined =>
  instance.metadata.labels?.[labels.claimedBy];

/** The machines a pool holds. */
export const membersOf = (world: World, pool: string): readonly Instance[] =>
  world.instances.filter((instance) => claimedBy(instance) === pool);

/** The names of a cluster's pools, control plane first. */
export function poolsOf(cluster: TalosCluster): readonly { readonly role: string; readonly pool: string }[] {
  return [
    { role: "control plane", pool: cluster.spec.controlPlane.poolRef.name },
    ...(cluster.spec.workers ?? []).map((worker) => ({ role: "worker", pool: worker.poolRef.name })),
  ];
}

/** The process that serves a zone, if it registered. */
export function processOf(world: World, zone: Zone): Kontinuum | undefined {
  return world.processes.find(
    (process) => process.spec.region === zone.spec.region && process.spec.zone === zone.spec.zone,
  );
}
