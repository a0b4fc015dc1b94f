/**
 * `pods/<name>/binding` and `pods/<name>/eviction`: small writes with a body of their own kind.
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { badRequest, conflict } from "../status/status.ts";
import { sendValue } from "../wire/respond.ts";
import { deleteObject } from "./delete.ts";
import { parseDeleteOptions } from "./delete-options.ts";
import type { RegistryDeps } from "./deps.ts";
import type { SpecialHandler } from "./handler.ts";
import { readWriteBody } from "./write-body.ts";
import { metadataOf } from "./metadata.ts";
import { parseWriteOptions } from "./options.ts";
import { updateObject } from "./update.ts";

const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

/** Handlers by `pods/<subresource>`. */
export function podHandlers(deps: RegistryDeps): ReadonlyMap<string, SpecialHandler> {
  return new Map<string, SpecialHandler>([
    ["pods/binding", (context, resource) => bind(deps, context, resource)],
    ["pods/eviction", (context, resource) => evict(deps, context, resource)],
  ]);
}

async function bind(
  deps: RegistryDeps,
  context: RequestContext,
  resource: ResourceDefinition,
): Promise<void> {
  const options = parseWriteOptions(context, "CreateOptions");
  const { value } = await readWriteBody(context, resource);
  const node = stringAt(value, "target", "name") ?? "";
  // What the address says need not be said again.
  if ((value["kind"] ?? "Binding") !== "Binding" || node === "")
    throw badRequest("the body must be a Binding with target.name");
  const { namespace, name } = context.info;
  await updateObject(deps, {
    context,
    resource,
    namespace,
    name,
    subresource: "binding",
    options,
    optionsKind: "UpdateOptions",
    unconditional: true,
    change(pod: JsonObject) {
      const present = stringAt(pod, "spec", "nodeName") ?? "";
      if (present !== "")
        throw conflict(resource, name, `pod ${name} is already assigned to node ${JSON.stringify(present)}`);
      const spec = isObject(pod["spec"]) ? pod["spec"] : {};
      pod["spec"] = { ...spec, nodeName: node };
      const annotations = at(value, "metadata", "annotations");
      if (isObject(annotations)) {
        const metadata = metadataOf(pod);
        metadata["annotations"] = {
          ...(isObject(metadata["annotations"]) ? metadata["annotations"] : {}),
          ...annotations,
        };
      }
      return { object: pod };
    },
  });
  return sendValue(context, 201, success);
}

async function evict(
  deps: RegistryDeps,
  context: RequestContext,
  resource: ResourceDefinition,
): Promise<void> {
  const { value } = await readWriteBody(context, resource);
  if ((value["kind"] ?? "Eviction") !== "Eviction") throw badRequest("the body must be an Eviction");
  const { dryRun } = parseWriteOptions(context, "CreateOptions");
  const sent = value["deleteOptions"] ?? {};
  if (!isObject(sent)) throw badRequest("deleteOptions must be an object");
  const options = parseDeleteOptions(context, { ...sent, kind: "DeleteOptions" });
  const { namespace, name } = context.info;
  await deleteObject(deps, {
    context,
    resource,
    namespace,
    name,
    // Either place may ask for a dry run: the one of the request and the one of the delete it stands for.
    options: { ...options, dryRun: options.dryRun || dryRun },
  });
  return sendValue(context, 201, success);
}
