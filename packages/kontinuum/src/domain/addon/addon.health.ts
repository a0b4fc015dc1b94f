/**
 * The health step: are the pods of a chart running and ready?
 *
 * A chart's pods carry the release's label; older charts only name chart and version. A chart without pods
 * is healthy unless it brought a workload whose pods are still to come.
 */
import { resource, shape, type KubeObject, type Resource } from "@kontinuum/controller";
import { at, stringAt, type JsonObject } from "@kontinuum/std";
import type { Downstream } from "../downstream/downstream.ts";

interface Pod extends KubeObject {
  status?: JsonObject;
}

const pods: Resource<Pod> = resource<Pod>({
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  shape: shape.object<Pod>({ ...shape.kubeObject, status: shape.optional(shape.map(shape.unknown)) }),
});

const workloads = [
  "/apis/batch/v1|jobs",
  "/apis/batch/v1|cronjobs",
  "/apis/apps/v1|deployments",
  "/apis/apps/v1|daemonsets",
  "/apis/apps/v1|statefulsets",
] as const;

/** What is wrong, as a sentence; `undefined` when the release is healthy. */
export async function unhealthyPart(
  { client }: Downstream,
  {
    release,
    chart,
    namespace,
  }: { readonly release: string; readonly chart: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const selectors = [
    { "app.kubernetes.io/instance": release },
    ...(isLabelValue(chart) ? [{ "helm.sh/chart": chart }] : []),
  ];
  const found = new Map<string, Pod>();
  for (const matchLabels of selectors) {
    const { items } = await client.list(pods, { namespace, labels: { matchLabels }, signal });
    for (const pod of items) found.set(pod.metadata.uid ?? pod.metadata.name, pod);
  }
  if (found.size > 0) {
    const sorted = [...found.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    return sorted.map(problemOf).find((problem) => problem !== undefined);
  }
  for (const workload of workloads) {
    const [group = "", plural = ""] = workload.split("|");
    for (const labels of selectors) {
      const selector = Object.entries(labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(",");
      const path = `${group}/namespaces/${namespace}/${plural}?limit=1&labelSelector=${encodeURIComponent(selector)}`;
      const items = at(await client.request("GET", path, { signal }), "items");
      if (Array.isArray(items) && items.length > 0) return `no pod of the ${plural} exists yet`;
    }
  }
  return undefined;
}

const isLabelValue = (text: string): boolean =>
  text.length <= 63 && /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/.test(text);

/** What is wrong with one pod, or `undefined`. */
export function problemOf(pod: Pod): string | undefined {
  const phase = stringAt(pod.status, "phase") ?? "Unknown";
  const conditions = listAt(pod, "status", "conditions");
  if (phase === "Succeeded") return undefined;
  if (
    phase === "Running" &&
    conditions.some((one) => stringAt(one, "type") === "Ready" && stringAt(one, "status") === "True")
  ) {
    return undefined;
  }
  const details = [
    `pod ${pod.metadata.namespace ?? ""}/${pod.metadata.name} is ${phase === "Running" ? "not ready" : phase}`,
  ];
  if (phase !== "Running") {
    const condition = conditions.find(
      (one) => stringAt(one, "status") !== "True" && stringAt(one, "message"),
    );
    if (condition) details.push(stringAt(condition, "message") ?? "");
    const init = listAt(pod, "status", "initContainerStatuses").find(
      (one) => at(one, "state", "terminated", "exitCode") !== 0,
    );
    if (init) details.push(`init container ${stringAt(init, "name") ?? ""} ${containerState(init)}`);
  }
  return details.join("; ");
}

function containerState(status: unknown): string {
  const waiting = stringAt(status, "state", "waiting", "reason");
  if (waiting !== undefined) {
    const restarts = at(status, "restartCount");
    const last = at(status, "lastState", "terminated", "exitCode");
    return `waits (${waiting})${typeof restarts === "number" ? `, restarted ${restarts} times` : ""}${typeof last === "number" ? `, last exit code ${last}` : ""}`;
  }
  const exit = at(status, "state", "terminated", "exitCode");
  if (typeof exit === "number") return `ended with exit code ${exit}`;
  return "is still running";
}

function listAt(value: unknown, ...path: string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}
