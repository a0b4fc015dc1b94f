/**
 * The cache of one resource: every object once, fed by one store watch, whatever the number of clients.
 *
 * - `revision` says up to which store revision the contents are complete; it only grows.
 * - {@link ResourceCache.fresh} makes a read linearizable: it asks the store for its revision and waits until the
 *   cache has it. Reads that arrive meanwhile share the next question.
 * - When the store's watch breaks, the cache resumes after its revision; when that history is gone it loads again
 *   and watchers that need the lost part are told so by the store itself.
 */
import { CodedError, isCoded, messageOf, type Clock, type Log } from "@kontinuum/std";
import { prefixRange, type KeyValue, type Store, type Watch } from "@kontinuum/storage";
import { EntryIndex } from "./entry-index.ts";
import type { CacheEntry } from "./entry.ts";
import { EventRing, type CacheEvent } from "./ring.ts";
import { Rounds } from "./rounds.ts";

/** How long a consistent read waits for the cache. */
const freshTimeoutMs = 20_000;
/** Pairs read from the store at once while loading. */
const loadPage = 2000;
/** Waiting reads at most; more than that is an overload. */
const maxWaiters = 100_000;
const minBackoffMs = 50;
const maxBackoffMs = 5_000;

/** What a cache is made of. */
export interface ResourceCacheOptions {
  readonly store: Store;
  /** Key prefix with trailing slash. */
  readonly prefix: string;
  readonly decode: (kv: Pick<KeyValue, "key" | "value" | "modRevision">) => CacheEntry;
  readonly clock: Clock;
  readonly log: Log;
}

/** Told about new events; reads them from the ring by itself. */
export interface CacheListener {
  notify(): void;
  /** The cache starts over or ends. `lost`: the past is gone. */
  reset(lost: boolean): void;
}

interface Waiter {
  readonly revision: number;
  done(error?: unknown): void;
}

/** One resource's objects and recent events. */
export class ResourceCache {
  readonly prefix: string;
  readonly #options: ResourceCacheOptions;
  readonly #stop = new AbortController();
  readonly #listeners = new Set<CacheListener>();
  readonly #rounds: Rounds;
  #entries = new EntryIndex();
  #ring = new EventRing(0);
  #revision = 0;
  #lastChange = 0;
  #loadedRevision = 0;
  #watch: Watch | undefined;
  #waiters: Waiter[] = [];
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #loaded: Promise<void> | undefined;
  #finished: Promise<void> = Promise.resolve();
  #failure: unknown;

  constructor(options: ResourceCacheOptions) {
    this.#options = options;
    this.#rounds = new Rounds(this.#listeners, options.clock);
    this.prefix = options.prefix;
  }

  /** Everything up to this revision is in. */
  get revision(): number {
    return this.#revision;
  }

  /** Revision of the newest event; 0 when nothing changed since loading. */
  get lastChange(): number {
    return this.#lastChange;
  }

  /** Revision of the last load from the store. */
  get loadedRevision(): number {
    return this.#loadedRevision;
  }

  get ring(): EventRing {
    return this.#ring;
  }

  get closed(): boolean {
    return this.#stop.signal.aborted;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Loads on first use; resolves when the contents can be read. */
  load(): Promise<void> {
    this.#loaded ??= new Promise((resolve, reject) => {
      if (this.closed) return reject(new CodedError("unavailable", "the server is stopping"));
      this.#finished = this.#run(resolve).catch((error: unknown) => {
        this.#failure = error;
        reject(error);
      });
      this.#stop.signal.addEventListener("abort", () =>
        reject(new CodedError("unavailable", "the resource is no longer served")),
      );
    });
    this.#loaded.catch(() => {});
    return this.#loaded;
  }

  /** Ends the store watch and all listeners. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#watch?.close();
    for (const listener of Array.from(this.#listeners)) listener.reset(false);
    this.#listeners.clear();
    for (const waiter of this.#waiters.splice(0))
      waiter.done(new CodedError("unavailable", "the server is stopping"));
    await this.#finished;
  }

  add(listener: CacheListener): void {
    if (this.closed) return listener.reset(false);
    this.#listeners.add(listener);
  }

  remove(listener: CacheListener): void {
    this.#listeners.delete(listener);
  }

  get(key: string): CacheEntry | undefined {
    return this.#entries.get(key);
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * The entries below `prefix`, optionally only those at or after the key `from`, in key order. To be read at once: the
   * cache must not change meanwhile.
   */
  range(prefix: string, from: string = prefix): Iterable<CacheEntry> {
    return this.#entries.range(from < prefix ? prefix : from, `${prefix}\uffff`);
  }

  /** How many entries {@link range} would give. */
  count(prefix: string, from: string = prefix): number {
    return this.#entries.count(from < prefix ? prefix : from, `${prefix}\uffff`);
  }

  /** All entries below a prefix, in key order. */
  list(prefix: string = this.prefix): CacheEntry[] {
    return [...this.range(prefix)];
  }

  /** Makes the next read of this cache linearizable. */
  async fresh(): Promise<void> {
    if (this.#queued) return this.#queued;
    if (!this.#running) return this.#barrier();
    this.#queued = this.#running.then(
      () => this.#barrier(),
      () => this.#barrier(),
    );
    return this.#queued;
  }

  /** Waits until the cache has `revision`. Fails with `deadline_exceeded`. */
  async waitFor(revision: number, timeoutMs: number = freshTimeoutMs): Promise<void> {
    if (this.#revision >= revision && this.#loaded) return;
    await this.load();
    if (this.#revision >= revision) return;
    if (this.closed) throw new CodedError("unavailable", "the resource is no longer served");
    if (this.#waiters.length >= maxWaiters)
      throw new CodedError("rate_limited", "too many waiting reads", { retryAfterMs: 1000 });
    await new Promise<void>((resolve, reject) => {
      const timer = this.#options.clock.timer(timeoutMs, () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(
          new CodedError(
            "deadline_exceeded",
            `revision ${revision} is not here yet, current: ${this.#revision}`,
          ),
        );
      });
      const waiter: Waiter = {
        revision,
        done: (error) => {
          timer.clear();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.#waiters.push(waiter);
      this.#watch?.progress();
    });
  }

  #barrier(): Promise<void> {
    this.#queued = undefined;
    const running = (async () => {
      await this.load();
      const revision = await this.#options.store.revision();
      if (this.#revision < revision) await this.waitFor(revision);
    })();
    this.#running = running;
    const clear = (): void => {
      if (this.#running === running) this.#running = undefined;
    };
    running.then(clear, clear);
    return running;
  }

  async #run(loaded: () => void): Promise<void> {
    const { signal } = this.#stop;
    const { clock, log } = this.#options;
    let backoff = minBackoffMs;
    let mustLoad = true;
    while (!signal.aborted) {
      try {
        if (mustLoad) {
          await this.#load();
          mustLoad = false;
          loaded();
        }
        await this.#follow(() => {
          backoff = minBackoffMs;
        });
      } catch (error) {
        if (signal.aborted) return;
        if (isCoded(error, "gone")) mustLoad = true;
        else log.warn("watch cache lost its store", { prefix: this.prefix, reason: messageOf(error) });
      }
      if (signal.aborted) return;
      await clock.sleep(backoff, signal).catch(() => {});
      backoff = Math.min(backoff * 2, maxBackoffMs);
    }
  }

  async #load(): Promise<void> {
    const { store, prefix, decode } = this.#options;
    const { end } = prefixRange(prefix);
    const entries: CacheEntry[] = [];
    let revision = 0;
    let from: Buffer = Buffer.from(prefix);
    for (;;) {
      const page = await store.range(
        { key: from, end, limit: loadPage, uncounted: true, ...(revision > 0 ? { revision } : {}) },
        { signal: this.#stop.signal },
      );
      if (revision === 0) revision = page.revision;
      for (const kv of page.kvs) {
        const entry = decode(kv);
        this.#logBroken(entry);
        entries.push(entry);
      }
      const last = page.kvs.at(-1);
      if (!page.more || !last) break;
      from = Buffer.concat([last.key, Buffer.from([0])]);
    }
    const again = this.#revision > 0;
    this.#entries = new EntryIndex(entries);
    this.#ring = new EventRing(revision);
    this.#lastChange = 0;
    this.#loadedRevision = revision;
    if (again) for (const listener of Array.from(this.#listeners)) listener.reset(true);
    this.#advance(revision);
  }

  async #follow(alive: () => void): Promise<void> {
    const { store, prefix } = this.#options;
    const watch = store.watch({
      ...prefixRange(prefix),
      startRevision: this.#revision + 1,
      progressNotify: true,
      signal: this.#stop.signal,
    });
    watch.ready.catch(() => {});
    this.#watch = watch;
    if (this.#waiters.length > 0) watch.progress();
    try {
      for await (const batch of watch) {
        alive();
        for (const event of batch.events) this.#apply(event.type, event.kv);
        this.#advance(batch.revision);
        if (batch.events.length > 0) this.#rounds.start();
      }
    } finally {
      this.#watch = undefined;
      watch.close();
    }
  }

  #apply(type: "put" | "delete", kv: KeyValue): void {
    const key = kv.key.toString("utf8");
    let previous: CacheEntry | undefined;
    let entry: CacheEntry | undefined;
    if (type === "delete") {
      previous = this.#entries.delete(key);
      if (!previous) return;
    } else {
      entry = this.#options.decode(kv);
      this.#logBroken(entry);
      previous = this.#entries.set(entry);
    }
    this.#lastChange = kv.modRevision;
    const event: CacheEvent = {
      revision: kv.modRevision,
      key,
      entry: entry?.error === undefined ? entry : undefined,
      previous: previous?.error === undefined ? previous : undefined,
    };
    this.#ring.push(event);
  }

  #advance(revision: number): void {
    if (revision <= this.#revision) return;
    this.#revision = revision;
    if (this.#waiters.length === 0) return;
    const waiting: Waiter[] = [];
    for (const waiter of this.#waiters) {
      if (waiter.revision <= revision) waiter.done();
      else waiting.push(waiter);
    }
    this.#waiters = waiting;
    if (waiting.length > 0) this.#watch?.progress();
  }

  #logBroken(entry: CacheEntry): void {
    if (entry.error === undefined) return;
    this.#options.log.error("a stored object can't be decoded", {
      storageKey: entry.key,
      reason: entry.error,
    });
  }

  /** Why loading ended for good, if it did. */
  get failure(): unknown {
    return this.#failure;
  }
}
