/**
 * All watches of one store in this process.
 *
 * A watch is either *in step* (the hub hands it every commit as it happens) or *behind* (it reads
 * pages of the log until it has caught up, then falls into step in the same turn of the event loop,
 * so nothing lies between). A slow reader's short queue is dropped and it goes behind: it costs the
 * others nothing, and memory does not grow with its delay.
 */
import type { Edges, Timer } from "@kontinuum/std";
import type { Revision, Watch, WatchRequest } from "../contract.ts";
import { fault, storeClosed } from "../faults.ts";
import type { Backend, Change } from "./backend.ts";
import { inSpan } from "./span.ts";
import { Watcher, type WatchRegistry } from "./watcher.ts";

/** How often a quiet watch with `progressNotify` is told where it stands, in milliseconds. */
export const progressIntervalMs = 5_000;

/** Registers watches and hands commits to them. */
export class WatchHub {
  readonly #backend: Backend;
  readonly #edges: Edges;
  /** Watches of one key, by that key; watches of ranges apart. */
  readonly #byKey = new Map<string, Set<Watcher>>();
  readonly #byRange = new Set<Watcher>();
  readonly #registry: WatchRegistry = { remove: (watcher) => this.#remove(watcher), waiting: new Set() };
  #progressTimer: Timer | undefined;
  #closed = false;
  /** Revision up to which watches in step were served. */
  #published: Revision;

  constructor(backend: Backend, edges: Edges) {
    this.#backend = backend;
    this.#edges = edges;
    this.#published = backend.known.revision;
    backend.onCommit((changes) => this.#publish(changes));
    backend.onLoss?.(() => this.#lost());
  }

  /** Opens a watch. Fails with `invalid_argument` for an empty key. */
  watch(request: WatchRequest): Watch {
    if (this.#closed) throw storeClosed();
    const watcher = new Watcher(this.#backend, request, this.#registry);
    if (watcher.span.single) {
      const name = watcher.span.start.toString("latin1");
      const set = this.#byKey.get(name) ?? new Set();
      this.#byKey.set(name, set.add(watcher));
    } else this.#byRange.add(watcher);
    if (request.progressNotify === true) this.#scheduleProgress();
    return watcher;
  }

  /** Ends every watch with `unavailable`. */
  close(): void {
    this.#closed = true;
    this.#progressTimer?.clear();
    for (const watcher of this.#all()) watcher.fail(storeClosed());
  }

  #publish(changes: readonly Change[] | undefined): void {
    const through: Revision = this.#backend.known.revision;
    const before = this.#published;
    this.#published = through;
    if (changes === undefined) {
      for (const watcher of this.#all()) watcher.fallBehind(before);
      return;
    }
    const touched = new Set<Watcher>();
    const hand = (watcher: Watcher, change: Change): void => {
      if (watcher.offer(change)) touched.add(watcher);
    };
    for (const change of changes) {
      const { key } = change.kv;
      const single = this.#byKey.size > 0 ? this.#byKey.get(key.toString("latin1")) : undefined;
      if (single) for (const watcher of single) hand(watcher, change);
      for (const watcher of this.#byRange) if (inSpan(watcher.span, key)) hand(watcher, change);
    }
    for (const watcher of touched) watcher.wake(through);
    for (const watcher of this.#registry.waiting) watcher.recheck();
  }

  /** The database went back: nobody can go on from where they are. */
  #lost(): void {
    const compactRevision = this.#published;
    this.#published = this.#backend.known.revision;
    const text = `the database may have lost acknowledged writes up to revision ${compactRevision}: read again`;
    for (const watcher of this.#all())
      watcher.fail(fault("compacted", text, { details: { compactRevision } }));
  }

  #remove(watcher: Watcher): void {
    this.#registry.waiting.delete(watcher);
    if (!watcher.span.single) {
      this.#byRange.delete(watcher);
      return;
    }
    const name = watcher.span.start.toString("latin1");
    const set = this.#byKey.get(name);
    set?.delete(watcher);
    if (set?.size === 0) this.#byKey.delete(name);
  }

  #scheduleProgress(): void {
    this.#progressTimer ??= this.#edges.clock.timer(progressIntervalMs, () => {
      this.#progressTimer = undefined;
      let wanted = false;
      for (const watcher of this.#all()) wanted = watcher.tick() || wanted;
      if (wanted && !this.#closed) this.#scheduleProgress();
    });
  }

  #all(): Watcher[] {
    return [...this.#byRange, ...[...this.#byKey.values()].flatMap((set) => [...set])];
  }
}
