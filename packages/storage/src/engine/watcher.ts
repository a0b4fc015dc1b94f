/**
 * One watch: where it stands, a short queue while it is in step, pages of the log while it is behind.
 *
 * Always holds: every event of the span at or below `#delivered` was handed to the reader or is in
 * the queue; nothing above it is. Batches end at the end of a revision.
 */
import type { Revision, StoreEvent, Watch, WatchBatch, WatchRequest } from "../contract.ts";
import { fault, reasonOf } from "../faults.ts";
import type { Backend, Change } from "./backend.ts";
import { spanOf, type Span } from "./span.ts";

/** Events that wait for a reader in step; beyond it the watch goes behind. */
const maxQueuedEvents = 1_024;
/** Bytes of values that wait for a reader in step. */
const maxQueuedBytes = 4 * 1024 * 1024;
/** Log entries looked at for one page. */
const logPageSize = 1_000;

/** Where watches are known. */
export interface WatchRegistry {
  readonly remove: (watcher: Watcher) => void;
  /** Watches that wait to tell progress. */
  readonly waiting: Set<Watcher>;
}

/** A watch as the hub sees it. */
export class Watcher implements Watch {
  readonly span: Span;
  readonly ready: Promise<Revision>;
  readonly #backend: Backend;
  readonly #request: WatchRequest;
  readonly #registry: WatchRegistry;
  /** Everything up to here was taken care of; where the next page of the log starts when behind. */
  #delivered: Revision = 0;
  #inStep = false;
  /** Revision the queue is complete to. */
  #queuedThrough: Revision = 0;
  #queue: StoreEvent[] = [];
  #queuedBytes = 0;
  /** Revision that must be reached before progress is told; `undefined` when nobody asked. */
  #progressAt: Revision | undefined;
  #sentSinceTick = false;
  #begun = false;
  #ended: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(backend: Backend, request: WatchRequest, registry: WatchRegistry) {
    this.span = spanOf(request);
    this.#backend = backend;
    this.#request = request;
    this.#registry = registry;
    this.ready = this.#register();
    this.ready.catch(() => {});
    const { signal } = request;
    if (signal?.aborted) this.close();
    else signal?.addEventListener("abort", () => this.close(), { once: true });
  }

  progress(): void {
    if (this.#backend.exclusive) return this.#tellAt(this.#backend.known.revision);
    // What others wrote before this call may not have arrived here yet.
    this.#backend.position().then(
      ({ revision }) => this.#tellAt(revision),
      () => this.#tellAt(this.#backend.known.revision),
    );
  }

  /** Looks again whether progress can be told. */
  recheck(): void {
    this.#wake?.();
  }

  close(): void {
    this.#end({});
  }

  /** Ends the watch with an error, after what is queued. */
  fail(error: unknown): void {
    this.#end({ error });
  }

  /** Takes a change that was just committed, when in step and wanted. Returns whether to wake. */
  offer(change: Change): boolean {
    const revision = change.kv.modRevision;
    if (!this.#inStep || revision <= this.#delivered || !this.#wants(change)) return false;
    // With an empty queue, everything before this change was taken care of.
    if (this.#queue.length === 0) this.#delivered = revision - 1;
    this.#queue.push(this.#event(change));
    this.#queuedBytes += change.kv.value.length + change.kv.key.length;
    return true;
  }

  /** The commit that was offered is complete to `through`. */
  wake(through: Revision): void {
    if (!this.#inStep) return;
    this.#queuedThrough = through;
    if (this.#queue.length > maxQueuedEvents || this.#queuedBytes > maxQueuedBytes) this.fallBehind(through);
    else this.#wake?.();
  }

  /**
   * From now on the log is read, starting after what the reader was given. `complete`: the revision to
   * which a watch in step with an empty queue had been served.
   */
  fallBehind(complete: Revision): void {
    if (this.#inStep && this.#queue.length === 0) this.#delivered = Math.max(this.#delivered, complete);
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#inStep = false;
    this.#wake?.();
  }

  /** A progress interval has passed. Returns whether this watch wants such ticks. */
  tick(): boolean {
    if (this.#request.progressNotify !== true) return false;
    if (!this.#sentSinceTick) this.progress();
    this.#sentSinceTick = false;
    return true;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch, void, undefined> {
    try {
      await this.ready;
      for (;;) {
        if (this.#queue.length > 0) {
          yield this.#sent(this.#drain());
          continue;
        }
        if (this.#ended) {
          if (this.#ended.error !== undefined) throw this.#ended.error;
          return;
        }
        if (!this.#inStep) {
          const batch = await this.#readLog();
          if (batch && !this.#ended) yield this.#sent(batch);
          continue;
        }
        const standing = Math.max(this.#delivered, this.#backend.known.revision);
        if (this.#progressAt !== undefined && standing >= this.#progressAt) {
          this.#progressAt = undefined;
          this.#registry.waiting.delete(this);
          this.#delivered = standing;
          yield this.#sent({ events: [], revision: standing });
          continue;
        }
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
      }
    } finally {
      this.#end({});
    }
  }

  async #register(): Promise<Revision> {
    const asked = this.#request.startRevision ?? 0;
    // An exclusive backend answers at once: the watch stands from the moment of the call.
    const position = this.#backend.exclusive ? this.#backend.known : await this.#backend.position();
    const from = asked > 0 ? asked : position.revision + 1;
    this.#delivered = from - 1;
    // Nothing of what is wanted was handed out yet, so everything that is will pass by here.
    this.#inStep = from > this.#backend.known.revision;
    return position.revision;
  }

  #tellAt(revision: Revision): void {
    this.#progressAt = revision;
    if (!this.#ended) this.#registry.waiting.add(this);
    this.#wake?.();
  }

  #end(ended: { readonly error?: unknown }): void {
    if (this.#ended) return;
    this.#ended = ended;
    if (ended.error === undefined) this.#queue = [];
    this.#registry.remove(this);
    this.#wake?.();
  }

  #drain(): WatchBatch {
    const events = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#delivered = this.#queuedThrough;
    return { events, revision: this.#delivered };
  }

  #sent(batch: WatchBatch): WatchBatch {
    this.#sentSinceTick = true;
    this.#begun = true;
    return batch;
  }

  async #readLog(): Promise<WatchBatch | undefined> {
    const from = this.#delivered + 1;
    let page;
    try {
      page = await this.#backend.log({
        from,
        span: this.span,
        prevKv: this.#request.prevKv === true,
        limit: logPageSize,
      });
    } catch (error) {
      if (reasonOf(error) !== "compacted" || !this.#begun) throw error;
      const { compactRevision } = this.#backend.known;
      throw fault("lost", `the watch fell behind compaction at revision ${compactRevision}: read again`, {
        cause: error,
        details: { compactRevision },
      });
    }
    this.#delivered = Math.max(this.#delivered, page.through);
    this.#begun = true;
    if (this.#delivered >= this.#backend.known.revision) this.#inStep = true;
    const events = page.changes.filter((change) => this.#wants(change)).map((change) => this.#event(change));
    return events.length > 0 ? { events, revision: this.#delivered } : undefined;
  }

  #wants(change: Change): boolean {
    const { filters } = this.#request;
    if (filters === undefined) return true;
    return !filters.includes(change.type === "put" ? "noput" : "nodelete");
  }

  #event(change: Change): StoreEvent {
    return this.#request.prevKv === true ? change : { type: change.type, kv: change.kv };
  }
}
