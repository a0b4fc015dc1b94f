/**
 * The stored objects of one resource, whatever number of versions and groups serve them: keys, bytes, the watch
 * cache, and the conversions between what is stored and what a version shows.
 *
 * Keys are `/registry/[<group>/]<plural>/[<namespace>/]<name>`; values are JSON in the storage version.
 */
import type { Clock, JsonObject, Log } from "@kontinuum/std";
import type { KeyValue, LeaseId, Store, TxnRequest } from "@kontinuum/storage";
import { parseJson } from "../json/json.ts";
import type { ResourceDefinition } from "../resource.ts";
import {
  decodeEntry,
  encodeRest,
  encodeStored,
  storedHead,
  entryObject,
  joinHead,
  objectHead,
  type CacheEntry,
  type Refine,
} from "../watch-cache/entry.ts";
import { ResourceCache } from "../watch-cache/resource-cache.ts";
import { metadataOf } from "./metadata.ts";
import { Turns } from "./turns.ts";

/** The root of all keys. */
export const registryPrefix = "/registry/";

/** `apps/v1`, or `v1` in the core group. */
export function apiVersionOf(resource: { readonly group: string; readonly version: string }): string {
  return resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
}

/** Where a resource's objects are stored. */
export function storagePlace(resource: ResourceDefinition): {
  readonly group: string;
  readonly version: string;
} {
  if (resource.stored) return resource.stored;
  return { group: resource.group, version: resource.storageVersion };
}

/** What a resource's store needs. */
export interface ResourceStoreOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** The resource in its storage version. */
  readonly resource: ResourceDefinition;
  /** The served version an object's `apiVersion` names, to prune and default it when it is read. */
  versionOf(apiVersion: string): ResourceDefinition | undefined;
}

/** An object's text for the store. */
export interface Encoded {
  readonly value: string;
  /** The part behind `metadata.resourceVersion`, where clients of the object's version see just what is stored. */
  readonly rest?: string;
}

/** What a conditional write did. */
export type WriteResult =
  | { readonly done: true; readonly revision: number }
  | { readonly done: false; readonly current: CacheEntry | undefined };

/** One resource's objects. */
export class ResourceStore {
  readonly resource: ResourceDefinition;
  readonly prefix: string;
  readonly cache: ResourceCache;
  /** For writers who lost a race for one key. */
  readonly turns: Turns;
  readonly #options: ResourceStoreOptions;

  constructor(options: ResourceStoreOptions) {
    const { resource } = options;
    this.#options = options;
    this.resource = resource;
    this.prefix = `${registryPrefix}${resource.group === "" ? "" : `${resource.group}/`}${resource.plural}/`;
    this.turns = new Turns(options.clock);
    this.cache = new ResourceCache({
      store: options.store,
      prefix: this.prefix,
      decode: this.decode,
      clock: options.clock,
      log: options.log,
    });
  }

  /** Key of an object. */
  key(namespace: string, name: string): string {
    return this.resource.namespaced ? `${this.prefix}${namespace}/${name}` : `${this.prefix}${name}`;
  }

  /** Prefix of the keys of a namespace, or of all. */
  scope(namespace: string): string {
    return this.resource.namespaced && namespace !== "" ? `${this.prefix}${namespace}/` : this.prefix;
  }

  /** Decodes a stored pair; never throws. */
  readonly decode = (kv: Pick<KeyValue, "key" | "value" | "modRevision">): CacheEntry =>
    decodeEntry(kv, this.prefix, this.resource, this.#refine);

  get #refine(): Refine {
    if (this.resource.origin === "builtin") return undefined;
    return (object) => {
      const version = this.#options.versionOf(String(object["apiVersion"]));
      if (!version) return;
      version.prune(object);
      version.applyDefaults(object);
    };
  }

  /** The encoded object (behind its head) as a version shows it. Converted at most once per stored state. */
  form(resource: ResourceDefinition, entry: CacheEntry): Buffer | Promise<Buffer> {
    const apiVersion = apiVersionOf(resource);
    if (entry.apiVersion === apiVersion) return entry.rest;
    const known = entry.forms?.get(apiVersion);
    if (known) return known;
    entry.forms ??= new Map();
    const { forms } = entry;
    const made = this.#convert(resource, entry);
    forms.set(apiVersion, made);
    if (made instanceof Promise) {
      made.then(
        (bytes) => forms.set(apiVersion, bytes),
        () => forms.delete(apiVersion),
      );
    }
    return made;
  }

  /** Fills the forms of many entries with one conversion call. */
  async prepareForms(resource: ResourceDefinition, entries: readonly CacheEntry[]): Promise<void> {
    const apiVersion = apiVersionOf(resource);
    if (!resource.convert || resource.stored) return;
    const missing = entries.filter(
      (entry) => entry.apiVersion !== apiVersion && !entry.forms?.has(apiVersion),
    );
    if (missing.length === 0) return;
    const converted = await resource.convert(missing.map(entryObject), apiVersion);
    for (const [index, entry] of missing.entries()) {
      const object = converted[index];
      if (!object) continue;
      resource.prune(object);
      resource.applyDefaults(object);
      entry.forms ??= new Map();
      entry.forms.set(apiVersion, Buffer.from(encodeRest(object)));
    }
  }

  #convert(resource: ResourceDefinition, entry: CacheEntry): Buffer | Promise<Buffer> {
    const object = entryObject(entry);
    const changed = this.#toVersion(resource, object);
    if (changed instanceof Promise) return changed.then((result) => Buffer.from(encodeRest(result)));
    return Buffer.from(encodeRest(changed));
  }

  #toVersion(resource: ResourceDefinition, object: JsonObject): JsonObject | Promise<JsonObject> {
    if (resource.stored) return resource.stored.fromStored(object);
    const apiVersion = apiVersionOf(resource);
    const finish = (result: JsonObject): JsonObject => {
      resource.prune(result);
      resource.applyDefaults(result);
      return result;
    };
    if (!resource.convert) return finish({ ...object, apiVersion });
    return resource.convert([object], apiVersion).then(([result]) => finish(result ?? object));
  }

  /** A changeable copy of an object in a version. */
  object(resource: ResourceDefinition, entry: CacheEntry): JsonObject | Promise<JsonObject> {
    if (entry.apiVersion === apiVersionOf(resource)) return entryObject(entry);
    return this.#converted(resource, entry);
  }

  async #converted(resource: ResourceDefinition, entry: CacheEntry): Promise<JsonObject> {
    const rest = await this.form(resource, entry);
    return parseJson(this.bytes(resource, entry, rest).toString("utf8")) as JsonObject;
  }

  /** The full encoded object in a version. */
  bytes(resource: ResourceDefinition, entry: CacheEntry, rest: Buffer): Buffer {
    return joinHead(objectHead(apiVersionOf(resource), resource.kind, entry.revision), rest);
  }

  /** What to store for an object of some version. */
  async encode(resource: ResourceDefinition, object: JsonObject): Promise<Encoded> {
    const { group, version } = storagePlace(resource);
    const apiVersion = apiVersionOf({ group, version });
    if (resource.stored) return { value: encodeStored(resource.stored.toStored(object)) };
    if (object["apiVersion"] === apiVersion) {
      const rest = encodeRest(object);
      return { value: storedHead(object) + rest, rest };
    }
    if (!resource.convert) return { value: encodeStored({ ...object, apiVersion }) };
    const [converted] = await resource.convert([object], apiVersion);
    return { value: encodeStored(converted ?? object) };
  }

  /** Stores a new object. */
  async create(key: string, value: string, lease: LeaseId): Promise<WriteResult> {
    return this.#write(key, {
      compare: [{ key, target: "version", result: "equal", operand: 0 }],
      success: [{ type: "put", key, value, lease }],
      failure: [{ type: "range", key }],
    });
  }

  /** Replaces an object that still is at `revision`. */
  async update(key: string, value: string, revision: number, lease: LeaseId): Promise<WriteResult> {
    return this.#write(key, {
      compare: [{ key, target: "mod", result: "equal", operand: revision }],
      success: [{ type: "put", key, value, lease }],
      failure: [{ type: "range", key }],
    });
  }

  /** Removes an object that still is at `revision`. */
  async delete(key: string, revision: number): Promise<WriteResult> {
    return this.#write(key, {
      compare: [{ key, target: "mod", result: "equal", operand: revision }],
      success: [{ type: "delete", key }],
      failure: [{ type: "range", key }],
    });
  }

  async #write(_key: string, request: TxnRequest): Promise<WriteResult> {
    const result = await this.#options.store.txn(request);
    if (result.succeeded) return { done: true, revision: result.revision };
    const first = result.results[0];
    const kv = first?.type === "range" ? first.range.kvs[0] : undefined;
    return { done: false, current: kv ? this.decode(kv) : undefined };
  }

  /** Reads one object from the store itself. */
  async read(key: string): Promise<CacheEntry | undefined> {
    const { kvs } = await this.#options.store.range({ key });
    return kvs[0] ? this.decode(kvs[0]) : undefined;
  }
}

/** An object with the revision a write gave it. */
export function withRevision(object: JsonObject, revision: number): JsonObject {
  metadataOf(object)["resourceVersion"] = String(revision);
  return object;
}
