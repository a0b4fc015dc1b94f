/**
 * The pods of a workload: making them from its template, finding them, telling which are ready.
 */
import {
  cloneJson,
  isControlledBy,
  isDeleting,
  setControllerReference,
  type CachedClient,
  type KubeObject,
  type PodTemplate,
  type Resource,
} from "@kontinuum/controller";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { isTrue } from "./conditions.ts";
import { pods, type Container, type Pod } from "./kinds.ts";

/** Name of the index of pods by their controller's uid. */
const byController = "controller";
/** The index itself. */
export const podIndexes = {
  [byController]: (pod: Pod): string[] =>
    (pod.metadata.ownerReferences ?? []).filter((owner) => owner.controller === true).map(({ uid }) => uid),
};

/** Pods a workload controls. */
export function podsOf(client: CachedClient, owner: KubeObject): Pod[] {
  return client
    .byIndex(pods, byController, owner.metadata.uid ?? "")
    .filter((pod) => isControlledBy(pod, owner))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** Whether a pod is ready to serve. */
export function isReady(pod: Pod): boolean {
  return !isDeleting(pod) && pod.status?.phase === "Running" && isTrue(pod.status.conditions, "Ready");
}

/** Whether a pod is neither done nor on its way out. */
export function isActive(pod: Pod): boolean {
  return !isDeleting(pod) && pod.status?.phase !== "Succeeded" && pod.status?.phase !== "Failed";
}

/** A pod made of a template, controlled by its workload. */
export function podFrom<T extends KubeObject>(options: {
  readonly template: PodTemplate;
  readonly owner: T;
  readonly ownerResource: Resource<T>;
  /** A full name, or the start of one that ends in `-`. */
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly nodeName?: string;
}): Pod {
  const { template, owner, ownerResource, name, labels = {}, nodeName } = options;
  const spec = cloneJson(template.spec ?? {});
  const containers = containersOf(spec);
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: name.endsWith("-") ? "" : name,
      ...(name.endsWith("-") ? { generateName: name } : {}),
      ...(owner.metadata.namespace === undefined ? {} : { namespace: owner.metadata.namespace }),
      labels: { ...template.metadata?.labels, ...labels },
      ...(template.metadata?.annotations ? { annotations: { ...template.metadata.annotations } } : {}),
    },
    spec: { ...spec, containers, ...(nodeName === undefined ? {} : { nodeName }) },
  };
  setControllerReference(pod, owner, ownerResource);
  return pod;
}

/** The server checks the template; what it let through has named containers. */
function containersOf(spec: JsonObject): Container[] {
  const value = at(spec, "containers");
  if (!Array.isArray(value)) return [];
  return value.filter((entry): entry is Container => isObject(entry) && typeof entry["name"] === "string");
}
