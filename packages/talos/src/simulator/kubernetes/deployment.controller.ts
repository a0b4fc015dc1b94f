/**
 * Deployments: one ReplicaSet per state of the template, the newest scaled up before the others go.
 *
 * `Recreate` empties the old sets first; `RollingUpdate` moves from them to the new one within its limits.
 */
import {
  defineController,
  formatTime,
  isControlledBy,
  isDeleting,
  keyOf,
  ownerKeys,
  parseKey,
  setControllerReference,
  watchOf,
  type CachedClient,
  type DefinedController,
} from "@kontinuum/controller";
import { at, stringAt, type Clock, type JsonObject } from "@kontinuum/std";
import { deployments, replicaSets, type Workload } from "./kinds.ts";
import { nextSizes, rolloutLimits, type RolloutLimits, type SetSize } from "./rollout.ts";
import { templateHash } from "./template-hash.ts";
import { reportStatus } from "./workload-status.ts";

const hashLabel = "pod-template-hash";
const revisionAnnotation = "deployment.kubernetes.io/revision";

/** See the module's comment. */
export function deploymentController(): DefinedController {
  return defineController({
    name: "deployment",
    watches: [watchOf(deployments), watchOf(replicaSets, { map: ownerKeys("Deployment", "apps") })],
    async reconcile(key, { client, edges }) {
      const deployment = await client.find(deployments, parseKey(key));
      if (!deployment || isDeleting(deployment)) return;
      const hash = templateHash(deployment.spec.template);
      const sets = await setsOf(client, deployment);
      const isCurrent = (set: Workload): boolean => set.metadata.labels?.[hashLabel] === hash;
      const old = sets.filter((set) => !isCurrent(set)).sort((a, b) => revisionOf(a) - revisionOf(b));
      const wanted = deployment.spec.replicas ?? 1;
      const recreates = stringAt(deployment.spec, "strategy", "type") === "Recreate";
      const oldPods = old.reduce((sum, set) => sum + count(set, "replicas"), 0);
      const current = sets.find(isCurrent) ?? (await create(client, deployment, hash, sets.length + 1));
      const isUp = count(current, "readyReplicas") >= wanted;
      const next = recreates
        ? { current: oldPods > 0 ? 0 : wanted, old: old.map(() => 0) }
        : nextSizes(wanted, limitsOf(deployment, wanted), sizeOf(current), old.map(sizeOf));
      if (current.spec.replicas !== next.current) await scale(client, current, next.current);
      for (const [index, set] of old.entries()) {
        const size = next.old[index] ?? 0;
        if (set.spec.replicas !== size) await scale(client, set, size);
      }
      await report(client, deployment, current, sets, edges.clock);
      await prune(client, old, isUp);
    },
  });
}

function limitsOf({ spec }: Workload, wanted: number): RolloutLimits {
  return rolloutLimits(
    wanted,
    at(spec, "strategy", "rollingUpdate", "maxSurge"),
    at(spec, "strategy", "rollingUpdate", "maxUnavailable"),
  );
}

function sizeOf(set: Workload): SetSize {
  return { replicas: set.spec.replicas ?? 0, ready: count(set, "readyReplicas") };
}

async function setsOf(client: CachedClient, deployment: Workload): Promise<Workload[]> {
  const { items } = await client.list(replicaSets, { namespace: deployment.metadata.namespace });
  return items.filter((set) => isControlledBy(set, deployment) && !isDeleting(set));
}

async function create(
  client: CachedClient,
  deployment: Workload,
  hash: string,
  revision: number,
): Promise<Workload> {
  const { template, selector } = deployment.spec;
  const label = { [hashLabel]: hash };
  const set: Workload = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      ...(deployment.metadata.namespace === undefined ? {} : { namespace: deployment.metadata.namespace }),
      labels: { ...template.metadata?.labels, ...label },
      annotations: { [revisionAnnotation]: String(revision) },
    },
    spec: {
      replicas: 0,
      selector: { ...selector, matchLabels: { ...selector.matchLabels, ...label } },
      template: {
        ...template,
        metadata: { ...template.metadata, labels: { ...template.metadata?.labels, ...label } },
      },
    },
  };
  setControllerReference(set, deployment, deployments);
  return client.create(replicaSets, set);
}

async function scale(client: CachedClient, set: Workload, replicas: number): Promise<void> {
  await client.patch(replicaSets, set.metadata, { type: "merge", patch: { spec: { replicas } } });
}

/** Keeps the ten newest emptied sets, as the default history does. */
async function prune(client: CachedClient, old: readonly Workload[], isUp: boolean): Promise<void> {
  if (!isUp) return;
  const emptied = old.filter((set) => count(set, "replicas") === 0);
  const byAge = emptied.toSorted((a, b) => revisionOf(b) - revisionOf(a));
  for (const set of byAge.slice(10)) await client.deleteIfExists(replicaSets, set.metadata);
}

function revisionOf(set: Workload): number {
  return Number(set.metadata.annotations?.[revisionAnnotation] ?? 0);
}

async function report(
  client: CachedClient,
  deployment: Workload,
  current: Workload,
  sets: readonly Workload[],
  clock: Clock,
): Promise<void> {
  const latest = await Promise.all(sets.map((set) => client.find(replicaSets, parseKey(keyOf(set)))));
  const all = latest.filter((set) => set !== undefined);
  const sum = (field: string): number => all.reduce((total, set) => total + count(set, field), 0);
  const wanted = deployment.spec.replicas ?? 1;
  const newest = all.find(({ metadata }) => metadata.uid === current.metadata.uid);
  const updated = newest ? count(newest, "replicas") : 0;
  const available = sum("availableReplicas");
  const isAvailable = available >= wanted;
  const isComplete = isAvailable && updated >= wanted && sum("replicas") === updated;
  const conditions = [
    condition(
      deployment,
      clock,
      "Available",
      isAvailable,
      isAvailable ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
      isAvailable ? "Deployment has minimum availability." : "Deployment does not have minimum availability.",
    ),
    condition(
      deployment,
      clock,
      "Progressing",
      true,
      isComplete ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
      isComplete
        ? `ReplicaSet ${JSON.stringify(current.metadata.name)} has successfully progressed.`
        : `ReplicaSet ${JSON.stringify(current.metadata.name)} is progressing.`,
    ),
  ];
  await reportStatus(client, deployments, deployment, {
    replicas: sum("replicas"),
    updatedReplicas: updated,
    readyReplicas: sum("readyReplicas"),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, wanted - available),
    conditions,
  });
}

function condition(
  owner: Workload,
  clock: Clock,
  type: string,
  holds: boolean,
  reason: string,
  message: string,
): JsonObject {
  const status = holds ? "True" : "False";
  const all = at(owner.status, "conditions");
  const before = Array.isArray(all) ? all.find((entry) => stringAt(entry, "type") === type) : undefined;
  const now = formatTime(clock.now());
  const isSame = stringAt(before, "status") === status;
  const isUnchanged =
    isSame && stringAt(before, "reason") === reason && stringAt(before, "message") === message;
  return {
    type,
    status,
    reason,
    message,
    lastUpdateTime: isUnchanged ? (stringAt(before, "lastUpdateTime") ?? now) : now,
    lastTransitionTime: isSame ? (stringAt(before, "lastTransitionTime") ?? now) : now,
  };
}

function count(workload: Workload, field: string): number {
  const value = at(workload.status, field);
  return typeof value === "number" ? value : 0;
}
