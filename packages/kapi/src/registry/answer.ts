/**
 * Answers of the registry: one object or a list in the negotiated form, made of stored bytes wherever possible.
 *
 * A plain JSON list is a join of the cached bytes; nothing is parsed or encoded for it. JSON lists of any shape are made
 * and sent in pieces, so that a long one is never in memory as a whole.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { encodeProtobuf, encodeProtobufList, protobufMediaType } from "../codec/index.ts";
import { stringifyJson } from "../json/json.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { partialMetadata, rowOf, tableOf, type TableMeta } from "../table/table.ts";
import { itemHead, objectHead, type CacheEntry } from "../watch-cache/entry.ts";
import { negotiate, parseIncludeObject, type IncludeObject, type Negotiated } from "../wire/media-type.ts";
import { nextTurn, pieceBytes, PieceBuilder } from "../wire/pieces.ts";
import { sendBytes, sendPieces, sendValue, wantsIndent } from "../wire/respond.ts";
import { header } from "../wire/request.ts";
import type { Written } from "./create.ts";
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
    plain: resource.verbs.every((verb) => verb === "create"),
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
      tableOf(resource, [object], {
        include: form.include,
        now,
        meta: metaOf(object),
        columns: true,
        version: form.metaVersion,
      }),
      form.encoding,
    );
  }
  const shown = form.shape === "metadata" ? partialMetadata(object, form.metaVersion) : object;
  if (form.encoding === "protobuf") {
    const bytes = encodeProtobuf(shown);
    if (bytes) return sendBytes(context, status, protobufMediaType, Buffer.from(bytes));
  }
  return sendValue(context, status, shown, form.encoding);
}

/** Sends an object that was just stored: the text it was stored as, where that is what the client sees. */
export function sendWritten(
  context: RequestContext,
  resource: ResourceDefinition,
  form: AnswerForm,
  status: number,
  { object, rest }: Written,
  now: number,
): Promise<void> {
  if (rest === undefined || form.shape !== "object" || form.encoding !== "json" || wantsIndent(context))
    return sendObject(context, resource, form, status, object, now);
  const { resourceVersion } = metaOf(object);
  const text = objectHead(apiVersionOf(resource), resource.kind, resourceVersion) + rest;
  return sendBytes(context, status, "application/json", Buffer.from(text));
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
  const list = { resource, form, store, entries, meta, now };
  if (form.encoding === "json" && !wantsIndent(context))
    return sendPieces(context, 200, "application/json", jsonPieces(list));
  if (form.encoding === "protobuf") {
    const { kind, apiVersion } = plainHead(list);
    const head = { kind, apiVersion, metadata: { ...meta } };
    const bytes = await encodeProtobufList(head, itemsOf(list));
    if (bytes)
      return sendBytes(
        context,
        200,
        protobufMediaType,
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
      );
  }
  const items: JsonObject[] = [];
  for await (const some of itemsOf(list)) items.push(...some);
  return sendValue(context, 200, { ...listHead(list), [listKey(form)]: items }, form.encoding);
}

interface ListAnswer {
  readonly resource: ResourceDefinition;
  readonly form: AnswerForm;
  readonly store: ResourceStore;
  readonly entries: readonly CacheEntry[];
  readonly meta: TableMeta;
  readonly now: number;
}

/** Bytes of an item's start beyond its names, or of a row's cells. */
const itemOverhead = 200;
const listEnd = "]}\n";

/** Objects decoded before others' requests get a turn. */
const turnItems = 100;

/** What a list says of itself. */
function listHead({ resource, form, meta, now }: ListAnswer): JsonObject {
  if (form.shape === "table") {
    const { rows: _rows, ...head } = tableOf(resource, [], {
      include: form.include,
      now,
      meta,
      columns: true,
      version: form.metaVersion,
    });
    return head;
  }
  return { ...plainHead({ resource, form }), metadata: meta };
}

/** What a list of objects or of their metadata is. */
function plainHead({ resource, form }: Pick<ListAnswer, "resource" | "form">): {
  readonly kind: string;
  readonly apiVersion: string;
} {
  return form.shape === "metadata"
    ? { kind: "PartialObjectMetadataList", apiVersion: `meta.k8s.io/${form.metaVersion}` }
    : { kind: resource.listKind, apiVersion: apiVersionOf(resource) };
}

function listKey(form: AnswerForm): string {
  return form.shape === "table" ? "rows" : "items";
}

/** One object as its list shows it: built-in items do not say what they are. */
function itemOf({ resource, form, now }: ListAnswer, object: JsonObject): JsonObject {
  if (form.shape === "table")
    return rowOf(resource, object, { include: form.include, now, version: form.metaVersion });
  if (form.shape === "metadata") return partialMetadata(object, form.metaVersion);
  if (resource.origin === "custom") return object;
  const { kind: _kind, apiVersion: _version, ...item } = object;
  return item;
}

/** The items, some at a time. */
async function* itemsOf(list: ListAnswer): AsyncGenerator<readonly JsonObject[], void> {
  const { resource, store, entries } = list;
  for (let start = 0; start < entries.length; start += turnItems) {
    const items: JsonObject[] = [];
    for (const entry of entries.slice(start, start + turnItems)) {
      const made = store.object(resource, entry);
      items.push(itemOf(list, made instanceof Promise ? await made : made));
    }
    yield items;
    await nextTurn();
  }
}

/** Bytes a list's items take at most, about; no more than one piece matters. */
function expectedBytes(entries: readonly CacheEntry[]): number {
  let sum = 0;
  for (const { rest, apiVersion, kind } of entries) {
    sum += rest.length + apiVersion.length + kind.length + itemOverhead;
    if (sum >= pieceBytes) break;
  }
  return sum;
}

/** The JSON of a list, in pieces. Plain objects are the cached bytes: nothing is parsed or encoded for them. */
async function* jsonPieces(list: ListAnswer): AsyncGenerator<Buffer, void> {
  const { resource, form, store, entries } = list;
  const head = Buffer.from(`${stringifyJson(listHead(list)).slice(0, -1)},"${listKey(form)}":[`);
  const builder = new PieceBuilder(head.length + expectedBytes(entries) + listEnd.length);
  builder.add("", head);
  const apiVersion = apiVersionOf(resource);
  let comma = "";
  if (form.shape === "object") {
    const custom = resource.origin === "custom";
    for (const entry of entries) {
      const made = store.form(resource, entry);
      const rest = made instanceof Promise ? await made : made;
      const itemStart = custom
        ? objectHead(apiVersion, resource.kind, entry.revision)
        : itemHead(entry.revision);
      const piece = builder.add(comma + itemStart, rest);
      comma = ",";
      if (piece) yield piece;
    }
  } else {
    for await (const items of itemsOf(list)) {
      for (const item of items) {
        const piece = builder.add(comma, Buffer.from(stringifyJson(item)));
        comma = ",";
        if (piece) yield piece;
      }
    }
  }
  const last = builder.add(listEnd, Buffer.alloc(0));
  if (last) yield last;
  yield builder.rest();
}
