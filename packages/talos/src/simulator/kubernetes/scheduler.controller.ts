/**
 * The scheduler: a node for each pod that has none.
 *
 * Honours node selectors, taints with tolerations, and unschedulable nodes; among the rest it takes the node with the
 * fewest pods. Resources and affinities are not weighed: simulated machines do not run out of anything.
 */
import {
  defineController,
  isDeleting,
  objectPath,
  parseKey,
  watchOf,
  type DefinedController,
} from "@kontinuum/controller";
import { stringAt } from "@kontinuum/std";
import { isTrue, withCondition } from "./conditions.ts";
import { nodes, pods, type Node, type Pod } from "./kinds.ts";

/** Name of the index of pods by node. */
const byNode = "node";
/** The index; pods without a node are under the empty text. */
const nodeIndexes = { [byNode]: (pod: Pod): string[] => [pod.spec.nodeName ?? ""] };

/** A key that means "every pod that waits": a node has come or changed. */
const waiting = "*";
const retryMs = 5_000;

/** See the module's comment. */
export function schedulerController(): DefinedController {
  return defineController({
    name: "scheduler",
    watches: [
      watchOf(pods, {
        map: (pod) =>
          pod.spec.nodeName || isDeleting(pod) ? [] : [`${pod.metadata.namespace}/${pod.metadata.name}`],
        indexes: nodeIndexes,
      }),
      watchOf(nodes, { map: () => [waiting] }),
    ],
    async reconcile(key, { client, edges }) {
      if (key === waiting) {
        for (const pod of client.byIndex(pods, byNode, "")) await place(pod);
        return undefined;
      }
      const pod = await client.find(pods, parseKey(key));
      if (!pod || isDeleting(pod) || pod.spec.nodeName) return undefined;
      return (await place(pod)) ? undefined : { requeueAfterMs: retryMs };

      async function place(candidate: Pod): Promise<boolean> {
        const all = (await client.list(nodes)).items;
        const fitting = all.filter((node) => mayRunOn(candidate, node));
        const load = (node: Node): number => client.byIndex(pods, byNode, node.metadata.name).length;
        const best = fitting.toSorted(
          (a, b) => load(a) - load(b) || (a.metadata.name < b.metadata.name ? -1 : 1),
        )[0];
        if (best) {
          const target = { apiVersion: "v1", kind: "Node", name: best.metadata.name };
          const binding = { apiVersion: "v1", kind: "Binding", metadata: candidate.metadata, target };
          await client.request("POST", objectPath(pods, candidate.metadata, "binding"), {}, binding);
          return true;
        }
        const message = `0/${all.length} nodes are available`;
        const present = candidate.status?.conditions ?? [];
        if (present.some((one) => one.type === "PodScheduled" && one.message === message)) return false;
        const conditions = withCondition(
          present,
          { type: "PodScheduled", status: "False", reason: "Unschedulable", message },
          edges.clock,
        );
        await client.updateStatus(pods, { ...candidate, status: { ...candidate.status, conditions } });
        return false;
      }
    },
  });
}

/** Taints that follow from a node's own state, which the pods of a DaemonSet tolerate. */
const stateTaints = [
  "node.kubernetes.io/not-ready",
  "node.kubernetes.io/unreachable",
  "node.kubernetes.io/unschedulable",
];

/** Whether a pod may run on a node. */
export function mayRunOn(pod: Pod, node: Node, options: { readonly isDaemon?: boolean } = {}): boolean {
  const isDaemon = options.isDaemon ?? false;
  if (!isDaemon && (node.spec?.unschedulable === true || !isTrue(node.status?.conditions, "Ready")))
    return false;
  const labels = node.metadata.labels ?? {};
  if (!Object.entries(pod.spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value))
    return false;
  const taints = (node.spec?.taints ?? []).filter(
    ({ key, effect }) => effect !== "PreferNoSchedule" && !(isDaemon && stateTaints.includes(key)),
  );
  return taints.every((taint) =>
    (pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  );
}

function tolerates(toleration: unknown, taint: { key: string; effect: string; value?: string }): boolean {
  const key = stringAt(toleration, "key");
  const effect = stringAt(toleration, "effect");
  if (effect !== undefined && effect !== "" && effect !== taint.effect) return false;
  if (stringAt(toleration, "operator") === "Exists")
    return key === undefined || key === "" || key === taint.key;
  return key === taint.key && (stringAt(toleration, "value") ?? "") === (taint.value ?? "");
}
