/**
 * One stored object as the cache holds it: its encoded JSON, cut behind `metadata.resourceVersion`, plus the few
 * facts selectors need.
 *
 * Every served form is a short head (apiVersion, kind, resourceVersion) in front of the same bytes, so that a get, a
 * list item and a watch event of an object, also its deletion with the deletion's version, never encode it again.
 * Bytes in the store are not trusted: what does not decode becomes an entry with `error`, which only a delete touches.
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { KeyValue } from "@kontinuum/storage";
import { measure, parseJson, stringifyJson } from "../json/json.ts";

/** A decoded, encoded-once object. */
export interface CacheEntry {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** Empty when there is none, or none can be read. */
  readonly uid: string;
  /** Revision of the last change: `metadata.resourceVersion`. */
  readonly revision: number;
  /** As stored, which may be an older storage version. */
  readonly apiVersion: string;
  readonly kind: string;
  /** Everything after `"resourceVersion":"N",`, up to and including the closing brace. */
  readonly rest: Buffer;
  readonly labels: Readonly<Record<string, string>>;
  /** Why the stored bytes are no object of this kind. */
  readonly error?: string;
  /** The same object in other forms (versions), filled on demand. */
  forms?: Map<string, Buffer | Promise<Buffer>>;
  /** Values of selectable fields, filled on demand. */
  fields?: Map<string, string>;
}

/** Puts bytes of one object into canonical order: apiVersion, kind, metadata first. `resourceVersion` is left out. */
export function encodeStored(object: JsonObject): string {
  return storedHead(object) + encodeRest(object);
}

/** The part of {@link encodeStored} before {@link encodeRest}. */
export function storedHead({ apiVersion, kind }: JsonObject): string {
  return `{"apiVersion":${stringifyJson(apiVersion)},"kind":${stringifyJson(kind)},"metadata":{`;
}

/** The part of an object's JSON behind `metadata.resourceVersion`. */
export function encodeRest(object: JsonObject): string {
  const { apiVersion: _a, kind: _k, metadata, ...others } = object;
  const { resourceVersion: _r, ...meta } = isObject(metadata) ? metadata : {};
  const head = stringifyJson(meta).slice(1);
  const tail = stringifyJson(others);
  return tail === "{}" ? `${head}}` : `${head},${tail.slice(1)}`;
}

/** `{"apiVersion":…,"kind":…,"metadata":{"resourceVersion":"N",` */
export function objectHead(apiVersion: string, kind: string, revision: number | string): string {
  return `{"apiVersion":"${apiVersion}","kind":"${kind}","metadata":{"resourceVersion":"${revision}",`;
}

/** `{"metadata":{"resourceVersion":"N",`: items of built-in lists carry no kind. */
export function itemHead(revision: number): string {
  return `{"metadata":{"resourceVersion":"${revision}",`;
}

/** What decoding may do to an object of this kind: prune and default custom ones. `undefined`: nothing. */
export type Refine = ((object: JsonObject) => void) | undefined;

const noLabels: Readonly<Record<string, string>> = Object.freeze({});

/** Namespace and name from a key below `prefix`. */
export function splitKey(
  key: string,
  prefix: string,
  namespaced: boolean,
): { namespace: string; name: string } {
  const tail = key.slice(prefix.length);
  if (!namespaced) return { namespace: "", name: tail };
  const slash = tail.indexOf("/");
  return { namespace: tail.slice(0, Math.max(slash, 0)), name: tail.slice(slash + 1) };
}

/** Decodes one stored pair. Never throws. */
export function decodeEntry(
  kv: Pick<KeyValue, "key" | "value" | "modRevision">,
  prefix: string,
  resource: { readonly namespaced: boolean; readonly group: string; readonly kind: string },
  refine: Refine,
): CacheEntry {
  const key = kv.key.toString("utf8");
  const { namespace, name } = splitKey(key, prefix, resource.namespaced);
  const base = { key, namespace, name, revision: kv.modRevision };
  let object: unknown;
  try {
    object = parseJson(kv.value.toString("utf8"));
    return { ...base, ...shapeOf(object, kv.value, resource, namespace, name, refine) };
  } catch (error) {
    const text = error instanceof Error ? error.message : "undecodable";
    return {
      ...base,
      uid: stringAt(object, "metadata", "uid") ?? "",
      apiVersion: "",
      kind: resource.kind,
      rest: empty,
      labels: noLabels,
      error: text,
    };
  }
}

const empty = Buffer.alloc(0);

type Shape = Pick<CacheEntry, "uid" | "apiVersion" | "kind" | "rest" | "labels">;

function shapeOf(
  object: unknown,
  value: Buffer,
  resource: { readonly group: string; readonly kind: string },
  namespace: string,
  name: string,
  refine: Refine,
): Shape {
  measure(object);
  if (!isObject(object)) throw new Error("the stored value is no object");
  const { apiVersion, kind, metadata } = object;
  if (typeof apiVersion !== "string" || kind !== resource.kind) throw new Error("the stored kind is another");
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  if (group !== resource.group || !/^[a-z0-9.-]+(\/[a-z0-9]+)?$/.test(apiVersion))
    throw new Error("the stored group is another");
  if (!isObject(metadata) || metadata["name"] !== name)
    throw new Error("the stored name does not match its key");
  if ((metadata["namespace"] ?? "") !== namespace)
    throw new Error("the stored namespace does not match its key");
  const uid = typeof metadata["uid"] === "string" ? metadata["uid"] : "";
  const labels = labelsOf(metadata["labels"]);
  const canonical = `{"apiVersion":"${apiVersion}","kind":"${kind}","metadata":{`;
  if (refine) refine(object);
  else if (metadata["resourceVersion"] === undefined && startsWith(value, canonical)) {
    return { uid, apiVersion, kind, rest: value.subarray(canonical.length), labels };
  }
  return { uid, apiVersion, kind, rest: Buffer.from(encodeRest(object)), labels };
}

function startsWith(value: Buffer, text: string): boolean {
  return value.length > text.length && value.toString("latin1", 0, text.length) === text;
}

function labelsOf(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return noLabels;
  if (!isObject(value)) throw new Error("the stored labels are no map");
  for (const key in value) if (typeof value[key] !== "string") throw new Error("a stored label is no text");
  return value as Record<string, string>;
}

/** The full encoded object. */
export function entryBytes(entry: CacheEntry, revision: number = entry.revision): Buffer {
  return joinHead(objectHead(entry.apiVersion, entry.kind, revision), entry.rest);
}

/** A head in front of shared bytes. */
export function joinHead(head: string, rest: Buffer): Buffer {
  const out = Buffer.allocUnsafe(head.length + rest.length);
  out.write(head, 0, "latin1");
  rest.copy(out, head.length);
  return out;
}

/** A fresh, changeable copy of the object. */
export function entryObject(entry: CacheEntry): JsonObject {
  const value = parseJson(entryBytes(entry).toString("utf8"));
  if (!isObject(value)) throw new Error("an entry holds an object");
  return value;
}

/** Whether the object is being deleted. Parses only objects whose bytes hint at it. */
export function isDeleting(entry: CacheEntry): boolean {
  if (entry.error !== undefined || !entry.rest.includes('"deletionTimestamp":')) return false;
  return stringAt(entryObject(entry), "metadata", "deletionTimestamp") !== undefined;
}

/** A selectable field as selectors compare it: missing is empty, scalars are their text, unless `read` says more. */
export function entryField(
  entry: CacheEntry,
  path: string,
  read: (object: JsonObject, path: string) => string = fieldText,
): string {
  if (path === "metadata.name") return entry.name;
  if (path === "metadata.namespace") return entry.namespace;
  entry.fields ??= new Map();
  let value = entry.fields.get(path);
  if (value === undefined) {
    value = read(entryObject(entry), path);
    entry.fields.set(path, value);
  }
  return value;
}

/** The text of a dotted field of an object, empty when it is missing. */
export function fieldText(object: JsonObject, path: string): string {
  const value = at(object, ...path.split("."));
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint")
    return String(value);
  return "";
}
