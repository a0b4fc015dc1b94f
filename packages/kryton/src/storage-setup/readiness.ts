/**
 * Whether what was applied works: definitions established, workloads available, Ceph ready.
 *
 * Source: Kubernetes API reference (apps/v1 status, CustomResourceDefinition conditions), Rook documentation (phases).
 */
import { at, stringAt } from "@kontinuum/std";
import type { KubeObject } from "../cluster/kubernetes.ts";

/** Kinds that are waited for. */
export const awaitedKinds: readonly string[] = [
  "CustomResourceDefinition",
  "Deployment",
  "DaemonSet",
  "StatefulSet",
  "CephCluster",
  "CephBlockPool",
];

/** What `object` still lacks, in words; `undefined` when it is ready. `found`: as the cluster has it. */
export function lacking({ kind, metadata }: KubeObject, found: unknown): string | undefined {
  const name = `${kind} ${metadata.name}`;
  if (found === undefined) return `${name} does not exist yet`;
  const status = at(found, "status");
  const number = (value: unknown): number => (typeof value === "number" ? value : 0);
  switch (kind) {
    case "CustomResourceDefinition":
      return hasCondition(status, "Established") ? undefined : `${name} is not established`;
    case "Deployment":
    case "StatefulSet": {
      if (behind(found)) return `${name} was not looked at yet`;
      const replicas = at(found, "spec", "replicas");
      const wanted = typeof replicas === "number" ? replicas : 1;
      const ready = number(at(status, kind === "Deployment" ? "availableReplicas" : "readyReplicas"));
      return ready >= wanted ? undefined : `${name}: ${ready} of ${wanted} available`;
    }
    case "DaemonSet": {
      if (behind(found)) return `${name} was not looked at yet`;
      const wanted = number(at(status, "desiredNumberScheduled"));
      const ready = number(at(status, "numberReady"));
      return ready >= wanted ? undefined : `${name}: ready on ${ready} of ${wanted} nodes`;
    }
    case "CephCluster":
    case "CephBlockPool": {
      const phase = stringAt(status, "phase") ?? "no phase";
      return phase === "Ready" ? undefined : `${name}: ${phase}`;
    }
    default:
      return undefined;
  }
}

/** True while the controller has not seen the newest generation. */
function behind(found: unknown): boolean {
  const generation = at(found, "metadata", "generation");
  const observed = at(found, "status", "observedGeneration");
  return typeof generation === "number" && (typeof observed !== "number" || observed < generation);
}

function hasCondition(status: unknown, type: string): boolean {
  const conditions = at(status, "conditions");
  return (
    Array.isArray(conditions) &&
    conditions.some((entry) => stringAt(entry, "type") === type && stringAt(entry, "status") === "True")
  );
}
