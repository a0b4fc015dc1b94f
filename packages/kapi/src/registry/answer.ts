/**
 * Answers of the registry: one object or a list in the negotiated form, made of stored bytes wherever possible.
 *
 * A plain JSON list is a join of the cached bytes; nothing is parsed or encoded for it.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { encodeProtobuf, protobufMediaType } from "../codec/index.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { partialMetadata, tableOf, type TableMeta } from "../table/table.ts";
import { itemHead, objectHead, type CacheEntry } from "../watch-cache/entry.ts";
import { negotiate, parseIncludeObject, type IncludeObject, type Negotiated } from "../wire/media-type.ts";
import { sendBytes, sendValue, wantsIndent } from "../wire/respond.ts";
import { header } from "../wire/request.ts";
import type { ListPage } from "./read.ts";
import { apiVersionOf, type ResourceStore } from "./resource-store.ts";

/** The form of an answer and what its rows carry. */
export interface AnswerForm extends Negotiated {
  readonly include: IncludeObject;
}

/** Negotiates an answer. Fails with 406 and 400. */
export function answerForm(context: RequestContext, resource: ResourceDefinition, list: boolean): AnswerForm {
  const form = negotiate(header(context.request, "accept"), {
    list,
    protobuf: resource.origin === "builtin",
    yaml: true,
  });
  const include =
    form.shape === "table" ? parseIncludeObject(context.parameter("includeObject")) : "Metadata";
  return { ...form, include };
}

function metaOf(object: JsonObject): TableMeta {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  return { resourceVersion: String(metadata["resourceVersion"] ?? "") };
}

/** Sends an object that was just made or changed. */
export async function sendObject(
  context: RequestContext,
  resource: Pick<ResourceDefinition, "columns" | "rowConditions">,
  form: AnswerForm,
  status: number,
  object: JsonObject,
  now: number,
): Promise<void> {
  if (form.shape === "table") {
    return sendValue(
      context,
      status,
      tableOf(resource, [object], { include: form.include, now, meta: metaOf(object), columns: true }),
      form.encoding,
    );
  }
  if (form.shape === "metadata") return sendValue(context, status, partialMetadata(object), form.encoding);
  if (form.encoding === "protobuf") {
    const bytes = encodeProtobuf(object);
    if (bytes) return sendBytes(context, status, protobufMediaType, Buffer.from(bytes));
  }
  return sendValue(context, status, object, form.encoding);
}

/** Sends a cached object. */
export async function sendEntry(
  context: RequestContext,
  resource: ResourceDefinition,
  form: AnswerForm,
  store: ResourceStore,
  entry: CacheEntry,
  now: number,
): Promise<void> {
  const made = store.form(resource, entry);
  const rest = made instanceof Promise ? await made : made;
  if (form.shape === "object" && form.encoding === "json" && !wantsIndent(context)) {
    return sendBytes(context, 200, "application/json", store.bytes(resource, entry, rest));
  }
  return sendObject(context, resource, form, 200, await store.object(resource, entry), now);
}

/** Sends a page of a list. */
export async function sendList(
  context: RequestContext,
  resource: ResourceDefinition,
  form: AnswerForm,
  page: ListPage,
  now: number,
): Promise<void> {
  const { store, entries } = page;
  for (const entry of page.broken)
    context.warn(
      `${resource.plural} ${entry.key} can't be decoded and is left out; reading it by name says why and how to remove it`,
    );
  await store.prepareForms(resource, entries);
  const meta = {
    resourceVersion: String(page.revision),
    ...(page.continueToken === undefined ? {} : { continue: page.continueToken }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
  if (form.shape === "object" && form.encoding === "json" && !wantsIndent(context)) {
    return sendBytes(context, 200, "application/json", await joinList(resource, store, entries, meta));
  }
  const objects: JsonObject[] = [];
  for (const entry of entries) objects.push(await store.object(resource, entry));
  if (form.shape === "table") {
    return sendValue(
      context,
      200,
      tableOf(resource, objects, { include: form.include, now, meta, columns: true }),
      form.encoding,
    );
  }
  if (form.shape === "metadata") {
    const list = {
      kind: "PartialObjectMetadataList",
      apiVersion: "meta.k8s.io/v1",
      metadata: meta,
      items: objects.map(partialMetadata),
    };
    return sendValue(context, 200, list, form.encoding);
  }
  const list: JsonObject = {
    kind: resource.listKind,
    apiVersion: apiVersionOf(resource),
    metadata: meta,
    items:
      resource.origin === "custom"
        ? objects
        : objects.map(({ kind: _kind, apiVersion: _version, ...item }) => item),
  };
  if (form.encoding === "protobuf") {
    const bytes = encodeProtobuf(list);
    if (bytes) return sendBytes(context, 200, protobufMediaType, Buffer.from(bytes));
  }
  return sendValue(context, 200, list, form.encoding);
}

/** Joins cached bytes to the JSON of a list. */
async function joinList(
  resource: ResourceDefinition,
  store: ResourceStore,
  entries: readonly CacheEntry[],
  meta: JsonObject,
): Promise<Buffer> {
  const apiVersion = apiVersionOf(resource);
  const custom = resource.origin === "custom";
  const start = `{"kind":"${resource.listKind}","apiVersion":"${apiVersion}","metadata":${JSON.stringify(meta)},"items":[`;
  const rests: Buffer[] = [];
  const heads: string[] = [];
  let size = Buffer.byteLength(start) + 3;
  for (const entry of entries) {
    const made = store.form(resource, entry);
    const rest = made instanceof Promise ? await made : made;
    const head = custom ? objectHead(apiVersion, resource.kind, entry.revision) : itemHead(entry.revision);
    rests.push(rest);
    heads.push(head);
    size += head.length + rest.length + 1;
  }
  const out = Buffer.allocUnsafe(size);
  let at = out.write(start, 0, "utf8");
  for (let i = 0; i < rests.length; i++) {
    if (i > 0) out[at++] = 0x2c;
    at += out.write(heads[i] ?? "", at, "latin1");
    at += rests[i]?.copy(out, at) ?? 0;
  }
  at += out.write("]}\n", at, "latin1");
  return out.subarray(0, at);
}
