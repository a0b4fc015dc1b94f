/**
 * A value that a zone wants to store, read as the hub will read it.
 *
 * What the hub's reader refuses is lost to the hub, with the teardown that hangs on it; so a zone may store only what
 * the hub's own API server could have stored: bounded JSON without a key twice, the kind and storage version of its
 * key, metadata of the right types, a body that passes the kind's schema, and nothing the reader would drop. Whose
 * object it is and what may change in it is the business of `zone-rules.ts`.
 */
import {
  builtinResources,
  cloneJson,
  compileCrd,
  decodeManagedFields,
  duplicateFields,
  equalJson,
  measureJson,
  metadataErrors,
  normalizeMetadata,
  parseJson,
  type CrdManifest,
  type FieldError,
  type ResourceDefinition,
} from "@kontinuum/kapi";
import { at, isObject, messageOf, type JsonObject } from "@kontinuum/std";

/** Largest value a zone may store, bytes. */
export const zoneValueLimitBytes = 64 * 1024;
/** Deepest nesting of a zone's value; the kinds' own schemas need some twelve levels. */
export const zoneValueDepth = 32;
/** Most keys of all maps in a zone's value. */
export const zoneValueKeys = 4096;
/** Longest reason given, characters: it goes to the log and back to the zone. */
const refusalLimit = 300;

/** The storage version of one of our definitions. */
export function definitionOf(crd: CrdManifest): ResourceDefinition {
  const found = compileCrd(crd).find(({ version, storageVersion }) => version === storageVersion);
  if (!found) throw new TypeError("a definition serves its storage version");
  return found;
}

/** A built-in kind, e.g. `builtinOf("", "secrets")`. */
export function builtinOf(group: string, plural: string): ResourceDefinition {
  const found = builtinResources().find(
    (one) => one.group === group && one.plural === plural && one.version === "v1",
  );
  if (!found) throw new TypeError(`there is no built-in kind ${plural}.${group}`);
  return found;
}

/** Stored bytes as JSON, or `undefined` when they are none. Never throws. */
export function decodeStored(value: Uint8Array): unknown {
  try {
    return parseJson(Buffer.from(value).toString("utf8"));
  } catch {
    return undefined;
  }
}

/** A value that passed, or why it did not. */
export type ZoneValue =
  | { readonly object: JsonObject; readonly refusal?: never }
  | { readonly refusal: string };

/** Reads a zone's bytes, whatever they are. Never throws. */
export function readZoneValue(bytes: Uint8Array): ZoneValue {
  if (bytes.length > zoneValueLimitBytes)
    return { refusal: `the value is larger than ${zoneValueLimitBytes} bytes` };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const object = parseJson(text);
    if (!isObject(object)) return { refusal: "the value is not a JSON object" };
    const { depth, keys } = measureJson(object);
    if (depth > zoneValueDepth)
      return { refusal: `the value is nested deeper than ${zoneValueDepth} levels` };
    if (keys > zoneValueKeys) return { refusal: `the value has more than ${zoneValueKeys} keys` };
    const [twice] = duplicateFields(text, object);
    if (twice !== undefined) return { refusal: `the value has the key ${quoted(twice)} twice` };
    if (!isWellFormed(object)) return { refusal: "the value holds half a surrogate pair" };
    return { object };
  } catch (error) {
    return { refusal: `the value is not a JSON object: ${messageOf(error)}` };
  }
}

/** What a zone wrote, as far as a message repeats it. */
const quoted = (text: string): string => JSON.stringify(text.slice(0, 100));

function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isWellFormed);
  if (isObject(value))
    return Object.entries(value).every(([key, item]) => key.isWellFormed() && isWellFormed(item));
  return true;
}

/** Why an object is not one of `definition` as the API server stores it, or `undefined`. Never throws. */
export function storedFormRefusal(
  definition: ResourceDefinition,
  object: JsonObject,
  before: unknown,
): string | undefined {
  const { group, version, kind } = definition;
  const apiVersion = group === "" ? version : `${group}/${version}`;
  if (object["kind"] !== kind || object["apiVersion"] !== apiVersion)
    return `the value is not valid: it is not a ${kind} of ${apiVersion}`;
  try {
    return formRefusal(definition, object, isObject(before) ? before : undefined)?.slice(0, refusalLimit);
  } catch (error) {
    return `the value is not valid: ${messageOf(error)}`.slice(0, refusalLimit);
  }
}

function formRefusal(
  definition: ResourceDefinition,
  object: JsonObject,
  before: JsonObject | undefined,
): string | undefined {
  const kept = cloneJson(object);
  normalizeMetadata(kept);
  const [unknown] = definition.prune(kept);
  if (unknown !== undefined) return `the value is not valid: ${unknown} is unknown`;
  if (!equalJson(kept, object)) return "the value is not in the form in which the API server stores it";
  decodeManagedFields(at(object, "metadata", "managedFields"));
  const wrongTime = timesOf(object).find((time) => time !== undefined && !isTime(time));
  if (wrongTime !== undefined) return "the value is not valid: its metadata holds a time that is none";
  // The rules of built-in kinds and schemas are the API server's own; a write to a status is not exempt here.
  const context = { user: { name: "", groups: [] }, now: 0, subresource: "" };
  const errors: readonly FieldError[] = [
    ...metadataErrors(kept, definition),
    ...(before
      ? definition.validateUpdate(kept, cloneJson(before), context)
      : definition.validateCreate(kept, context)),
  ];
  const [first] = errors;
  return first && `the value is not valid: ${first.field}: ${first.message}`;
}

function timesOf(object: JsonObject): unknown[] {
  const managed = at(object, "metadata", "managedFields");
  return [
    at(object, "metadata", "creationTimestamp"),
    at(object, "metadata", "deletionTimestamp"),
    ...(Array.isArray(managed) ? managed.map((entry: unknown) => at(entry, "time")) : []),
  ];
}

const isTime = (value: unknown): boolean =>
  typeof value === "string" &&
  /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/.test(value) &&
  !Number.isNaN(Date.parse(value));
