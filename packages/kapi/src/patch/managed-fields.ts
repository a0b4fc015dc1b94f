/**
 * `metadata.managedFields` (meta.k8s.io/v1 ManagedFieldsEntry) as a table of owners.
 *
 * An Apply entry is identified by manager and subresource, an Update entry also by its apiVersion. Written
 * in the public order: operation, time, manager, apiVersion, subresource.
 */
import { isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { own } from "../schema/json-value.ts";
import { isEmptySet, union, type FieldSet } from "./field-set.ts";
import { decodeFieldsV1, encodeFieldsV1, FieldsError } from "./fields-v1.ts";

/** Update entries kept per object; older ones are merged by version into {@link ancientManager}. */
export const maxUpdateEntries = 10;

/** Manager of merged old Update entries. */
export const ancientManager = "ancient-changes";

/** Manager to whom fields are attributed that existed before the first apply. */
export const beforeFirstApply = "before-first-apply";

/** Most entries read from one object. */
export const maxManagedEntries = 1000;

/** One owner. */
export interface ManagedEntry {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  /** RFC 3339; absent in entries that never had one. */
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** Owners by identity. */
export type Managed = Map<string, ManagedEntry>;

/** What identifies an owner. */
export type Identity = Pick<ManagedEntry, "manager" | "operation" | "apiVersion" | "subresource">;

/** The key of an owner in a {@link Managed} table; sorts by manager first. */
export function identityKey({ manager, operation, apiVersion, subresource }: Identity): string {
  return JSON.stringify([manager, operation, operation === "Apply" ? "" : apiVersion, subresource]);
}

function decodeEntry(value: unknown, index: number): ManagedEntry {
  const operation = stringAt(value, "operation");
  if (operation !== "Apply" && operation !== "Update")
    throw new FieldsError("operation must be `Apply` or `Update`");
  const apiVersion = stringAt(value, "apiVersion") ?? "";
  if (apiVersion === "") throw new FieldsError("apiVersion must not be empty");
  const fieldsType = stringAt(value, "fieldsType");
  if (fieldsType !== "FieldsV1")
    throw new FieldsError(
      `invalid fieldsType ${JSON.stringify(fieldsType ?? "")} in managed fields entry ${index}`,
    );
  const fields = isObject(value) ? own(value, "fieldsV1") : undefined;
  return {
    manager: stringAt(value, "manager") ?? "",
    operation,
    apiVersion,
    subresource: stringAt(value, "subresource") ?? "",
    time: stringAt(value, "time"),
    fields: decodeFieldsV1(fields ?? {}),
  };
}

/**
 * Reads a managedFields list; entries of one identity are one owner.
 *
 * @throws FieldsError when any entry cannot be read.
 */
export function decodeManagedFields(list: unknown): Managed {
  const managed: Managed = new Map();
  if (list === undefined || list === null) return managed;
  if (!Array.isArray(list)) throw new FieldsError("managedFields must be a list");
  if (list.length > maxManagedEntries)
    throw new FieldsError(`managedFields holds more than ${maxManagedEntries} entries`);
  list.forEach((value: unknown, i) => {
    const entry = decodeEntry(value, i);
    managed.set(identityKey(entry), entry);
  });
  return managed;
}

/** Like {@link decodeManagedFields}, with no owners where the list cannot be read. */
export function decodeManagedFieldsOrNone(list: unknown): Managed {
  try {
    return decodeManagedFields(list);
  } catch (error) {
    if (error instanceof FieldsError) return new Map();
    throw error;
  }
}

const seconds = (time: string | undefined): number => {
  const ms = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
};

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function compareEntries(a: ManagedEntry, b: ManagedEntry): number {
  return (
    compareTexts(a.operation, b.operation) ||
    seconds(a.time) - seconds(b.time) ||
    compareTexts(a.manager, b.manager) ||
    compareTexts(a.apiVersion, b.apiVersion) ||
    compareTexts(a.subresource, b.subresource)
  );
}

/** Writes a managedFields list, or `undefined` when nobody owns anything. */
export function encodeManagedFields(managed: Managed): JsonObject[] | undefined {
  if (managed.size === 0) return undefined;
  return [...managed.values()].sort(compareEntries).map((entry) => ({
    manager: entry.manager,
    operation: entry.operation,
    apiVersion: entry.apiVersion,
    ...(entry.time === undefined ? {} : { time: entry.time }),
    fieldsType: "FieldsV1",
    fieldsV1: encodeFieldsV1(entry.fields),
    ...(entry.subresource === "" ? {} : { subresource: entry.subresource }),
  }));
}

/** Replaces an owner's fields; an owner of nothing is removed. */
export function setFields(managed: Managed, key: string, entry: ManagedEntry, fields: FieldSet): void {
  if (isEmptySet(fields)) managed.delete(key);
  else managed.set(key, { ...entry, fields });
}

/** Merges the oldest Update entries by version until at most {@link maxUpdateEntries} are left, in place. */
export function capUpdateEntries(managed: Managed): void {
  const updates = [...managed].filter(([, entry]) => entry.operation === "Update");
  let count = updates.length;
  if (count <= maxUpdateEntries) return;
  updates.sort(([keyA, a], [keyB, b]) => seconds(a.time) - seconds(b.time) || compareTexts(keyA, keyB));
  const firstOfVersion = new Map<string, string>();
  for (const [key, entry] of updates) {
    if (count <= maxUpdateEntries) return;
    const first = firstOfVersion.get(entry.apiVersion);
    if (first === undefined) {
      firstOfVersion.set(entry.apiVersion, key);
      continue;
    }
    const bucketIdentity: Identity = {
      manager: ancientManager,
      operation: "Update",
      apiVersion: entry.apiVersion,
      subresource: "",
    };
    const bucket = identityKey(bucketIdentity);
    const into = managed.get(bucket) ?? managed.get(first);
    if (!into) continue;
    if (!managed.has(bucket)) managed.delete(first);
    managed.delete(key);
    managed.set(bucket, { ...bucketIdentity, time: entry.time, fields: union(into.fields, entry.fields) });
    firstOfVersion.set(entry.apiVersion, bucket);
    count--;
  }
}

/** True when a client asks for the ownership record to be emptied: `[]` or `[{}]`. */
export function isReset(list: unknown): boolean {
  if (!Array.isArray(list)) return false;
  const [only] = list;
  return list.length === 0 || (list.length === 1 && isObject(only) && Object.keys(only).length === 0);
}
