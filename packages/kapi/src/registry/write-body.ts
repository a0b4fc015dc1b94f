/**
 * The body of a write: one object, in whatever encoding the resource takes.
 */
import type { JsonObject } from "@kontinuum/std";
import { decodeProtobuf } from "../codec/index.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { badRequest } from "../status/status.ts";
import { readObjectBody, type DecodedBody } from "../wire/body.ts";

/** Reads the body of a write. Fails with 400 when it is missing. */
export async function readWriteBody(
  context: RequestContext,
  resource: Pick<ResourceDefinition, "origin">,
): Promise<DecodedBody & { readonly value: JsonObject }> {
  const body = await readObjectBody(
    context.request,
    resource.origin === "builtin" ? decodeProtobuf : undefined,
  );
  if (!body) throw badRequest("the request needs a body with one object");
  return body;
}
