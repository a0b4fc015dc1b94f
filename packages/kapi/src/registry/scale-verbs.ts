/**
 * Reading and writing the scale subresource: every write becomes a change of the parent's replicas.
 */
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson } from "../json/json.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { printBadValue } from "../schema/field-error.ts";
import { badRequest, invalid } from "../status/status.ts";
import { answerForm, sendObject } from "./answer.ts";
import { applyConfigurationTo } from "./apply.ts";
import type { RegistryDeps } from "./deps.ts";
import { metadataOf, metaText } from "./metadata.ts";
import { parseWriteOptions, type WriteOptions } from "./options.ts";
import { applyPatch, patchKind, readPatch } from "./patch.ts";
import { getEntry } from "./read.ts";
import { apiVersionOf } from "./resource-store.ts";
import { scaleColumns, scaleOf, setPath, type ScalePaths } from "./scale.ts";
import { updateObject, type Change } from "./update.ts";
import { readWriteBody } from "./write-body.ts";

type ChangeParent = (parent: JsonObject) => Change | Promise<Change>;

/** Answers get, update and patch of a scale. */
export async function serveScale(
  deps: RegistryDeps,
  context: RequestContext,
  resource: ResourceDefinition,
  paths: ScalePaths,
): Promise<void> {
  const shown = { columns: scaleColumns };
  const form = answerForm(context, resource, false);
  const { name, verb } = context.info;
  const namespace = resource.namespaced ? context.info.namespace : "";
  const now = (): number => deps.edges.clock.now();
  if (verb === "get") {
    const { store, entry } = await getEntry(deps, resource, namespace, name);
    return sendObject(context, shown, form, 200, scaleOf(await store.object(resource, entry), paths), now());
  }
  const kind = verb === "patch" ? patchKind(context, resource) : undefined;
  const optionsKind = kind === undefined ? "UpdateOptions" : "PatchOptions";
  const options = parseWriteOptions(context, optionsKind, kind === "apply");
  const change =
    kind === "apply"
      ? await applied(deps, context, resource, paths, options)
      : await changed(context, resource, paths);
  const result = await updateObject(deps, {
    context,
    resource,
    namespace,
    name,
    subresource: "scale",
    options,
    optionsKind,
    change,
    unconditional: true,
  });
  return sendObject(context, shown, form, 200, scaleOf(result.object, paths), now());
}

/** A PUT or an ordinary patch. */
async function changed(
  context: RequestContext,
  resource: ResourceDefinition,
  paths: ScalePaths,
): Promise<ChangeParent> {
  const isPatch = context.info.verb === "patch";
  const patch = isPatch ? await readPatch(context, patchKind(context, resource)) : undefined;
  const body = isPatch ? undefined : await readWriteBody(context, { origin: "builtin" });
  return (parent) => {
    const present = scaleOf(parent, paths);
    const scale = patch ? applyPatch(resource, present, patch) : cloneJson(body?.value ?? {});
    const replicas = replicasOf(scale, metaText(parent, "name"));
    if (equalJson(scale, present)) return { object: parent };
    setPath(parent, paths.specReplicas, replicas);
    const sent = metaText(scale, "resourceVersion");
    if (sent !== "") metadataOf(parent)["resourceVersion"] = sent;
    return { object: parent };
  };
}

/** Server-side apply of a scale: owned under the parent's version, as part of subresource `scale`. */
async function applied(
  deps: RegistryDeps,
  context: RequestContext,
  resource: ResourceDefinition,
  paths: ScalePaths,
  options: WriteOptions,
): Promise<ChangeParent> {
  const { value } = (await readPatch(context, "apply")).body;
  if (!isObject(value)) throw badRequest("an apply configuration must be one object");
  const { name, namespace } = context.info;
  const configuration: JsonObject = {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { name, ...(resource.namespaced ? { namespace } : {}) },
  };
  if (at(value, "spec", "replicas") !== undefined)
    setPath(configuration, paths.specReplicas, replicasOf(value, name));
  return async (parent) => ({
    object: await applyConfigurationTo(deps, resource, parent, configuration, "scale", options),
    managed: true,
  });
}

/** The wanted number. Fails with 400 and 422. */
function replicasOf(scale: JsonObject, name: string): number {
  const { kind } = scale;
  if (kind !== undefined && kind !== "Scale")
    throw badRequest(`the body must be a Scale, not ${printBadValue(kind)}`);
  const replicas = at(scale, "spec", "replicas") ?? 0;
  if (typeof replicas !== "number" || !Number.isInteger(replicas))
    throw badRequest("spec.replicas must be an integer");
  if (replicas < 0) {
    throw invalid({ group: "autoscaling", kind: "Scale" }, name, [
      {
        reason: "FieldValueInvalid",
        field: "spec.replicas",
        message: `Invalid value: ${replicas}: must be greater than or equal to 0`,
      },
    ]);
  }
  return replicas;
}
