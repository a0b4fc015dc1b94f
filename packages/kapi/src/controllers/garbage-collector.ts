/**
 * Owners and dependents: deletes what nobody owns any more, and carries out foreground and orphaning deletes.
 *
 * The index of who owns whom is kept from the watch caches of every deletable resource and only says where to look.
 * Every decision is made on objects read from the store itself: an owner is absent when the store has no such
 * object, or one with another uid. What can't be decoded is never deleted here, and an owner that can't be decoded
 * still owns.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { isObject, messageOf, stringAt, type Edges, type JsonObject } from "@kontinuum/std";
import {
  finalizersOf,
  foregroundFinalizer,
  metadataOf,
  metaText,
  orphanFinalizer,
  timestamp,
} from "../registry/metadata.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceDefinition } from "../resource.ts";
import { entryObject, isDeleting, type CacheEntry } from "../watch-cache/entry.ts";
import { CacheWorker, type Change } from "./cache-worker.ts";
import { call, failedWith } from "./call.ts";
import { collectionPath, deletableResources, objectPath } from "./object-path.ts";

/** Owners of a kind nobody serves (yet) are looked for again after this long. */
const unknownOwnerMs = 30_000;
/** Foreground deletion looks again at owners whose dependents are still there. */
const waitingMs = 1_000;

/** What the collector needs. */
export interface GarbageCollectorOptions {
  readonly edges: Edges;
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly transport: Transport;
}

interface OwnerRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly blocking: boolean;
  readonly raw: JsonObject;
}

/** An owner as the index remembers it. */
type OwnerName = Pick<OwnerRef, "kind" | "name" | "uid">;

interface Followed {
  readonly resource: ResourceDefinition;
  readonly store: ResourceStore;
  readonly stop: () => void;
}

/** The garbage collector. */
export class GarbageCollector implements Controller {
  readonly name = "garbage-collector";
  readonly #options: GarbageCollectorOptions;
  readonly #worker: CacheWorker;
  /** By `<group>/<plural>`. */
  readonly #followed = new Map<string, Followed>();
  /** Storage keys of dependents by owner uid, and the owners of each dependent. */
  readonly #dependents = new Map<string, Set<string>>();
  readonly #owners = new Map<string, readonly OwnerName[]>();
  /** Storage keys of owners that wait for their dependents to go, by uid. */
  readonly #waiting = new Map<string, string>();

  constructor(options: GarbageCollectorOptions) {
    this.#options = options;
    const { clock, log } = options.edges;
    this.#worker = new CacheWorker({ name: this.name, clock, log, reconcile: (key) => this.#reconcile(key) });
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const { resources } = this.#options;
    await this.#followAll();
    const unwatch = resources.onChange(() => void this.#followAll().catch(() => {}));
    try {
      await this.#worker.run(signal);
    } finally {
      unwatch();
      for (const { stop } of this.#followed.values()) stop();
      this.#followed.clear();
    }
  }

  async #followAll(): Promise<void> {
    const { resources, storage, edges } = this.#options;
    const wanted = new Map(
      deletableResources(resources.all()).map((resource) => [
        `${resource.group}/${resource.plural}`,
        resource,
      ]),
    );
    for (const [id, { stop, store }] of this.#followed) {
      if (wanted.has(id) && !store.cache.closed) continue;
      stop();
      this.#followed.delete(id);
    }
    for (const [id, resource] of wanted) {
      if (this.#followed.has(id)) continue;
      const store = storage.of(resource);
      this.#followed.set(id, { resource, store, stop: () => {} });
      try {
        await store.cache.load();
        const stop = this.#worker.follow(store.cache, (change) => this.#seen(change));
        this.#followed.set(id, { resource, store, stop });
      } catch (error) {
        this.#followed.delete(id);
        edges.log.debug("garbage collector can't follow a resource", {
          resource: id,
          reason: messageOf(error),
        });
      }
    }
  }

  /** Keeps the index and says what to look at. */
  #seen({ key, entry, previous }: Change): readonly string[] {
    const work: string[] = [];
    const owners = entry ? ownersOf(entry).map(({ kind, name, uid }) => ({ kind, name, uid })) : [];
    const before = this.#owners.get(key) ?? [];
    for (const { uid } of before) {
      if (owners.some((owner) => owner.uid === uid)) continue;
      const set = this.#dependents.get(uid);
      set?.delete(key);
      if (set?.size === 0) this.#dependents.delete(uid);
    }
    for (const { uid } of owners) {
      const set = this.#dependents.get(uid);
      if (set) set.add(key);
      else this.#dependents.set(uid, new Set([key]));
    }
    if (owners.length > 0) this.#owners.set(key, owners);
    else this.#owners.delete(key);
    if (owners.length > 0 && entry && !isDeleting(entry)) work.push(`dependent ${key}`);
    if (entry && isGoing(entry)) work.push(`owner ${key}`);
    if (!entry) {
      for (const dependent of previous ? (this.#dependents.get(previous.uid) ?? []) : this.#dependentsOn(key))
        work.push(`dependent ${dependent}`);
      // Owners that wait for this one in the foreground are looked at again at once.
      for (const { uid } of before) {
        const owner = this.#waiting.get(uid);
        if (owner) work.push(`owner ${owner}`);
      }
    }
    return work;
  }

  /**
   * Dependents of whatever is stored under a key. An object that can't be decoded has no uid to look up, so that its
   * end is noticed by its kind and name; rare enough to go through all dependents.
   */
  *#dependentsOn(key: string): Iterable<string> {
    const place = this.#placeOf(key);
    if (!place) return;
    const { kind } = place.resource;
    const name = key.slice(key.lastIndexOf("/") + 1);
    for (const [dependent, owners] of this.#owners)
      if (owners.some((owner) => owner.kind === kind && owner.name === name)) yield dependent;
  }

  #placeOf(key: string): Followed | undefined {
    for (const followed of this.#followed.values())
      if (key.startsWith(followed.store.prefix)) return followed;
    return undefined;
  }

  async #reconcile(work: string): Promise<number | undefined> {
    const space = work.indexOf(" ");
    const key = work.slice(space + 1);
    const place = this.#placeOf(key);
    if (!place) return undefined;
    const entry = await place.store.read(key);
    if (!entry || entry.error !== undefined) return undefined;
    return work.startsWith("owner") ? this.#owner(place, entry) : this.#dependent(place, entry);
  }

  async #dependent({ resource }: Followed, entry: CacheEntry): Promise<number | undefined> {
    const object = entryObject(entry);
    const going = metaText(object, "deletionTimestamp") !== "";
    if (going && !finalizersOf(object).includes(foregroundFinalizer)) return undefined;
    const owners = ownersOf(entry);
    if (owners.length === 0) return undefined;
    const solid: OwnerRef[] = [];
    const waiting: OwnerRef[] = [];
    for (const owner of owners) {
      const state = await this.#ownerState(resource, entry, owner);
      if (state === "unknown") return unknownOwnerMs;
      if (state === "invalid") {
        await this.#reportInvalid(resource, entry, owner);
        return undefined;
      }
      if (state === "solid") solid.push(owner);
      else if (state === "waiting") waiting.push(owner);
    }
    if (solid.length > 0) {
      if (solid.length === owners.length) return undefined;
      await this.#patch(resource, entry, { ownerReferences: solid.map(({ raw }) => raw) });
      return undefined;
    }
    if (going) return undefined;
    const finalizers = finalizersOf(object);
    const hasDependents = (this.#dependents.get(entry.uid)?.size ?? 0) > 0;
    let policy = "Background";
    if (finalizers.includes(orphanFinalizer)) policy = "Orphan";
    else if (finalizers.includes(foregroundFinalizer) || (waiting.length > 0 && hasDependents))
      policy = "Foreground";
    if (
      policy === "Foreground" &&
      owners.some(({ blocking }) => blocking) &&
      (await this.#isInCircle(entry))
    ) {
      // Whoever waits for this one is waited for by it: it stops holding up its owners. The change brings it back here.
      const ownerReferences = owners.map(({ raw }) => ({ ...raw, blockOwnerDeletion: false }));
      await this.#patch(resource, entry, { ownerReferences });
      return undefined;
    }
    await this.#delete(resource, entry, policy);
    return undefined;
  }

  /** Whether one of an object's dependents waits for its own dependents: then the owners may go round in a circle. */
  async #isInCircle(entry: CacheEntry): Promise<boolean> {
    for (const key of this.#dependents.get(entry.uid) ?? []) {
      const found = await this.#placeOf(key)?.store.read(key);
      if (found && found.error === undefined && isWaitingForDependents(found)) return true;
    }
    return false;
  }

  async #ownerState(
    resource: ResourceDefinition,
    entry: CacheEntry,
    owner: OwnerRef,
  ): Promise<"solid" | "waiting" | "absent" | "unknown" | "invalid"> {
    const { resources, storage } = this.#options;
    const slash = owner.apiVersion.indexOf("/");
    const group = slash === -1 ? "" : owner.apiVersion.slice(0, slash);
    const version = owner.apiVersion.slice(slash + 1);
    const kind =
      resources.byKind(group, version, owner.kind) ??
      resources.all().find((other) => other.group === group && other.kind === owner.kind);
    if (!kind || !kind.verbs.includes("get")) return "unknown";
    if (kind.namespaced && !resource.namespaced) return "invalid";
    const store = storage.of(kind);
    const found = await store.read(store.key(kind.namespaced ? entry.namespace : "", owner.name));
    if (!found || (found.uid !== owner.uid && found.error === undefined)) return "absent";
    return isWaitingForDependents(found) ? "waiting" : "solid";
  }

  /** A deleting object that asked for its dependents to be deleted first, or to be left alone. */
  async #owner({ resource }: Followed, entry: CacheEntry): Promise<number | undefined> {
    const object = entryObject(entry);
    if (metaText(object, "deletionTimestamp") === "") return undefined;
    const finalizers = finalizersOf(object);
    const orphaning = finalizers.includes(orphanFinalizer);
    if (!orphaning && !finalizers.includes(foregroundFinalizer)) {
      this.#waiting.delete(entry.uid);
      return undefined;
    }
    // Decide only when every cache is up to date: an unseen dependent would be lost.
    await Promise.all([...this.#followed.values()].map(({ store }) => store.cache.fresh()));
    const dependents = [...(this.#dependents.get(entry.uid) ?? [])];
    if (orphaning) {
      for (const key of dependents) await this.#orphan(key, entry.uid);
      await this.#patch(resource, entry, {
        finalizers: finalizers.filter((finalizer) => finalizer !== orphanFinalizer),
      });
      return undefined;
    }
    let blocked = false;
    for (const key of dependents) {
      const place = this.#placeOf(key);
      const dependent = place && (await place.store.read(key));
      if (!dependent || dependent.error !== undefined) continue;
      const reference = ownersOf(dependent).find(({ uid }) => uid === entry.uid);
      if (!reference) continue;
      blocked ||= reference.blocking;
      this.#worker.mark(`dependent ${key}`);
    }
    if (blocked) {
      this.#waiting.set(entry.uid, entry.key);
      return waitingMs;
    }
    this.#waiting.delete(entry.uid);
    await this.#patch(resource, entry, {
      finalizers: finalizers.filter((finalizer) => finalizer !== foregroundFinalizer),
    });
    return undefined;
  }

  async #orphan(key: string, uid: string): Promise<void> {
    const place = this.#placeOf(key);
    const entry = place && (await place.store.read(key));
    if (!place || !entry || entry.error !== undefined) return;
    const left = ownersOf(entry).filter((owner) => owner.uid !== uid);
    await this.#patch(place.resource, entry, {
      ownerReferences: left.length === 0 ? null : left.map(({ raw }) => raw),
    });
  }

  /** Changes metadata of exactly the object that was looked at; a change in between comes back as an event. */
  async #patch(resource: ResourceDefinition, entry: CacheEntry, metadata: JsonObject): Promise<void> {
    try {
      await call(this.#options.transport, "PATCH", objectPath(resource, entry.namespace, entry.name), {
        metadata: { uid: entry.uid, resourceVersion: String(entry.revision), ...metadata },
      });
    } catch (error) {
      if (!failedWith(error, 404)) throw error;
    }
  }

  async #delete(resource: ResourceDefinition, entry: CacheEntry, propagationPolicy: string): Promise<void> {
    try {
      await call(this.#options.transport, "DELETE", objectPath(resource, entry.namespace, entry.name), {
        kind: "DeleteOptions",
        apiVersion: "v1",
        propagationPolicy,
        preconditions: { uid: entry.uid, resourceVersion: String(entry.revision) },
      });
    } catch (error) {
      if (failedWith(error, 409)) this.#worker.mark(`dependent ${entry.key}`);
      else if (!failedWith(error, 404)) throw error;
    }
  }

  async #reportInvalid(resource: ResourceDefinition, entry: CacheEntry, owner: OwnerRef): Promise<void> {
    const { transport, edges, resources } = this.#options;
    const events = resources.get("", "v1", "events");
    if (!events) return;
    const namespace = entry.namespace === "" ? "default" : entry.namespace;
    const now = timestamp(edges.clock.now());
    await call(transport, "POST", collectionPath(events, namespace), {
      apiVersion: "v1",
      kind: "Event",
      metadata: { generateName: `${entry.name}.`, namespace },
      involvedObject: {
        apiVersion: entry.apiVersion,
        kind: resource.kind,
        name: entry.name,
        uid: entry.uid,
        ...(entry.namespace === "" ? {} : { namespace }),
      },
      type: "Warning",
      reason: "OwnerRefInvalidNamespace",
      message: `ownerRef [${owner.apiVersion}/${owner.kind}, name: ${owner.name}, uid: ${owner.uid}] does not exist in namespace "${entry.namespace}"`,
      source: { component: "garbage-collector-controller" },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    });
  }
}

function isGoing(entry: CacheEntry): boolean {
  if (!isDeleting(entry)) return false;
  const finalizers = finalizersOf(entryObject(entry));
  return finalizers.includes(orphanFinalizer) || finalizers.includes(foregroundFinalizer);
}

/** Whether an object is being deleted in the foreground. */
const isWaitingForDependents = (entry: CacheEntry): boolean =>
  isDeleting(entry) && finalizersOf(entryObject(entry)).includes(foregroundFinalizer);

/** Owner references of an entry; parsed only when there are any. */
function ownersOf(entry: CacheEntry): readonly OwnerRef[] {
  if (entry.error !== undefined || !entry.rest.includes('"ownerReferences":')) return [];
  const owners = metadataOf(entryObject(entry))["ownerReferences"];
  if (!Array.isArray(owners)) return [];
  return owners.filter(isObject).map((raw) => ({
    apiVersion: stringAt(raw, "apiVersion") ?? "",
    kind: stringAt(raw, "kind") ?? "",
    name: stringAt(raw, "name") ?? "",
    uid: stringAt(raw, "uid") ?? "",
    blocking: raw["blockOwnerDeletion"] === true,
    raw,
  }));
}
