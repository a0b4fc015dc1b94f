/**
 * Delete and deletecollection: preconditions, propagation, finalizers, grace, removal.
 *
 * What can't be decoded is removed only when the request says so: nobody can tell what it held, so neither its
 * finalizers nor its dependents are honoured. Preconditions, admission and dry run hold for it as for everything.
 */
import type { JsonObject } from "@kontinuum/std";
import type { AdmissionRequest } from "../admission/admission.ts";
import { cloneJson } from "../json/json.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { invalid as invalidField } from "../schema/field-error.ts";
import { conflict, invalid, notFound, StatusError } from "../status/status.ts";
import { encodeStored, entryObject, type CacheEntry } from "../watch-cache/entry.ts";
import { ignoreReadErrorOption, type DeleteOptions, type Propagation } from "./delete-options.ts";
import { beginDeletion, gracePeriod, isHeld } from "./deletion-rules.ts";
import type { RegistryDeps } from "./deps.ts";
import {
  finalizersOf,
  foregroundFinalizer,
  metadataOf,
  metaText,
  orphanFinalizer,
  setFinalizers,
  timestamp,
} from "./metadata.ts";
import { withRevision, type ResourceStore } from "./resource-store.ts";
import { undecodable } from "./update.ts";

const maxRounds = 10;

/** The verb that {@link ignoreReadErrorOption} needs besides `delete` (kubernetes.io, "API concepts", force deletion). */
const ignoreReadErrorVerb = "unsafe-delete-ignore-read-errors";

/** What a delete did. */
export interface Deleted {
  /** Gone, or only marked (or, on a dry run, would be). */
  readonly removed: boolean;
  readonly object: JsonObject;
}

/** A delete to carry out. */
export interface DeleteRequest {
  readonly context: RequestContext;
  readonly resource: ResourceDefinition;
  readonly namespace: string;
  readonly name: string;
  readonly options: DeleteOptions;
}

/** Deletes one object. Fails with 404, 409 and what admission says. */
export async function deleteObject(deps: RegistryDeps, request: DeleteRequest): Promise<Deleted> {
  const { resource, namespace, name } = request;
  const store = deps.storage.of(resource);
  const key = store.key(namespace, name);
  for (let round = 0; round < maxRounds; round++) {
    const entry = await store.read(key);
    if (!entry) throw notFound(resource, name);
    const outcome =
      entry.error === undefined
        ? await attempt(deps, request, store, entry)
        : await dropBroken(deps, request, store, entry);
    if (outcome) return outcome;
  }
  throw conflict(resource, name);
}

/** Removes what can't be decoded, when that was asked for. Fails with 500 `StorageReadError` otherwise, 403 and 409. */
async function dropBroken(
  deps: RegistryDeps,
  request: DeleteRequest,
  store: ResourceStore,
  entry: CacheEntry,
): Promise<Deleted | undefined> {
  const { context, name, options } = request;
  if (!options.ignoreReadError) throw undecodable(entry);
  await deps.authorize(context, ignoreReadErrorVerb);
  const object: JsonObject = {
    metadata: {
      name,
      ...(entry.uid === "" ? {} : { uid: entry.uid }),
      resourceVersion: String(entry.revision),
    },
  };
  checkPreconditions(request, object);
  await admit(deps, request, undefined);
  if (options.dryRun) return { removed: true, object };
  const written = await store.delete(entry.key, entry.revision);
  if (!written.done) return undefined;
  deps.edges.log.warn("an object that can't be decoded was deleted on request", {
    storageKey: entry.key,
    user: context.user.name,
    reason: entry.error,
  });
  return { removed: true, object: withRevision(object, written.revision) };
}

/** Asks admission. `object` is absent when it can't be decoded. */
async function admit(
  deps: RegistryDeps,
  request: DeleteRequest,
  object: JsonObject | undefined,
): Promise<void> {
  const { context, resource, namespace, name, options } = request;
  const admission: AdmissionRequest = {
    operation: "DELETE",
    resource,
    subresource: "",
    namespace: resource.kind === "Namespace" ? name : namespace,
    name,
    object: undefined,
    oldObject: object,
    user: context.user,
    dryRun: options.dryRun,
    housekeeping: context.housekeeping,
    options: {
      kind: "DeleteOptions",
      apiVersion: "meta.k8s.io/v1",
      ...(options.dryRun ? { dryRun: ["All"] } : {}),
    },
    warn: (text) => context.warn(text),
    annotate: (annotation, value) => (context.annotations[annotation] = value),
  };
  await deps.admission.mutate(admission);
  await deps.admission.validate(admission);
}

/** One round; `undefined` when the object changed meanwhile. */
async function attempt(
  deps: RegistryDeps,
  request: DeleteRequest,
  store: ResourceStore,
  entry: CacheEntry,
): Promise<Deleted | undefined> {
  const { resource, options } = request;
  const object = await currentObject(resource, store, entry);
  checkPreconditions(request, object);
  await admit(deps, request, object);
  const now = deps.edges.clock.now();
  const marked = cloneJson(object);
  const already = metaText(object, "deletionTimestamp") !== "";
  setFinalizers(marked, finalizersAfter(resource, marked, options.propagation));
  if (!already) beginDeletion(resource, marked, timestamp(now));
  const grace = gracePeriod(resource, object, options.gracePeriodSeconds);
  if (finalizersOf(marked).length === 0 && !isHeld(resource, marked) && grace === 0) {
    if (options.dryRun) return { removed: true, object };
    const written = await store.delete(entry.key, entry.revision);
    return written.done ? { removed: true, object: withRevision(object, written.revision) } : undefined;
  }
  const metadata = metadataOf(marked);
  if (!already) {
    metadata["deletionTimestamp"] = timestamp(now + grace * 1000);
    metadata["deletionGracePeriodSeconds"] = grace;
    if (typeof metadata["generation"] === "number") metadata["generation"] += 1;
  } else if (grace < Number(metadata["deletionGracePeriodSeconds"] ?? 0)) {
    metadata["deletionGracePeriodSeconds"] = grace;
    metadata["deletionTimestamp"] = timestamp(now + grace * 1000);
  } else if (sameList(finalizersOf(marked), finalizersOf(object))) {
    return { removed: false, object };
  }
  if (options.dryRun) return { removed: false, object: marked };
  const written = await store.update(
    entry.key,
    await encodeAsStored(resource, store, entry, marked),
    entry.revision,
    0n,
  );
  return written.done ? { removed: false, object: withRevision(marked, written.revision) } : undefined;
}

/** The object in the asked version; in its stored form when its conversion is dead, so that deleting never depends on it. */
async function currentObject(
  resource: ResourceDefinition,
  store: ResourceStore,
  entry: CacheEntry,
): Promise<JsonObject> {
  try {
    return await store.object(resource, entry);
  } catch {
    return entryObject(entry);
  }
}

async function encodeAsStored(
  resource: ResourceDefinition,
  store: ResourceStore,
  entry: CacheEntry,
  object: JsonObject,
): Promise<string> {
  if (object["apiVersion"] === entry.apiVersion) return encodeStored(object);
  return (await store.encode(resource, object)).value;
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

function checkPreconditions(request: DeleteRequest, object: JsonObject): void {
  const { resource, name, options } = request;
  const uid = metaText(object, "uid");
  const version = metaText(object, "resourceVersion");
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      resource,
      name,
      `the UID in the precondition (${options.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    );
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== version) {
    throw conflict(
      resource,
      name,
      `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${version}). The object might have been modified`,
    );
  }
}

/** Finalizers once the propagation is decided. */
function finalizersAfter(
  resource: ResourceDefinition,
  object: JsonObject,
  asked: Propagation | undefined,
): readonly string[] {
  const present = finalizersOf(object);
  const others = present.filter(
    (finalizer) => finalizer !== orphanFinalizer && finalizer !== foregroundFinalizer,
  );
  if (asked === undefined) {
    if (present.length !== others.length) return present;
    return resource.defaultPropagation === "Orphan" ? [...others, orphanFinalizer] : others;
  }
  if (asked === "Orphan") return [...others, orphanFinalizer];
  if (asked === "Foreground") return [...others, foregroundFinalizer];
  return others;
}

/** Objects of a collection. */
export interface CollectionEntries {
  readonly entries: readonly CacheEntry[];
  /** Those that can't be decoded; no selector tells whether they are meant. */
  readonly broken: readonly CacheEntry[];
}

/**
 * Deletes what matches, one after another; answers what was there. What can't be decoded stays: when any is among an
 * unselected collection, the answer is 500 `StorageReadError` after everything else was deleted.
 */
export async function deleteMatching(
  deps: RegistryDeps,
  request: Omit<DeleteRequest, "name" | "namespace">,
  { entries, broken }: CollectionEntries,
): Promise<readonly CacheEntry[]> {
  if (request.options.ignoreReadError) {
    throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", [
      invalidField(
        ignoreReadErrorOption,
        true,
        "is not allowed with DELETECOLLECTION, try again after removing the option",
      ),
    ]);
  }
  const done: CacheEntry[] = [];
  for (const entry of entries) {
    if (request.context.signal.aborted) break;
    try {
      await deleteObject(deps, { ...request, namespace: entry.namespace, name: entry.name });
    } catch (error) {
      if (!(error instanceof StatusError && error.code === 404)) throw error;
    }
    done.push(entry);
  }
  const [unread] = broken;
  if (unread) throw undecodable(unread);
  return done;
}
