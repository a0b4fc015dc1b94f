/**
 * ReplicaSets: as many pods as asked for.
 */
import {
  defineController,
  isDeleting,
  ownerKeys,
  parseKey,
  watchOf,
  type DefinedController,
} from "@kontinuum/controller";
import { pods, replicaSets } from "./kinds.ts";
import { isActive, isReady, podFrom, podIndexes, podsOf } from "./pod-set.ts";
import { reportStatus } from "./workload-status.ts";

/** Pods made or removed in one pass; the rest follows in the next. */
const burst = 50;

/** See the module's comment. */
export function replicaSetController(): DefinedController {
  return defineController({
    name: "replica-set",
    watches: [
      watchOf(replicaSets),
      watchOf(pods, { map: ownerKeys("ReplicaSet", "apps"), indexes: podIndexes }),
    ],
    async reconcile(key, { client }) {
      const set = await client.find(replicaSets, parseKey(key));
      if (!set || isDeleting(set)) return;
      const wanted = set.spec.replicas ?? 1;
      const own = podsOf(client, set);
      const active = own.filter(isActive);
      for (const pod of own.filter((candidate) => candidate.status?.phase === "Failed")) {
        await client.deleteIfExists(pods, pod.metadata, { preconditions: { uid: pod.metadata.uid ?? "" } });
      }
      for (let i = active.length; i < Math.min(wanted, active.length + burst); i++) {
        const pod = podFrom({
          template: set.spec.template,
          owner: set,
          ownerResource: replicaSets,
          name: `${set.metadata.name}-`,
        });
        await client.create(pods, pod);
      }
      // Those that are not ready go first.
      const surplus = active
        .toSorted((a, b) => Number(isReady(a)) - Number(isReady(b)))
        .slice(0, Math.max(0, active.length - wanted));
      for (const pod of surplus.slice(0, burst)) await client.deleteIfExists(pods, pod.metadata);
      const ready = active.filter(isReady).length;
      await reportStatus(client, replicaSets, set, {
        replicas: active.length,
        fullyLabeledReplicas: active.length,
        readyReplicas: ready,
        availableReplicas: ready,
      });
    },
  });
}
