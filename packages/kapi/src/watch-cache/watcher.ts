/**
 * One client's watch: a position in a resource's events, moved only when the client takes what it is sent.
 *
 * A client that is too slow is parked: nothing is queued for it, and when it drains it goes on from where it was,
 * out of the ring or, when the ring has moved past it, out of the store's own history. Only when the store says that
 * history is gone does the watch fail with 410.
 */
import { isCoded } from "@kontinuum/std";
import { prefixRange, type KeyValue, type Store } from "@kontinuum/storage";
import { expired, toStatusError, type StatusError } from "../status/status.ts";
import type { CacheEntry } from "./entry.ts";
import type { ResourceCache } from "./resource-cache.ts";
import type { CacheEvent, ChangeType } from "./ring.ts";

/** Where a watch's events go. */
export interface WatchSink {
  /** False while the client has to take what it already has. */
  readonly writable: boolean;
  /** Sends one event, encoded once for all: may need a conversion first. */
  event(type: ChangeType, entry: CacheEntry, event: CacheEvent | undefined): void | Promise<void>;
  /** The initial state was sent completely, as of `revision`. */
  initialDone(revision: number): void;
  bookmark(revision: number): void;
  /** Hands on what was sent since the last time: whatever belongs together goes in one piece. */
  flush(): void;
  /** The watch ends; with an error it could not go on. */
  end(error?: StatusError): void;
}

/** What to watch. */
export interface WatcherOptions {
  readonly cache: ResourceCache;
  readonly store: Store;
  readonly decode: (kv: Pick<KeyValue, "key" | "value" | "modRevision">) => CacheEntry;
  readonly matches: (entry: CacheEntry) => boolean;
  readonly sink: WatchSink;
  /** Objects to send as ADDED first. */
  readonly initial: readonly CacheEntry[];
  /** Everything after this revision is sent. */
  readonly from: number;
}

/** A running watch. */
export class Watcher {
  readonly #options: WatcherOptions;
  readonly #stop = new AbortController();
  #initialIndex = 0;
  #initialSent = false;
  /** Next event of the ring; undefined while catching up from the store. */
  #sequence: number | undefined;
  /** Everything up to this revision was sent. */
  #sent: number;
  #busy = false;
  #ended = false;
  #resume: (() => void) | undefined;

  constructor(options: WatcherOptions) {
    this.#options = options;
    this.#sent = options.from;
  }

  /** Begins to send. */
  start(): void {
    const { cache } = this.#options;
    cache.add(this);
    this.#locate();
    this.notify();
  }

  /** The sink takes more again. */
  drained(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    if (resume) resume();
    else this.notify();
  }

  /** Ends without an error. */
  close(error?: StatusError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stop.abort();
    this.#resume?.();
    this.#options.cache.remove(this);
    this.#options.sink.end(error);
  }

  /** Sends a bookmark if everything the cache has was sent; says up to which revision that is. */
  bookmark(): number | undefined {
    if (this.#ended || this.#busy || this.#sequence === undefined || !this.#initialSent) return undefined;
    const { cache, sink } = this.#options;
    if (!sink.writable || this.#sequence < cache.ring.end) return undefined;
    this.#sent = Math.max(this.#sent, cache.revision);
    sink.bookmark(this.#sent);
    sink.flush();
    return this.#sent;
  }

  /** New events may be there. */
  notify(): void {
    if (this.#busy || this.#ended) return;
    this.#busy = true;
    this.#pump();
  }

  /** The cache was loaded anew: positions in its old ring mean nothing now. */
  reset(lost: boolean): void {
    if (!lost) return this.close();
    this.#sequence = undefined;
    if (!this.#busy) {
      this.#locate();
      this.notify();
    }
  }

  #locate(): void {
    const { ring } = this.#options.cache;
    this.#sequence = this.#sent >= ring.oldestRevision ? ring.after(this.#sent) : undefined;
  }

  /** Moves on; whatever one client's form breaks on ends that client's watch and no other. */
  #pump(): void {
    try {
      this.#run();
      this.#options.sink.flush();
    } catch (error) {
      this.close(toStatusError(error));
    }
  }

  /** Runs synchronously as long as nothing has to be waited for. `#busy` is true inside. */
  #run(): void {
    const { sink, cache, initial, from } = this.#options;
    while (!this.#ended) {
      if (!this.#hasRoom()) break;
      if (this.#initialIndex < initial.length) {
        const entry = initial[this.#initialIndex++];
        if (entry && this.#wait(sink.event("ADDED", entry, undefined))) return;
        continue;
      }
      if (!this.#initialSent) {
        this.#initialSent = true;
        sink.initialDone(from);
        continue;
      }
      if (this.#sequence === undefined || this.#sequence < cache.ring.start) return this.#catchUp();
      const event = cache.ring.at(this.#sequence);
      if (!event) break;
      this.#sequence++;
      this.#sent = event.revision;
      if (this.#wait(this.#deliver(event))) return;
    }
    this.#busy = false;
  }

  /**
   * Whether the client takes more now. What fills the sink is handed on first: a connection that took it all at once
   * is not full, and never says that it drained.
   */
  #hasRoom(): boolean {
    const { sink } = this.#options;
    if (sink.writable) return true;
    sink.flush();
    return sink.writable;
  }

  /** True when `pending` has to be waited for; the pump goes on by itself then. */
  #wait(pending: void | Promise<void>): boolean {
    if (pending === undefined) return false;
    pending.then(
      () => this.#pump(),
      (error: unknown) => this.close(toStatusError(error)),
    );
    return true;
  }

  #deliver(event: CacheEvent): void | Promise<void> {
    const { matches, sink } = this.#options;
    const now = event.entry !== undefined && matches(event.entry);
    const before = event.previous !== undefined && matches(event.previous);
    if (now && event.entry) return sink.event(before ? "MODIFIED" : "ADDED", event.entry, event);
    if (!before || !event.previous) return undefined;
    event.gone ??= { ...event.previous, revision: event.revision, forms: new Map() };
    return sink.event("DELETED", event.gone, event);
  }

  #catchUp(): void {
    this.#follow().then(
      () => {
        if (this.#ended) return;
        this.#locate();
        this.#pump();
      },
      (error: unknown) => {
        if (this.#ended) return;
        const gone = isCoded(error, "gone");
        this.close(
          gone
            ? expired(`too old resource version: ${this.#sent} (${this.#options.cache.revision})`)
            : undefined,
        );
      },
    );
  }

  /** Sends from the store's history until the ring has what follows. */
  async #follow(): Promise<void> {
    const { store, cache, decode, sink } = this.#options;
    const watch = store.watch({
      ...prefixRange(cache.prefix),
      startRevision: this.#sent + 1,
      prevKv: true,
      progressNotify: true,
      signal: this.#stop.signal,
    });
    watch.ready.catch(() => {});
    try {
      watch.progress();
      for await (const batch of watch) {
        for (const { type, kv, prev } of batch.events) {
          const entry = type === "put" ? decode(kv) : undefined;
          const previous = prev ? decode(prev) : undefined;
          await this.#deliver({
            revision: kv.modRevision,
            key: kv.key.toString("utf8"),
            entry: entry?.error === undefined ? entry : undefined,
            previous: previous?.error === undefined ? previous : undefined,
          });
          if (!this.#ended && !this.#hasRoom())
            await new Promise<void>((resolve) => (this.#resume = resolve));
          if (this.#ended) return;
        }
        sink.flush();
        this.#sent = Math.max(this.#sent, batch.revision);
        if (this.#sent >= cache.ring.oldestRevision) return;
        watch.progress();
      }
    } finally {
      watch.close();
    }
  }
}
