/**
 * The event log as one replica sees it: the newest events of the shared store, in the store's order.
 *
 * Events are appended by whoever makes a change (`store/change.ts`). Here they are only read: one watch
 * feeds a bounded window, from which history and streams are answered. Order is (revision, id) on every
 * replica. A read first waits until the window has reached the store's revision, so that it sees
 * every event of every acknowledged request, whichever replica took it.
 */
import { CodedError, messageOf, type Edges } from "@kontinuum/std";
import { prefixRange, type KeyValue, type Store, type Watch } from "@kontinuum/storage/client";
import { eventSchema, type CloudEvent } from "../model/event.ts";
import { decode } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { pause } from "../store/leadership.ts";

/** Events kept in the log and in memory, unless configured otherwise. */
export const defaultRetention = 10_000;
const reloadMs = 500;
const catchUpMs = 5_000;

/** An event in its place. */
export interface LoggedEvent {
  readonly event: CloudEvent;
  /** Its number in this replica's window: one more than that of the event before it. */
  readonly ordinal: number;
  /** The store's revision at which it was appended. */
  readonly revision: number;
  /** The event as one line of JSON, made once. */
  readonly json: string;
  /** The event as a frame of a server-sent stream, made once. */
  readonly frame: Buffer;
}

/** Called with new events, in order. `gap`: older events were lost between the last call and this one. */
export type EventListener = (events: readonly LoggedEvent[], gap: boolean) => void;

/** Where a reader wants to go on. */
export interface Position {
  /** Events after that position, oldest first. */
  readonly events: readonly LoggedEvent[];
  /** False when the position is not in the window (any more): `events` is then the whole window. */
  readonly exact: boolean;
}

/** See the module comment. */
export class EventLog {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #retention: number;
  readonly #listeners = new Set<EventListener>();
  readonly #index = new Map<string, number>();
  #window: LoggedEvent[] = [];
  /** Ordinal of the first event in the window; ordinals are local to this replica. */
  #base = 0;
  #revision = 0;
  #watch: Watch | undefined;
  #reached: { revision: number; resolve(): void }[] = [];

  constructor(store: Store, edges: Edges, retention = defaultRetention) {
    this.#store = store;
    this.#edges = edges;
    this.#retention = retention;
  }

  get retention(): number {
    return this.#retention;
  }

  /** The window now, oldest first. */
  get window(): readonly LoggedEvent[] {
    return this.#window;
  }

  /** Ordinal of the next event. */
  get next(): number {
    return this.#base + this.#window.length;
  }

  /** Follows the log until `signal` aborts. `ready` is called once the window is filled. */
  async run(ready: () => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#follow(ready, signal);
      } catch (error) {
        if (!signal.aborted) this.#edges.log.warn("event log reloads", { problem: messageOf(error) });
      }
      await pause(this.#edges, reloadMs, signal);
    }
    for (const waiter of this.#reached.splice(0)) waiter.resolve();
  }

  /**
   * Waits until every event of every write acknowledged before this call is in the window. Fails with `unavailable` when that
   * takes too long: an answer that lacks some would pass for the whole.
   */
  async catchUp(): Promise<void> {
    const target = await this.#store.revision();
    if (this.#revision >= target) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { revision: target, resolve };
    this.#reached.push(waiter);
    this.#watch?.progress();
    const timer = this.#edges.clock.timer(catchUpMs, () =>
      reject(new CodedError("unavailable", "the event log is behind the store at the moment: ask again")),
    );
    try {
      await promise;
    } finally {
      timer.clear();
      this.#reached = this.#reached.filter((w) => w !== waiter);
    }
  }

  /** Calls `listener` for every event from now on. Returns how to stop. */
  listen(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Events after the one of id `lastId`. */
  after(lastId: string): Position {
    const ordinal = this.#index.get(lastId);
    if (ordinal === undefined) return { events: this.#window, exact: false };
    return { events: this.#window.slice(ordinal - this.#base + 1), exact: true };
  }

  /** The event of an ordinal, while it is in the window. */
  at(ordinal: number): LoggedEvent | undefined {
    return this.#window[ordinal - this.#base];
  }

  /** Events from this ordinal on. */
  from(ordinal: number): Position {
    if (ordinal < this.#base) return { events: this.#window, exact: false };
    return { events: this.#window.slice(ordinal - this.#base), exact: true };
  }

  async #follow(ready: () => void, signal: AbortSignal): Promise<void> {
    const all = prefixRange(keys.event());
    const { kvs, revision } = await this.#store.range({ ...all, sort: { by: "create" } });
    const known = this.#window.at(-1)?.event.id;
    const gap = known !== undefined && !kvs.some((kv) => kv.key.toString("utf8") === keys.event(known));
    // What is older than the window was dropped from it, and is not news now.
    const newest = this.#window.at(-1)?.revision ?? 0;
    const fresh = kvs.filter(
      (kv) =>
        kv.createRevision >= newest && !this.#index.has(kv.key.toString("utf8").slice(keys.event().length)),
    );
    this.#append(fresh, gap);
    this.#reach(revision);
    const watch = this.#store.watch({ ...all, startRevision: revision + 1, filters: ["nodelete"], signal });
    this.#watch = watch;
    try {
      await watch.ready;
      ready();
      if (this.#reached.length > 0) watch.progress();
      for await (const batch of watch) {
        if (batch.events.length > 0)
          this.#append(
            batch.events.map((event) => event.kv),
            false,
          );
        this.#reach(batch.revision);
      }
    } finally {
      this.#watch = undefined;
      watch.close();
    }
  }

  #append(kvs: readonly KeyValue[], gap: boolean): void {
    const added: LoggedEvent[] = [];
    const ordered = [...kvs].sort(
      (a, b) => a.createRevision - b.createRevision || Buffer.compare(a.key, b.key),
    );
    for (const kv of ordered) {
      const stored = decode(kv, eventSchema, this.#edges.log);
      if (!stored) continue;
      const event = stored.value;
      const json = JSON.stringify(event);
      const frame = Buffer.from(`id: ${event.id}\nevent: cloudevent\ndata: ${json}\n\n`, "utf8");
      const ordinal = this.next;
      const logged = { event, ordinal, revision: kv.createRevision, json, frame };
      this.#index.set(event.id, ordinal);
      this.#window.push(logged);
      added.push(logged);
    }
    this.#trim();
    if (added.length > 0 || gap) for (const listener of this.#listeners) listener(added, gap);
  }

  #trim(): void {
    // In steps of an eighth, so that a full window is not copied at every event.
    const slack = Math.max(1, Math.floor(this.#retention / 8));
    if (this.#window.length <= this.#retention + slack) return;
    const dropped = this.#window.length - this.#retention;
    for (const { event } of this.#window.slice(0, dropped)) this.#index.delete(event.id);
    this.#window = this.#window.slice(dropped);
    this.#base += dropped;
  }

  #reach(revision: number): void {
    this.#revision = Math.max(this.#revision, revision);
    this.#reached = this.#reached.filter((waiter) => {
      if (waiter.revision > this.#revision) return true;
      waiter.resolve();
      return false;
    });
  }
}
