/**
 * Patch: the four kinds of patches on the common update loop.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { applyJsonPatch, applyMergePatch, applyStrategicMergePatch } from "../patch/index.ts";
import { parseMediaType } from "../wire/media-type.ts";
import { decodeJson, decodeYaml, readBody, type DecodedBody } from "../wire/body.ts";
import { header } from "../wire/request.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { badRequest, unsupportedMediaType } from "../status/status.ts";

/** Media types of patches by kind. */
export const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/** A kind of patch. */
export type PatchKind = keyof typeof patchTypes;

/** A patch that was read. */
export interface Patch {
  readonly kind: PatchKind;
  readonly body: DecodedBody;
}

function kindOf(type: string, offered: readonly PatchKind[]): PatchKind {
  for (const kind of offered) if (patchTypes[kind] === type) return kind;
  throw unsupportedMediaType(offered.map((kind) => patchTypes[kind]));
}

/** Kinds of patches a resource takes. */
export function offeredPatches(resource: Pick<ResourceDefinition, "origin">): readonly PatchKind[] {
  return resource.origin === "builtin" ? ["json", "merge", "strategic", "apply"] : ["json", "merge", "apply"];
}

/** Decides the kind by the content type. Fails with 415. */
export function patchKind(context: RequestContext, resource: Pick<ResourceDefinition, "origin">): PatchKind {
  return kindOf(parseMediaType(header(context.request, "content-type") ?? "").type, offeredPatches(resource));
}

/** Reads a patch. Fails with 400 and 413. */
export async function readPatch(context: RequestContext, kind: PatchKind): Promise<Patch> {
  const bytes = await readBody(context.request);
  if (bytes.length === 0) throw badRequest("a patch needs a body");
  const body = kind === "apply" ? await decodeYaml(bytes) : decodeJson(bytes);
  if (kind === "json" ? !Array.isArray(body.value) : !isObject(body.value)) {
    throw badRequest(
      kind === "json" ? "a JSON patch must be an array of operations" : "a patch must be one JSON object",
    );
  }
  return { kind, body };
}

/** Applies any patch but server-side apply; changes `live` or answers a new object. */
export function applyPatch(
  resource: Pick<ResourceDefinition, "type">,
  live: JsonObject,
  { kind, body }: Patch,
): JsonObject {
  if (kind === "json") return applyJsonPatch(live, body.value);
  if (!isObject(body.value)) throw badRequest("a patch must be one JSON object");
  if (kind === "merge") return applyMergePatch(live, body.value);
  return applyStrategicMergePatch(resource.type, live, body.value);
}
