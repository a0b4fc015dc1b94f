/**
 * Progress of a running operation, written down at most once a second, newest first.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { formatTime } from "../model/bytes.ts";
import { Change } from "../store/change.ts";
import { keys } from "../store/keyspace.ts";
import type { Held } from "./runner.ts";

const everyMs = 1_000;

interface Update {
  readonly percent?: number;
  readonly phase?: string;
  readonly message?: string;
}

/** Collects reports of one operation and stores the newest, fenced by its claim. */
export class Progress {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #held: Held;
  readonly #cancelling: () => boolean;
  #latest: Update = {};
  #dirty = false;
  readonly #closing = Promise.withResolvers<void>();
  #closed = false;
  #writing: Promise<void> | undefined;

  /** `cancelling`: whether somebody asked to cancel the operation, as far as this replica knows. */
  constructor(store: Store, edges: Edges, held: Held, cancelling: () => boolean) {
    this.#store = store;
    this.#edges = edges;
    this.#held = held;
    this.#cancelling = cancelling;
  }

  report(update: Update): void {
    if (this.#closed) return;
    this.#latest = { ...this.#latest, ...update };
    this.#dirty = true;
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
  }

  /** No more writes after this. */
  async settle(): Promise<void> {
    this.#closed = true;
    this.#closing.resolve();
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#dirty && !this.#closed) {
      this.#dirty = false;
      const { operation, fence } = this.#held;
      const { percent, phase, message } = this.#latest;
      const now = this.#edges.clock.now();
      try {
        // A cancellation asked for meanwhile is written in the same document and must stay visible.
        const cancelling = this.#cancelling();
        const change = new Change().fencedBy(fence);
        if (!cancelling) change.absent(keys.cancel(operation.id));
        await change
          .put(keys.operation(operation.id), {
            ...operation,
            ...(cancelling ? { cancelRequested: true } : {}),
            progressPercent: Math.min(99, Math.max(0, Math.round(percent ?? operation.progressPercent))),
            ...(phase === undefined ? {} : { phase }),
            ...(message === undefined ? {} : { message }),
            updatedAt: formatTime(now),
          })
          .commit(this.#store, this.#edges);
      } catch (error) {
        this.#edges.log.debug("progress was not written", { problem: messageOf(error) });
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = this.#edges.clock.timer(everyMs, resolve);
      await Promise.race([promise, this.#closing.promise]);
      timer.clear();
    }
  }
}
