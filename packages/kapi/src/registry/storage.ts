/**
 * All stores of objects: one per stored resource, made on first use, closed when the resource goes.
 */
import { CodedError, type Clock, type Log } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import type { ResourceDefinition } from "../resource.ts";
import { LeasePool } from "./lease-pool.ts";
import type { ResourceSet } from "./resource-set.ts";
import { apiVersionOf, ResourceStore, storagePlace } from "./resource-store.ts";

/** What the stores need. */
export interface StorageOptions {
  readonly store: Store;
  readonly resources: ResourceSet;
  /** Built-in resources that are stored in but perhaps not served. */
  readonly builtin: readonly ResourceDefinition[];
  readonly clock: Clock;
  readonly log: Log;
}

/** The stores by resource. */
export class ObjectStorage {
  readonly store: Store;
  readonly leases: LeasePool;
  readonly #options: StorageOptions;
  readonly #stores = new Map<string, ResourceStore>();
  #closed = false;

  constructor(options: StorageOptions) {
    this.#options = options;
    this.store = options.store;
    this.leases = new LeasePool(options.store, options.clock);
  }

  /** The store of a resource's objects. */
  of(resource: ResourceDefinition): ResourceStore {
    const place = storagePlace(resource);
    const id = `${place.group}/${resource.plural}`;
    const present = this.#stores.get(id);
    if (present) return present;
    if (this.#closed) throw new CodedError("unavailable", "the server is stopping");
    const { resources, builtin, store, clock, log } = this.#options;
    const home =
      resources.get(place.group, place.version, resource.plural) ??
      builtin.find(
        (other) =>
          other.group === place.group && other.version === place.version && other.plural === resource.plural,
      ) ??
      resource;
    const made = new ResourceStore({
      store,
      clock,
      log,
      resource: home,
      versionOf: (apiVersion) =>
        resources.versions(home.group, home.plural).find((other) => apiVersionOf(other) === apiVersion),
    });
    this.#stores.set(id, made);
    return made;
  }

  /** Open watches. */
  get watches(): number {
    let count = 0;
    for (const { cache } of this.#stores.values()) count += cache.listeners;
    return count;
  }

  /** Objects held, by `<plural>[.<group>]`. */
  get counts(): ReadonlyMap<string, number> {
    return new Map(
      [...this.#stores.values()].map(({ resource, cache }) => [
        resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`,
        cache.size,
      ]),
    );
  }

  /** Ends one resource's cache and watches; the next use starts anew. */
  async drop(group: string, plural: string): Promise<void> {
    const id = `${group}/${plural}`;
    const store = this.#stores.get(id);
    this.#stores.delete(id);
    await store?.cache.close();
  }

  /** Ends all caches and watches. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#stores.values()].map((store) => store.cache.close()));
    this.#stores.clear();
  }
}
