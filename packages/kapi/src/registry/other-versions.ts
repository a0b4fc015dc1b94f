/**
 * The other served versions of a resource, as ownership records need them.
 */
import type { JsonObject } from "@kontinuum/std";
import type { OtherVersions } from "../patch/index.ts";
import type { ResourceDefinition } from "../resource.ts";
import type { RegistryDeps } from "./deps.ts";
import { apiVersionOf } from "./resource-store.ts";

/** Types and conversions between a resource's versions. */
export function otherVersions({ resources }: RegistryDeps, resource: ResourceDefinition): OtherVersions {
  const find = (apiVersion: string): ResourceDefinition | undefined =>
    resources.versions(resource.group, resource.plural).find((other) => apiVersionOf(other) === apiVersion);
  return {
    typeOf: (apiVersion) => find(apiVersion)?.type,
    async convert(object: JsonObject, apiVersion: string): Promise<JsonObject> {
      const [converted] = (await resource.convert?.([object], apiVersion)) ?? [];
      return converted ?? { ...object, apiVersion };
    },
  };
}
