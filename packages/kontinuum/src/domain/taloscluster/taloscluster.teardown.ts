/**
 * Taking a cluster down: workers first, so that the control plane can still let them go, then the control
 * plane. The machines are reset by the controller `instance-reset`; the cluster, and with it the keys that
 * a reset needs, stays until none is claimed any more.
 */
import { removeFinalizer, secrets, type CachedClient } from "@kontinuum/controller";
import type { Clock, Log } from "@kontinuum/std";
import {
  finalizers,
  instanceKind,
  systemNamespace,
  talosClusterKind,
  type Instance,
  type TalosCluster,
} from "../../kinds/index.ts";
import { giveBack } from "../instancepool/instancepool.claim.ts";
import { clusterSecretName, findClusterSecret } from "./cluster-secrets.ts";
import { claimedOf, isLeaving } from "./members.ts";

/** Machines to send away now: workers, or the control plane once no worker is left. Pure. */
export function nextToLeave(cluster: TalosCluster, instances: readonly Instance[]): readonly Instance[] {
  const claimed = claimedOf(cluster, instances);
  const workers = claimed.filter(({ role }) => role === "worker");
  const wave = workers.length > 0 ? workers : claimed;
  return wave.map(({ instance }) => instance).filter((instance) => !isLeaving(instance));
}

/** One step of the teardown. True when the cluster is let go. */
export async function tearDownCluster(
  client: CachedClient,
  cluster: TalosCluster,
  clock: Clock,
  log: Log,
): Promise<boolean> {
  const { namespace } = cluster.metadata;
  const { items: instances } = await client.list(instanceKind.resource, { namespace });
  if (claimedOf(cluster, instances).length === 0) {
    await removeForeignSecret(client, cluster);
    if (removeFinalizer(cluster, finalizers.talosCluster))
      await client.update(talosClusterKind.resource, cluster);
    return true;
  }
  for (const instance of nextToLeave(cluster, instances)) {
    const { name } = instance.metadata;
    log.info("sends a machine away", { instance: name });
    if (cluster.spec.teardown?.unregisterInstances) {
      await client.deleteIfExists(instanceKind.resource, { namespace, name });
    } else {
      await giveBack(client, instance, clock);
    }
  }
  return false;
}

/** In the cluster's own namespace the garbage collector removes the Secret; across namespaces nobody else would. */
async function removeForeignSecret(client: CachedClient, cluster: TalosCluster): Promise<void> {
  if (cluster.metadata.namespace === systemNamespace) return;
  const secret = await findClusterSecret(client, cluster);
  if (secret)
    await client.deleteIfExists(secrets, { namespace: systemNamespace, name: clusterSecretName(cluster) });
}
