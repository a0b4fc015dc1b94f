/**
 * Counts what quotas are used: when a quota is new or changed, when something it counts goes away, and from time
 * to time, because a write that failed after it was booked leaves its booking behind.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { at, isObject, type Edges } from "@kontinuum/std";
import { equalJson } from "../json/json.ts";
import { entries } from "../kinds/read.ts";
import { quotaUsage, resourceOfKey } from "../registry/quota-usage.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceDefinition } from "../resource.ts";
import { entryObject } from "../watch-cache/entry.ts";
import { CacheWorker } from "./cache-worker.ts";
import { call, failedWith } from "./call.ts";
import { objectPath } from "./object-path.ts";

/** A quota that nothing touches is counted again after this. */
const recountMs = 60_000;

/** How the stored text of a pod that has ended says so. */
const endings = ['"phase":"Succeeded"', '"phase":"Failed"'];

/** Keeps the status of quotas right. */
export class QuotaUsage implements Controller {
  readonly name = "quota-usage";
  readonly #resources: ResourceSet;
  readonly #storage: ObjectStorage;
  readonly #quotas: ResourceDefinition;
  readonly #transport: Transport;
  readonly #worker: CacheWorker;
  /** Resources whose deletions are followed, and how to stop. */
  readonly #followed = new Map<string, () => void>();

  constructor(
    edges: Edges,
    resources: ResourceSet,
    storage: ObjectStorage,
    quotas: ResourceDefinition,
    transport: Transport,
  ) {
    this.#resources = resources;
    this.#storage = storage;
    this.#quotas = quotas;
    this.#transport = transport;
    const { clock, log } = edges;
    this.#worker = new CacheWorker({ name: this.name, clock, log, reconcile: (key) => this.#reconcile(key) });
  }

  get #store(): ResourceStore {
    return this.#storage.of(this.#quotas);
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const store = this.#store;
    await store.cache.load();
    // Its own bookings change the status only: those need no count.
    const unfollow = this.#worker.follow(store.cache, ({ key, entry, previous }) => {
      if (entry === undefined) return [];
      if (previous === undefined || previous.error !== undefined || entry.error !== undefined) return [key];
      return equalJson(at(entryObject(entry), "spec"), at(entryObject(previous), "spec")) ? [] : [key];
    });
    try {
      await this.#worker.run(signal);
    } finally {
      unfollow();
      for (const stop of this.#followed.values()) stop();
      this.#followed.clear();
    }
  }

  async #reconcile(key: string): Promise<number | undefined> {
    const entry = this.#store.cache.get(key);
    if (entry === undefined || entry.error !== undefined) return undefined;
    const quota = entryObject(entry);
    for (const [name] of entries(quota, "spec", "hard")) {
      const resource = resourceOfKey(this.#resources, name);
      if (resource !== undefined) await this.#follow(resource);
    }
    const used = await quotaUsage(this.#resources, this.#storage, quota);
    const hard = at(quota, "spec", "hard");
    const status = { ...(isObject(hard) ? { hard } : {}), used };
    if (!equalJson(status, at(quota, "status"))) {
      const path = `${objectPath(this.#quotas, entry.namespace, entry.name)}/status`;
      try {
        await call(this.#transport, "PUT", path, { ...quota, status });
      } catch (error) {
        if (!failedWith(error, 404, 409)) throw error;
        if (failedWith(error, 409)) return 100;
      }
    }
    return recountMs;
  }

  /** Has the quotas of a namespace counted when one of these objects goes away. */
  async #follow(resource: ResourceDefinition): Promise<void> {
    const id = `${resource.group}/${resource.plural}`;
    if (this.#followed.has(id)) return;
    const store = this.#storage.of(resource);
    await store.cache.load();
    const isPods = resource.group === "" && resource.plural === "pods";
    const stop = this.#worker.follow(store.cache, ({ entry, previous }) => {
      const ended = entry === undefined || (isPods && endings.some((text) => entry.rest.includes(text)));
      const namespace = (entry ?? previous)?.namespace;
      if (!ended || previous === undefined || namespace === undefined) return [];
      const { cache } = this.#store;
      return cache.list(this.#store.scope(namespace)).map((quota) => quota.key);
    });
    this.#followed.set(id, stop);
  }
}
