/**
 * What the stored objects of a namespace use of a quota.
 */
import type { JsonObject } from "@kontinuum/std";
import {
  amountText,
  chargeOf,
  countedResource,
  inScope,
  isScoped,
  type Amounts,
} from "../kinds/quota-charge.ts";
import { entries } from "../kinds/read.ts";
import type { ResourceDefinition } from "../resource.ts";
import { entryObject } from "../watch-cache/entry.ts";
import { metaText } from "./metadata.ts";
import type { ResourceSet } from "./resource-set.ts";
import type { ObjectStorage } from "./storage.ts";

/** The served resource a quota key counts, or `undefined`. */
export function resourceOfKey(resources: ResourceSet, key: string): ResourceDefinition | undefined {
  const counted = countedResource(key);
  if (counted === undefined) return undefined;
  return resources
    .versions(counted.group, counted.plural)
    .find((resource) => resource.namespaced && !resource.stored);
}

/** The usage of every key of a quota that is counted here, as quantities. */
export async function quotaUsage(
  resources: ResourceSet,
  storage: ObjectStorage,
  quota: JsonObject,
): Promise<Record<string, string>> {
  const namespace = metaText(quota, "namespace");
  const totals = new Map<ResourceDefinition, Amounts>();
  const used: Record<string, string> = {};
  for (const [key] of entries(quota, "spec", "hard")) {
    const resource = resourceOfKey(resources, key);
    if (resource === undefined) continue;
    let amounts = totals.get(resource);
    if (amounts === undefined) {
      amounts = await total(storage, resource, namespace, quota);
      totals.set(resource, amounts);
    }
    used[key] = amountText(key, amounts.get(key) ?? 0n);
  }
  return used;
}

async function total(
  storage: ObjectStorage,
  resource: ResourceDefinition,
  namespace: string,
  quota: JsonObject,
): Promise<Amounts> {
  const store = storage.of(resource);
  await store.cache.load();
  const scoped = isScoped(quota);
  const sum: Amounts = new Map();
  for (const entry of store.cache.list(store.scope(namespace))) {
    if (entry.error !== undefined) continue;
    const object = entryObject(entry);
    if (scoped && !inScope(quota, resource, object)) continue;
    for (const [key, nano] of chargeOf(resource, object)) sum.set(key, (sum.get(key) ?? 0n) + nano);
  }
  return sum;
}
