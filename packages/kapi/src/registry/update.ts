/**
 * Update: the one read-modify-write loop behind PUT, every patch, and the status, scale and other subresources.
 *
 * The first round works on the cache's copy and is decided by a conditional write; when somebody else was faster, the
 * store's answer brings the newest object and the loop goes on with it, unless the request carries a
 * resourceVersion of its own. Those who were not fast enough go on in turn. A change of nothing is not written.
 */
import type { JsonObject } from "@kontinuum/std";
import type { AdmissionRequest } from "../admission/admission.ts";
import { cloneJson, equalJson } from "../json/json.ts";
import { updateManagedFields } from "../patch/index.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { conflict, invalid, notFound, StatusError } from "../status/status.ts";
import type { CacheEntry } from "../watch-cache/entry.ts";
import { checkTypeAndPlace, refine, strategyContext, type Written } from "./create.ts";
import { ignoreReadErrorOption } from "./delete-options.ts";
import type { RegistryDeps } from "./deps.ts";
import { otherVersions } from "./other-versions.ts";
import { isRemovable } from "./deletion-rules.ts";
import { reportFields } from "./field-strictness.ts";
import {
  claimForUpdate,
  dedupeOwners,
  metadataErrors,
  metadataOf,
  metaText,
  normalizeMetadata,
  timestamp,
} from "./metadata.ts";
import type { WriteOptions } from "./options.ts";
import { withRevision, type ResourceStore } from "./resource-store.ts";

/** Rounds of the loop before a conflict is answered. */
const maxRounds = 10;

/** What a change makes of the present object. */
export interface Change {
  readonly object: JsonObject;
  readonly duplicates?: readonly string[];
  /** Managed fields are already computed (server-side apply). */
  readonly managed?: boolean;
  /** Unknown fields were already dealt with. */
  readonly pruned?: boolean;
}

/** An update to carry out. */
export interface UpdateRequest {
  readonly context: RequestContext;
  readonly resource: ResourceDefinition;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
  readonly options: WriteOptions;
  readonly optionsKind: "UpdateOptions" | "PatchOptions";
  /** Makes the new object; may be called again with a newer one. `current` is the callee's own copy. */
  change(current: JsonObject): Change | Promise<Change>;
  /** Creates the object when it does not exist; absent: 404. */
  createMissing?(): Promise<Written>;
  /** True when the request's resourceVersion may be absent (patches read the newest object themselves). */
  readonly unconditional: boolean;
}

/** The answer of an update. */
export interface Updated extends Written {
  readonly created: boolean;
}

/** Runs the loop. */
export async function updateObject(deps: RegistryDeps, request: UpdateRequest): Promise<Updated> {
  const { resource, namespace, name } = request;
  const store = deps.storage.of(resource);
  const key = store.key(namespace, name);
  await store.cache.load();
  const turn: { end?: () => void } = {};
  try {
    return await runRounds(deps, request, store, key, turn);
  } finally {
    turn.end?.();
  }
}

async function runRounds(
  deps: RegistryDeps,
  request: UpdateRequest,
  store: ResourceStore,
  key: string,
  turn: { end?: () => void },
): Promise<Updated> {
  const { resource, name } = request;
  let entry: CacheEntry | undefined = store.cache.get(key);
  let trusted = false;
  for (let round = 0; round < maxRounds; round++) {
    if (!entry) {
      if (!trusted) {
        entry = await store.read(key);
        trusted = true;
        if (entry) continue;
      }
      if (!request.createMissing) throw notFound(resource, name);
      return { ...(await request.createMissing()), created: true };
    }
    if (entry.error !== undefined) throw undecodable(entry);
    let outcome: Outcome;
    try {
      outcome = await attempt(deps, request, store, entry);
    } catch (error) {
      // A refusal decided on a stale copy may be wrong: decide again on the newest one.
      if (trusted || !(error instanceof StatusError)) throw error;
      const newest = await store.read(key);
      trusted = true;
      if (newest?.revision === entry.revision) throw error;
      entry = newest;
      continue;
    }
    if (outcome.done) return { object: outcome.object, rest: outcome.rest, created: false };
    entry = outcome.current;
    trusted = true;
    if (turn.end) continue;
    turn.end = await store.turns.take(key);
    const cached = store.cache.get(key);
    if (entry && cached && cached.revision > entry.revision) {
      entry = cached;
      trusted = false;
    }
  }
  throw conflict(resource, name);
}

/** 500 for stored bytes that are no object; says how to be rid of them. */
export function undecodable(entry: CacheEntry): StatusError {
  return new StatusError(
    500,
    "StorageReadError",
    `the stored object ${entry.key} can't be decoded: ${entry.error ?? ""}; to remove it, whatever its finalizers said, delete it with ${ignoreReadErrorOption}=true`,
  );
}

type Outcome =
  | ({ readonly done: true } & Written)
  | { readonly done: false; readonly current: CacheEntry | undefined };

async function attempt(
  deps: RegistryDeps,
  request: UpdateRequest,
  store: ResourceStore,
  entry: CacheEntry,
): Promise<Outcome> {
  const { context, resource, namespace, name, subresource, options } = request;
  const old = await store.object(resource, entry);
  const change = await request.change(cloneJson(old));
  const sent = change.object;
  normalizeMetadata(sent);
  checkTypeAndPlace(resource, namespace, name, sent);
  checkPreconditions(request, sent, old);
  if (!change.pruned)
    reportFields(context, resource, options.fieldValidation, resource.prune(sent), change.duplicates ?? []);
  resource.applyDefaults(sent);
  claimForUpdate(sent, old);
  const admission: AdmissionRequest = {
    operation: "UPDATE",
    resource,
    subresource,
    namespace: resource.kind === "Namespace" ? name : namespace,
    name,
    object: sent,
    oldObject: old,
    user: context.user,
    dryRun: options.dryRun,
    housekeeping: context.housekeeping,
    options: {
      kind: request.optionsKind,
      apiVersion: "meta.k8s.io/v1",
      ...(options.dryRun ? { dryRun: ["All"] } : {}),
      fieldManager: options.fieldManager,
      fieldValidation: options.fieldValidation,
    },
    warn: (text) => context.warn(text),
    annotate: (key, value) => (context.annotations[key] = value),
  };
  await deps.admission.mutate(admission);
  const mutated = admission.object ?? sent;
  normalizeMetadata(mutated);
  if (mutated !== sent) refine(resource, mutated);
  const strategy = strategyContext(deps, context, subresource);
  resource.prepareForUpdate(mutated, old, strategy);
  dedupeOwners(mutated);
  // What a webhook changed in an applied object is the requester's, but not part of the applied configuration.
  const result =
    change.managed && mutated === sent
      ? mutated
      : await updateManagedFields({
          resource,
          before: change.managed ? sent : old,
          after: mutated,
          manager: options.fieldManager,
          operation: "Update",
          subresource,
          now: timestamp(strategy.now),
          versions: otherVersions(deps, resource),
        });
  const errors = [
    ...metadataErrors(result, resource, old),
    ...resource.validateUpdate(result, old, strategy),
  ];
  if (errors.length > 0) throw invalid(resource, name, errors);
  for (const text of resource.warnings(result)) context.warn(text);
  for (const guard of deps.guards) await guard({ context, resource, subresource, object: result, old });
  await deps.admission.validate({ ...admission, object: result });
  return write(deps, request, store, entry, old, result);
}

/** Optimistic lock and uid of the body. Fails with 409 and 422. */
function checkPreconditions(request: UpdateRequest, sent: JsonObject, old: JsonObject): void {
  const { resource, name } = request;
  const version = metaText(sent, "resourceVersion");
  if (version !== "") {
    if (!/^\d+$/.test(version)) {
      throw invalid(resource, name, [
        {
          reason: "FieldValueInvalid",
          field: "metadata.resourceVersion",
          message: `Invalid value: ${JSON.stringify(version)}: must be an unsigned integer`,
        },
      ]);
    }
    if (version !== metaText(old, "resourceVersion") && version !== "0") throw conflict(resource, name);
  }
  if ((version === "" || version === "0") && !request.unconditional) {
    throw invalid(resource, name, [
      {
        reason: "FieldValueInvalid",
        field: "metadata.resourceVersion",
        message: "Invalid value: 0: must be specified for an update",
      },
    ]);
  }
  const uid = metaText(sent, "uid");
  if (uid !== "" && uid !== metaText(old, "uid")) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metaText(old, "uid")}`,
    );
  }
}

/** Whether two states differ in nothing but the times of managed fields. */
function sameState(a: JsonObject, b: JsonObject): boolean {
  return equalJson(comparable(a), comparable(b));
}

function comparable(object: JsonObject): JsonObject {
  const { resourceVersion: _version, managedFields, ...metadata } = metadataOf(object);
  const fields = Array.isArray(managedFields)
    ? managedFields.map((entry: unknown) => {
        if (typeof entry !== "object" || entry === null) return entry;
        const { time: _time, ...rest } = entry as JsonObject;
        return rest;
      })
    : managedFields;
  return { ...object, metadata: { ...metadata, managedFields: fields } };
}

async function write(
  deps: RegistryDeps,
  request: UpdateRequest,
  store: ResourceStore,
  entry: CacheEntry,
  old: JsonObject,
  result: JsonObject,
): Promise<Outcome> {
  const { resource, options } = request;
  const removable = isRemovable(resource, result);
  const { group, version } = store.resource;
  const current = entry.apiVersion === (group === "" ? version : `${group}/${version}`);
  if (!removable && current && sameState(result, old)) {
    // The copy may be stale: only the store can say that nothing changed.
    if (options.dryRun) return { done: true, object: old };
    const newest = await store.read(entry.key);
    if (newest?.revision === entry.revision) return { done: true, object: old };
    return { done: false, current: newest };
  }
  if (options.dryRun) return { done: true, object: withRevision(result, entry.revision) };
  if (removable) {
    const removed = await store.delete(entry.key, entry.revision);
    if (!removed.done) return removed;
    return { done: true, object: withRevision(result, removed.revision) };
  }
  const { value, rest } = await store.encode(resource, result);
  const written = await deps.storage.leases.bind(deps.ttlSeconds(resource), (lease) =>
    store.update(entry.key, value, entry.revision, lease),
  );
  if (!written.done) return written;
  return { done: true, object: withRevision(result, written.revision), rest };
}
