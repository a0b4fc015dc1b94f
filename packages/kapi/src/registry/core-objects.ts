/**
 * Core objects other rooms look at: out of the watch caches, or out of the store where the newest state decides.
 */
import type { JsonObject } from "@kontinuum/std";
import { entryObject, type CacheEntry } from "../watch-cache/entry.ts";
import type { ResourceSet } from "./resource-set.ts";
import type { ObjectStorage } from "./storage.ts";

/** Reads objects of built-in kinds. */
export class CoreObjects {
  readonly #resources: ResourceSet;
  readonly #storage: ObjectStorage;

  constructor(resources: ResourceSet, storage: ObjectStorage) {
    this.#resources = resources;
    this.#storage = storage;
  }

  /** A core object from its cache, else from the store; `undefined` when there is none, or no such kind. */
  readonly read = async (
    plural: string,
    namespace: string,
    name: string,
  ): Promise<JsonObject | undefined> => {
    const resource = this.#resources.get("", "v1", plural);
    if (!resource) return undefined;
    const store = this.#storage.of(resource);
    const key = store.key(resource.namespaced ? namespace : "", name);
    await store.cache.load();
    return decoded(store.cache.get(key) ?? (await store.read(key)));
  };

  /** A namespace; `certain` asks the store. A server without namespaces has every namespace. */
  async namespace(name: string, certain: boolean): Promise<JsonObject | undefined> {
    const resource = this.#resources.get("", "v1", "namespaces");
    if (!resource) return { metadata: { name } };
    const store = this.#storage.of(resource);
    const key = store.key("", name);
    await store.cache.load();
    return decoded(certain ? await store.read(key) : store.cache.get(key));
  }

  /** All objects of a kind, optionally of one namespace. */
  async list(group: string, plural: string, namespace: string = ""): Promise<readonly JsonObject[]> {
    const resource = this.#resources.get(group, "v1", plural);
    if (!resource) return [];
    const store = this.#storage.of(resource);
    await store.cache.load();
    return store.cache
      .list(store.scope(namespace))
      .filter((entry) => entry.error === undefined)
      .map(entryObject);
  }
}

const parsed = new WeakMap<CacheEntry, JsonObject>();

/** The object of an entry, parsed once while the entry is the newest. Shared: readers never change it. */
function decoded(entry: CacheEntry | undefined): JsonObject | undefined {
  if (!entry || entry.error !== undefined) return undefined;
  let object = parsed.get(entry);
  if (!object) {
    object = entryObject(entry);
    parsed.set(entry, object);
  }
  return object;
}
