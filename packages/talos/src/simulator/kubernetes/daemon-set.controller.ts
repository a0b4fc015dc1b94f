/**
 * DaemonSets: one pod on each node they may run on.
 */
import {
  defineController,
  isDeleting,
  ownerKeys,
  parseKey,
  watchOf,
  type CachedClient,
  type DefinedController,
} from "@kontinuum/controller";
import { daemonSets, nodes, pods, type Node, type Pod, type Workload } from "./kinds.ts";
import { isActive, isReady, podFrom, podIndexes, podsOf } from "./pod-set.ts";
import { mayRunOn } from "./scheduler.controller.ts";
import { templateHash } from "./template-hash.ts";
import { reportStatus } from "./workload-status.ts";

const revisionLabel = "controller-revision-hash";
/** A key that means "every set": a node has come or gone. */
const everySet = "*";

/** See the module's comment. */
export function daemonSetController(): DefinedController {
  return defineController({
    name: "daemon-set",
    watches: [
      watchOf(daemonSets),
      watchOf(pods, { map: ownerKeys("DaemonSet", "apps"), indexes: podIndexes }),
      watchOf(nodes, {
        map: () => [everySet],
        ignore: (before, after) =>
          JSON.stringify([before.spec, before.metadata.labels]) ===
          JSON.stringify([after.spec, after.metadata.labels]),
      }),
    ],
    async reconcile(key, { client }) {
      if (key !== everySet) return reconcileSet(client, key);
      for (const { metadata } of (await client.list(daemonSets)).items) {
        await reconcileSet(client, `${metadata.namespace ?? ""}/${metadata.name}`);
      }
    },
  });
}

async function reconcileSet(client: CachedClient, key: string): Promise<void> {
  const set = await client.find(daemonSets, parseKey(key));
  if (!set || isDeleting(set)) return;
  const revision = templateHash(set.spec.template);
  const own = podsOf(client, set);
  const eligible = (await client.list(nodes)).items.filter((node) => isEligible(set, node, revision));
  for (const { metadata } of eligible) {
    if (!own.some((pod) => pod.spec.nodeName === metadata.name && isActive(pod))) {
      await client.create(pods, makePod(set, metadata.name, revision));
    }
  }
  const names = new Set(eligible.map(({ metadata }) => metadata.name));
  const misplaced = own.filter((pod) => !isDeleting(pod) && !names.has(pod.spec.nodeName ?? ""));
  const outdated = own.filter((pod) => isActive(pod) && pod.metadata.labels?.[revisionLabel] !== revision);
  for (const pod of misplaced) await client.deleteIfExists(pods, pod.metadata);
  if (!own.some(isDeleting) && outdated[0]) await client.deleteIfExists(pods, outdated[0].metadata);
  const ready = own.filter(isReady).length;
  await reportStatus(client, daemonSets, set, {
    desiredNumberScheduled: eligible.length,
    currentNumberScheduled: own.filter(isActive).length,
    updatedNumberScheduled: own.filter((pod) => isActive(pod) && !outdated.includes(pod)).length,
    numberReady: ready,
    numberAvailable: ready,
    numberUnavailable: Math.max(0, eligible.length - ready),
    numberMisscheduled: misplaced.length,
  });
}

/** Pods of a DaemonSet tolerate what a node's own state taints it with, so only selectors and other taints count. */
function isEligible(set: Workload, node: Node, revision: string): boolean {
  return mayRunOn(makePod(set, node.metadata.name, revision), node, { isDaemon: true });
}

function makePod(set: Workload, nodeName: string, revision: string): Pod {
  return podFrom({
    template: set.spec.template,
    owner: set,
    ownerResource: daemonSets,
    name: `${set.metadata.name}-`,
    labels: { [revisionLabel]: revision },
    nodeName,
  });
}
