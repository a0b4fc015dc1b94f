/**
 * StatefulSets: pods with fixed names, one after the other.
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
import { stringAt } from "@kontinuum/std";
import { pods, statefulSets, type Pod, type Workload } from "./kinds.ts";
import { isReady, podFrom, podIndexes, podsOf } from "./pod-set.ts";
import { templateHash } from "./template-hash.ts";
import { reportStatus } from "./workload-status.ts";

const revisionLabel = "controller-revision-hash";

/** See the module's comment. */
export function statefulSetController(): DefinedController {
  return defineController({
    name: "stateful-set",
    watches: [
      watchOf(statefulSets),
      watchOf(pods, { map: ownerKeys("StatefulSet", "apps"), indexes: podIndexes }),
    ],
    async reconcile(key, { client }) {
      const set = await client.find(statefulSets, parseKey(key));
      if (!set || isDeleting(set)) return;
      const wanted = set.spec.replicas ?? 1;
      const revision = `${set.metadata.name}-${templateHash(set.spec.template)}`;
      const own = podsOf(client, set);
      const isOrdered = stringAt(set.spec, "podManagementPolicy") !== "Parallel";
      for (let ordinal = 0; ordinal < wanted; ordinal++) {
        const pod = own.find(({ metadata }) => metadata.name === podName(set, ordinal));
        if (!pod) await client.create(pods, makePod(set, ordinal, revision));
        if (isOrdered && !(pod && isReady(pod))) break;
      }
      await removeLast(
        client,
        set,
        own,
        own.filter(({ metadata }) => ordinalOf(set, metadata.name) >= wanted),
      );
      const outdated = own.filter(({ metadata }) => metadata.labels?.[revisionLabel] !== revision);
      if (own.every(isReady)) await removeLast(client, set, own, outdated);
      const ready = own.filter(isReady).length;
      const updated = own.length - outdated.length;
      await reportStatus(client, statefulSets, set, {
        replicas: own.length,
        readyReplicas: ready,
        availableReplicas: ready,
        currentReplicas: updated,
        updatedReplicas: updated,
        updateRevision: revision,
        ...(outdated.length === 0 ? { currentRevision: revision } : {}),
      });
    },
  });
}

/** Removes the candidate with the highest ordinal, when no pod is on its way out already. */
async function removeLast(
  client: CachedClient,
  set: Workload,
  own: readonly Pod[],
  candidates: readonly Pod[],
): Promise<void> {
  if (own.some(isDeleting)) return;
  const ordinal = ({ metadata }: Pod): number => ordinalOf(set, metadata.name);
  const last = candidates.toSorted((a, b) => ordinal(b) - ordinal(a))[0];
  if (last) await client.deleteIfExists(pods, last.metadata);
}

function podName(set: Workload, ordinal: number): string {
  return `${set.metadata.name}-${ordinal}`;
}

function ordinalOf(set: Workload, name: string): number {
  return Number(name.slice(set.metadata.name.length + 1));
}

function makePod(set: Workload, ordinal: number, revision: string): Pod {
  const name = podName(set, ordinal);
  const labels = {
    [revisionLabel]: revision,
    "statefulset.kubernetes.io/pod-name": name,
    "apps.kubernetes.io/pod-index": String(ordinal),
  };
  const pod = podFrom({ template: set.spec.template, owner: set, ownerResource: statefulSets, name, labels });
  const subdomain = stringAt(set.spec, "serviceName");
  return { ...pod, spec: { ...pod.spec, hostname: name, ...(subdomain ? { subdomain } : {}) } };
}
