/**
 * Where an object is reached through the API.
 */
import { apiVersionOf } from "../registry/resource-store.ts";
import type { ResourceDefinition } from "../resource.ts";

/** Path of a resource's collection. */
export function collectionPath(resource: ResourceDefinition, namespace: string): string {
  const root = resource.group === "" ? `/api/${resource.version}` : `/apis/${apiVersionOf(resource)}`;
  return namespace === ""
    ? `${root}/${resource.plural}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${resource.plural}`;
}

/** Path of one object. */
export function objectPath(resource: ResourceDefinition, namespace: string, name: string): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}

/** One served version of every stored resource that objects can be deleted from. */
export function deletableResources(resources: readonly ResourceDefinition[]): readonly ResourceDefinition[] {
  const found = new Map<string, ResourceDefinition>();
  for (const resource of resources) {
    if (resource.stored || !resource.verbs.includes("delete")) continue;
    const id = `${resource.group}/${resource.plural}`;
    const present = found.get(id);
    if (!present || resource.version === resource.storageVersion) found.set(id, resource);
  }
  return [...found.values()];
}
