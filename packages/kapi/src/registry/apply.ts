/**
 * Server-side apply on the common update loop.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { cloneJson } from "../json/json.ts";
import { serverSideApply } from "../patch/index.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { plainText } from "../schema/json-value.ts";
import { badRequest, StatusError } from "../status/status.ts";
import type { RegistryDeps } from "./deps.ts";
import { metadataOf, timestamp } from "./metadata.ts";
import type { WriteOptions } from "./options.ts";
import { otherVersions } from "./other-versions.ts";
import type { Patch } from "./patch.ts";

/** The configuration of an apply request. Fails with 400. */
export function configurationOf(
  context: RequestContext,
  resource: ResourceDefinition,
  patch: Patch,
): JsonObject {
  const { value } = patch.body;
  if (!isObject(value)) throw badRequest("an apply configuration must be one object");
  const configuration = cloneJson(value);
  const metadata = metadataOf(configuration);
  const { name, namespace } = context.info;
  if (metadata["name"] === undefined) metadata["name"] = name;
  else if (metadata["name"] !== name)
    throw badRequest(
      `the name of the object (${plainText(metadata["name"])}) does not match the name on the URL (${name})`,
    );
  if (resource.namespaced && metadata["namespace"] === undefined) metadata["namespace"] = namespace;
  return configuration;
}

/** Merges a configuration into the live object (or into nothing). Fails with 409 and the conflicts. */
export async function applyConfigurationTo(
  deps: RegistryDeps,
  resource: ResourceDefinition,
  live: JsonObject | undefined,
  applied: JsonObject,
  subresource: string,
  options: WriteOptions,
): Promise<JsonObject> {
  const outcome = await serverSideApply({
    resource,
    live,
    applied,
    manager: options.fieldManager,
    force: options.force,
    subresource,
    now: timestamp(deps.edges.clock.now()),
    versions: otherVersions(deps, resource),
  });
  if (!outcome.conflicts) return outcome.object;
  throw new StatusError(409, "Conflict", outcome.conflicts.message, { causes: outcome.conflicts.causes });
}
