/**
 * Server-side apply (kubernetes.io "Server-Side Apply") and the bookkeeping of `metadata.managedFields` on
 * every other write.
 *
 * Pure: objects come in, new objects go out; the only outside call is the conversion of objects into other
 * versions. What the server itself sets (names, uid, versions) is never owned. A subresource's writers own
 * its fields only, writers of the main resource the rest.
 */
import { CodedError, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { ResourceDefinition } from "../resource.ts";
import { equalJson, own, put } from "../schema/json-value.ts";
import { conflictReport, type ApplyConflict } from "./apply-conflict.ts";
import { emptySet, equalSets, isEmptySet, setOfPath, union, type FieldSet } from "./field-set.ts";
import { heldByLastApplied, lastAppliedAnnotation, withLastApplied } from "./last-applied.ts";
import {
  beforeFirstApply,
  capUpdateEntries,
  decodeManagedFields,
  decodeManagedFieldsOrNone,
  encodeManagedFields,
  identityKey,
  isReset,
  type Managed,
  type ManagedEntry,
} from "./managed-fields.ts";
import { apiVersionOf, ObjectVersions, type OtherVersions } from "./object-versions.ts";
import {
  applyConfiguration,
  reconcileWithTypes,
  recordWrite,
  serverFields,
  type Application,
} from "./ownership.ts";
import type { FieldScope } from "./typed-compare.ts";
import { removeFields } from "./typed-remove.ts";
import { joinTypedErrors, typedErrors } from "./typed-value.ts";

/** kubectl's own manager: its applies take over what client-side apply recorded in the annotation. */
const kubectlManager = "kubectl";

const scopes = new WeakMap<ResourceDefinition, Map<string, FieldScope>>();

const setOfPaths = (paths: readonly string[]): FieldSet =>
  paths.reduce((set, path) => union(set, setOfPath(path)), emptySet);

/** What writers of `subresource` may own. */
function scopeOf(resource: ResourceDefinition, subresource: string): FieldScope {
  let known = scopes.get(resource);
  if (!known) {
    known = new Map();
    scopes.set(resource, known);
  }
  let scope = known.get(subresource);
  if (!scope) {
    const own = resource.resetFields[subresource];
    const others = Object.entries(resource.resetFields).flatMap(([name, paths]) =>
      name === subresource ? [] : paths,
    );
    scope = own ? { only: setOfPaths(own) } : { without: setOfPaths(others) };
    known.set(subresource, scope);
  }
  return scope;
}

function managedFieldsOf(object: JsonObject | undefined): unknown {
  const metadata = object && own(object, "metadata");
  return isObject(metadata) ? own(metadata, "managedFields") : undefined;
}

/** `object` with another managedFields list, or none. */
function withManagedFields(object: JsonObject, list: JsonObject[] | undefined): JsonObject {
  const metadata: JsonObject = isObject(object["metadata"]) ? { ...object["metadata"] } : {};
  if (list) metadata["managedFields"] = list;
  else delete metadata["managedFields"];
  return { ...object, metadata };
}

/** What the ownership record of an ordinary write starts from. */
function managedBefore(before: JsonObject | undefined, after: JsonObject, subresource: string): Managed {
  const live = managedFieldsOf(before);
  if (subresource !== "") return decodeManagedFieldsOrNone(live);
  const sent = managedFieldsOf(after);
  if (isReset(sent)) return new Map();
  const managed = decodeManagedFieldsOrNone(sent);
  // Clients that do not know the record, or send one that cannot be read, do not delete it by accident.
  return managed.size > 0 ? managed : decodeManagedFieldsOrNone(live);
}

/** An ordinary write: create, update, or a patch other than apply. */
export interface ManagedWrite {
  readonly resource: ResourceDefinition;
  /** The stored object; `undefined` on create. */
  readonly before: JsonObject | undefined;
  /** The new object; its managedFields may be what the client sent. */
  readonly after: JsonObject;
  readonly manager: string;
  readonly operation: "Update";
  /** Empty for the main resource. */
  readonly subresource: string;
  /** RFC 3339, whole seconds. */
  readonly now: string;
  readonly versions?: OtherVersions;
}

/**
 * The new object with its ownership record brought up to date. Objects whose record was emptied on purpose
 * stay without one until something is applied.
 */
export async function updateManagedFields(write: ManagedWrite): Promise<JsonObject> {
  const { resource, before, after, manager, subresource, now } = write;
  const managed = managedBefore(before, after, subresource);
  if (before && managed.size === 0) return withManagedFields(after, undefined);
  const versions = new ObjectVersions(resource, write.versions);
  const live = before ?? emptyOf(resource);
  await record(versions, managed, live, after, { resource, manager, subresource, now });
  return withManagedFields(after, encodeManagedFields(managed));
}

/** What an object is compared with when nothing is known of its past. */
function emptyOf(resource: ResourceDefinition): JsonObject {
  return resource.empty?.() ?? { apiVersion: apiVersionOf(resource), kind: resource.kind };
}

interface Writer {
  readonly resource: ResourceDefinition;
  readonly manager: string;
  readonly subresource: string;
  readonly now: string;
}

/** Adds what an Update by `writer` changed to `managed`, in place. */
async function record(
  versions: ObjectVersions,
  managed: Managed,
  before: JsonObject,
  after: JsonObject,
  writer: Writer,
): Promise<void> {
  const { resource, manager, subresource, now } = writer;
  reconcileWithTypes(versions, managed);
  const gained = await recordWrite(versions, managed, before, after, scopeOf(resource, subresource));
  if (!isEmptySet(gained)) {
    const identity = { manager, operation: "Update", apiVersion: versions.apiVersion, subresource } as const;
    const key = identityKey(identity);
    const fields = union(managed.get(key)?.fields ?? emptySet, gained);
    managed.set(key, { ...identity, time: now, fields });
  }
  capUpdateEntries(managed);
}

/** One apply request. */
export interface ApplyRequest {
  readonly resource: ResourceDefinition;
  /** The stored object in the resource's version; `undefined` when it is to be created. */
  readonly live: JsonObject | undefined;
  /** The configuration as sent. */
  readonly applied: JsonObject;
  readonly manager: string;
  readonly force: boolean;
  /** Empty for the main resource. */
  readonly subresource: string;
  /** RFC 3339, whole seconds. */
  readonly now: string;
  readonly versions?: OtherVersions;
}

/** The object to write, or why nothing is written. */
export type ApplyOutcome =
  | { readonly object: JsonObject; readonly conflicts?: undefined }
  | { readonly conflicts: ApplyConflict };

function refuse(message: string): never {
  throw new CodedError("invalid_argument", message);
}

function checkConfiguration(request: ApplyRequest, apiVersion: string): void {
  const { resource, applied } = request;
  const sent = own(applied, "apiVersion");
  if (sent !== apiVersion) {
    refuse(
      `Incorrect version specified in apply patch. Specified patch version: ${typeof sent === "string" ? sent : ""}, expected: ${apiVersion}`,
    );
  }
  const list = managedFieldsOf(applied);
  if (list !== undefined && list !== null) refuse("metadata.managedFields must be nil");
  const errors = typedErrors(resource.type, applied);
  if (errors.length === 0) return;
  const namespace = stringAt(applied, "metadata", "namespace") ?? "";
  const name = stringAt(applied, "metadata", "name") ?? "";
  refuse(
    `failed to create typed patch object (${namespace}/${name}; ${apiVersion}, Kind=${resource.kind}): ${joinTypedErrors(errors)}`,
  );
}

/**
 * The part of a configuration that this write may change: without what belongs to other subresources, and
 * without nulls where the server fills in (`creationTimestamp: null` of generated manifests).
 */
function effectiveConfiguration(request: ApplyRequest): JsonObject {
  const { resource, applied, subresource } = request;
  const { only, without } = scopeOf(resource, subresource);
  const config = without ? removeFields(resource.type, applied, without) : { ...applied };
  if (only) {
    for (const key of Object.keys(config))
      if (!standardFields.has(key) && !only.children.has(`f:${key}`)) delete config[key];
  }
  const sent = own(config, "metadata");
  if (isObject(sent)) {
    const metadata: JsonObject = {};
    const isKept = (key: string): boolean =>
      only ? key === "name" || key === "namespace" : sent[key] !== null || !serverMetadata.has(`f:${key}`);
    for (const key of Object.keys(sent)) if (isKept(key)) put(metadata, key, sent[key]);
    config["metadata"] = metadata;
  }
  return config;
}

const standardFields = new Set(["apiVersion", "kind", "metadata"]);
const serverMetadata = serverFields.children.get("f:metadata")?.children ?? new Map<string, FieldSet>();

/**
 * Applies a configuration.
 *
 * The returned object is the live one with the configuration merged in, owned fields that are no longer
 * applied removed, and its ownership record updated; equal to the live one when nothing changes.
 *
 * @throws CodedError `invalid_argument` for a configuration that is not one of this kind and version.
 */
export async function serverSideApply(request: ApplyRequest): Promise<ApplyOutcome> {
  const { resource, applied, manager, subresource, now } = request;
  const apiVersion = apiVersionOf(resource);
  checkConfiguration(request, apiVersion);
  const versions = new ObjectVersions(resource, request.versions);
  const live = withManagedFields(request.live ?? { apiVersion, kind: resource.kind }, undefined);
  const managed = decodeLive(request.live);
  if (managed.size === 0 && request.live) {
    await record(versions, managed, emptyOf(resource), live, { ...request, manager: beforeFirstApply });
  }
  reconcileWithTypes(versions, managed);
  const identity = { manager, operation: "Apply", apiVersion, subresource } as const;
  const key = identityKey(identity);
  const previous = managed.get(key);
  const application: Application = {
    versions,
    live,
    config: effectiveConfiguration(request),
    managed,
    key,
    entry: { ...identity, time: now, fields: emptySet },
    scope: scopeOf(resource, subresource),
    force: request.force,
  };
  let result = await applyConfiguration(application);
  if (result.conflicts && manager === kubectlManager) {
    const held = heldByLastApplied(resource.type, live);
    const report = conflictReport(result.conflicts, held);
    if (report) return { conflicts: report };
    result = await applyConfiguration({ ...application, force: true });
  }
  if (result.conflicts) {
    const report = conflictReport(result.conflicts, emptySet);
    if (report) return { conflicts: report };
    throw new Error("conflicts without fields");
  }
  const isChanged = !equalJson(result.object, live);
  const object = isChanged ? result.object : live;
  settleTime(result.managed, key, previous, isChanged);
  capUpdateEntries(result.managed);
  const synced =
    manager === kubectlManager && lastAppliedAnnotation(object) !== undefined
      ? withLastApplied(object, applied)
      : object;
  return { object: withManagedFields(synced, encodeManagedFields(result.managed)) };
}

function decodeLive(live: JsonObject | undefined): Managed {
  try {
    return decodeManagedFields(managedFieldsOf(live));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CodedError("invalid_argument", `failed to decode managed fields: ${why}`, { cause: error });
  }
}

/** An apply that changes neither the object nor the owner's fields keeps its time. */
function settleTime(
  managed: Managed,
  key: string,
  previous: ManagedEntry | undefined,
  isChanged: boolean,
): void {
  const entry = managed.get(key);
  if (!entry || isChanged || !previous) return;
  if (equalSets(previous.fields, entry.fields) && previous.apiVersion === entry.apiVersion)
    managed.set(key, { ...entry, time: previous.time });
}
