/**
 * Work that exactly one replica does at a time: each task has a key bound to its holder's lease.
 *
 * The key's creation revision is the fence: whatever the task writes is conditional on it, so a
 * holder that was away for too long can do nothing any more.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { Change, type Fence } from "./change.ts";
import { keys } from "./keyspace.ts";
import type { ReplicaSession } from "./session.ts";

const retryMs = 1_000;

/** A task for one replica. It runs until `signal` aborts; returning early gives the task up for a while. */
export type LeaderTask = (fence: Fence, signal: AbortSignal) => Promise<void>;

/** Takes part in the elections of one replica. */
export class Leadership {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #session: ReplicaSession;

  constructor(store: Store, edges: Edges, session: ReplicaSession) {
    this.#store = store;
    this.#edges = edges;
    this.#session = session;
  }

  /** Competes for `name` and runs `task` whenever this replica holds it, until `signal` aborts. */
  async run(name: string, task: LeaderTask, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const lease = await this.#session.lease();
        const key = keys.leader(name);
        const take = new Change().absent(key).put(key, { replica: this.#session.replicaId }, lease.id);
        const taken = await this.#session.commit(take, lease);
        if (taken.succeeded) {
          await this.#held(key, taken.revision, AbortSignal.any([signal, lease.signal]), task);
          await new Change()
            .fencedBy({ key, revision: taken.revision })
            .delete(key)
            .commit(this.#store, this.#edges);
        } else {
          await this.#vacancy(key, signal);
          continue;
        }
      } catch (error) {
        if (!signal.aborted)
          this.#edges.log.warn("leader task stopped", { task: name, problem: messageOf(error) });
      }
      await pause(this.#edges, retryMs, signal);
    }
  }

  /** Runs the task and interrupts it when somebody took the key away. */
  async #held(key: string, revision: number, signal: AbortSignal, task: LeaderTask): Promise<void> {
    // A task waits for its signal to abort: one that has aborted already would let it wait for ever.
    if (signal.aborted) return;
    const deposed = new AbortController();
    const watch = this.#store.watch({ key, filters: ["noput"], startRevision: revision + 1 });
    const watching = (async () => {
      for await (const batch of watch) if (batch.events.length > 0) deposed.abort("deposed");
    })().catch((error: unknown) => deposed.abort(error));
    try {
      await task({ key, revision }, AbortSignal.any([signal, deposed.signal]));
    } finally {
      // What the task left running must not go on beside its successor.
      deposed.abort("the task ended");
      watch.close();
      await watching;
    }
  }

  /** Waits until nobody holds `key`. */
  async #vacancy(key: string, signal: AbortSignal): Promise<void> {
    const watch = this.#store.watch({ key, filters: ["noput"], signal });
    try {
      await watch.ready;
      const { kvs } = await this.#store.range({ key });
      const held = kvs[0];
      if (!held) return;
      if (held.value.includes(this.#session.replicaId)) {
        // Ours without our knowledge: the store took it and its answer was lost. Our lease would keep it for ever.
        const fence = { key, revision: held.createRevision };
        await new Change().fencedBy(fence).delete(key).commit(this.#store, this.#edges);
        return;
      }
      for await (const batch of watch) if (batch.events.length > 0) return;
    } finally {
      watch.close();
    }
  }
}

/** Sleeps, and returns early without an error when `signal` aborts. */
export async function pause(edges: Edges, delayMs: number, signal: AbortSignal): Promise<void> {
  await edges.clock.sleep(delayMs, signal).catch(() => undefined);
}
