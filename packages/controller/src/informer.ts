/**
 * An informer keeps the objects of one resource in memory: it lists once, then watches.
 *
 * The watch resumes from the last version seen (bookmarks move it on while nothing changes); a compacted
 * version or a break that can't be resumed leads to a fresh list, after a back-off. Handlers get every
 * change of a key in order, but may miss states in between: they are hints to look, not a history.
 * Reading never waits and never fails; `synced` tells when the first list is in.
 *
 * Reads return copies. What the cache itself holds is shared with handlers, index functions and `peek`,
 * which must not change it.
 */
import { CodedError, isCoded, messageOf, type Edges, type Log } from "@kontinuum/std";
import { Backoff } from "./backoff.ts";
import type { Client } from "./client.ts";
import type { KubeObject, Resource } from "./object.ts";
import { ObjectCache, type CacheChange, type IndexFunction } from "./object-cache.ts";
import { cloneJson, keyOf, refKey, resourceName, type ObjectRef } from "./resource.ts";
import { matches, type LabelSelector } from "./selector.ts";
import { hasCause } from "./status.ts";

/** Options of an {@link Informer}. */
export interface InformerOptions<T extends KubeObject> {
  readonly edges: Edges;
  /** Only this namespace. */
  readonly namespace?: string | undefined;
  /** Only objects with these labels. */
  readonly labels?: LabelSelector | undefined;
  /** Indexes beside the one by namespace. */
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
}

/** An informer of whatever kind: what running and waiting need. */
export interface AnyInformer {
  readonly resource: Resource;
  readonly hasSynced: boolean;
  synced(): Promise<void>;
  run(signal: AbortSignal): Promise<void>;
}

/** What is read from an informer. */
export interface CacheSelection {
  readonly namespace?: string | undefined;
  readonly labels?: LabelSelector | undefined;
}

/** Gets changes. Errors it throws are logged and stop nothing. */
export type ChangeHandler<T extends KubeObject> = (change: CacheChange<T>) => void;

const byNamespace = "namespace";
/** A watch lasts 5 to 10 minutes, as client-go's; a server that says nothing for longer is given up. */
const watchSeconds = 300;
const watchGraceMs = 30_000;
/** A watch that ends sooner without an event counts as a failure, or a broken proxy would make us spin. */
const shortWatchMs = 1000;

/** See the module's comment. */
export class Informer<T extends KubeObject> implements AnyInformer {
  readonly resource: Resource<T>;
  readonly #client: Client;
  readonly #options: InformerOptions<T>;
  readonly #edges: Edges;
  readonly #log: Log;
  readonly #cache = new ObjectCache<T>();
  readonly #handlers = new Set<ChangeHandler<T>>();
  readonly #indexes = new Map<string, IndexFunction<T>>();
  readonly #synced = Promise.withResolvers<void>();
  #hasSynced = false;

  /** `client` must be one that asks the server. */
  constructor(client: Client, resource: Resource<T>, options: InformerOptions<T>) {
    this.resource = resource;
    this.#client = client;
    this.#options = options;
    this.#edges = options.edges;
    this.#log = options.edges.log.with({ informer: resourceName(resource) });
    this.#cache.addIndex(byNamespace, (object) => [object.metadata.namespace ?? ""]);
    for (const [name, of] of Object.entries(options.indexes ?? {})) this.addIndex(name, of);
  }

  /** Whether the first list is in. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** How many objects there are. */
  get size(): number {
    return this.#cache.size;
  }

  /** Version up to which everything is in; `undefined` before the first list. */
  get version(): string | undefined {
    return this.#cache.progress;
  }

  /** Resolves once the first list is in. */
  synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** A copy of the object, or `undefined`. */
  get(ref: ObjectRef): T | undefined {
    return cloneJson(this.#cache.get(refKey(ref)));
  }

  /** The cached object itself, or `undefined`: not to be changed. */
  peek(ref: ObjectRef): T | undefined {
    return this.#cache.get(refKey(ref));
  }

  /** Copies of the selected objects, in no particular order. */
  list(selection: CacheSelection = {}): T[] {
    return [...this.peekAll(selection)].map((object) => cloneJson(object));
  }

  /** The selected objects themselves: not to be changed. */
  *peekAll({ namespace, labels }: CacheSelection = {}): Generator<T> {
    const objects =
      namespace === undefined ? this.#cache.values() : this.#cache.byIndex(byNamespace, namespace);
    for (const object of objects) {
      if (labels === undefined || matches(labels, object.metadata.labels)) yield object;
    }
  }

  /** Copies of the objects under `value` in an index. Throws when there is no such index. */
  byIndex(index: string, value: string): T[] {
    return this.#cache.byIndex(index, value).map((object) => cloneJson(object));
  }

  /**
   * Adds an index: a function of the object alone. An error it throws leaves that object out of the index.
   * The same function under the same name may be added again; another one under that name throws.
   */
  addIndex(name: string, of: IndexFunction<T>): void {
    if (this.#indexes.get(name) === of) return;
    this.#indexes.set(name, of);
    this.#cache.addIndex(name, (object) => {
      try {
        return of(object);
      } catch (error) {
        this.#log.error("an index function failed", {
          index: name,
          object: keyOf(object),
          reason: messageOf(error),
        });
        return [];
      }
    });
  }

  /** Registers a handler; present objects are delivered to it at once. Returns how to remove it. */
  onChange(handler: ChangeHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const after of this.#cache.values()) this.#call(handler, { key: keyOf(after), after });
    return () => void this.#handlers.delete(handler);
  }

  /** Makes the answer to an own write visible at once. (What this informer does not select is left to the watch.) */
  written(object: T): void {
    if (!this.#selects(object)) return;
    if (isFinalized(object)) this.removed(object.metadata, object.metadata.uid);
    else this.#publish(this.#cache.written(object));
  }

  /** Makes an own delete visible at once. */
  removed(ref: ObjectRef, uid: string | undefined): void {
    this.#publish(this.#cache.removed(refKey(ref), uid));
  }

  /** Lists and watches until `signal` aborts. Never fails: it reports and tries again. */
  async run(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ baseMs: 200, maxMs: 30_000 }, this.#edges.random);
    let listNeeded = true;
    while (!signal.aborted) {
      try {
        if (listNeeded) await this.#list(signal);
        listNeeded = false;
        await this.#watch(signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) return;
        listNeeded ||= isCoded(error, "gone") || hasCause(error, "ResourceVersionTooLarge");
        const waitMs = backoff.next();
        this.#report(error, waitMs);
        await this.#edges.clock.sleep(waitMs, signal).catch(() => {});
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { items, metadata } = await this.#client.list(this.resource, {
      ...this.#selection(),
      signal,
      onUnreadable: (error) => this.#unreadable(error),
    });
    this.#publish(this.#cache.replace(items, metadata.resourceVersion));
    this.#hasSynced = true;
    this.#synced.resolve();
  }

  async #watch(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const timeoutSeconds = watchSeconds + this.#edges.random.integer(watchSeconds);
    const silence = new AbortController();
    const timer = this.#edges.clock.timer(timeoutSeconds * 1000 + watchGraceMs, () =>
      silence.abort(new CodedError("deadline_exceeded", "the watch did not end in time")),
    );
    const startedAt = this.#edges.clock.monotonic();
    let events = 0;
    try {
      const stream = this.#client.watch(this.resource, {
        ...this.#selection(),
        ...(this.#cache.progress === undefined ? {} : { resourceVersion: this.#cache.progress }),
        timeoutSeconds,
        signal: AbortSignal.any([signal, silence.signal]),
        onUnreadable: (error) => this.#unreadable(error),
      });
      for await (const event of stream) {
        events++;
        onProgress();
        if (event.type === "BOOKMARK") this.#cache.bookmark(event.resourceVersion);
        else if (event.type === "DELETED") this.#publish(this.#cache.deleted(event.object));
        else this.#publish(this.#cache.changed(event.object));
      }
    } finally {
      timer.clear();
    }
    if (events === 0 && !signal.aborted && this.#edges.clock.monotonic() - startedAt < shortWatchMs) {
      throw new CodedError("unavailable", "the server ended the watch at once");
    }
    onProgress();
  }

  #selection(): CacheSelection {
    return { namespace: this.#options.namespace, labels: this.#options.labels };
  }

  #selects(object: T): boolean {
    const { namespace, labels } = this.#options;
    return (
      (namespace === undefined || object.metadata.namespace === namespace) &&
      (labels === undefined || matches(labels, object.metadata.labels))
    );
  }

  #publish(changes: readonly CacheChange<T>[]): void {
    for (const change of changes) for (const handler of this.#handlers) this.#call(handler, change);
  }

  #call(handler: ChangeHandler<T>, change: CacheChange<T>): void {
    try {
      handler(change);
    } catch (error) {
      this.#log.error("a change handler failed", { object: change.key, reason: messageOf(error) });
    }
  }

  #unreadable(error: CodedError): void {
    this.#log.warn("an object is left out because it can't be read", { reason: error.message });
  }

  #report(error: unknown, waitMs: number): void {
    const fields = { reason: messageOf(error), retryInMs: waitMs };
    if (isCoded(error, "gone") || isCoded(error, "unavailable"))
      this.#log.info("list and watch start again", fields);
    else this.#log.warn("list and watch failed", fields);
  }
}

/** A write that takes the last finalizer of a deleted object away removes it, though the answer shows it once more. */
function isFinalized({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.finalizers ?? []).length === 0 &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0
  );
}
