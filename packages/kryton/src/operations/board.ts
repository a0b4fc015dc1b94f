/**
 * The work board: which operations wait for which machine, and who holds what, mirrored from the store.
 *
 * One watch feeds it. It only ever suggests what to do next; claims are decided by transactions. A
 * lost watch means loading again, so listeners must treat every notice as "look again".
 */
import { messageOf, type Edges } from "@kontinuum/std";
import { prefixRange, type KeyValue, type Store, type StoreEvent } from "@kontinuum/storage/client";
import { z } from "zod";
import { keys } from "../store/keyspace.ts";
import { pause } from "../store/leadership.ts";

const reloadMs = 500;

/** The value of a queue entry: what a replica must know before it claims. */
export const queueEntrySchema = z.object({
  /** Earliest start, milliseconds since the epoch; 0: at once. */
  notBefore: z.number(),
  /** A replica that should leave it to others for a while. */
  avoid: z.string().optional(),
});
/** See {@link queueEntrySchema}. */
export type QueueEntry = z.infer<typeof queueEntrySchema>;

/** The value of a claim. */
const claimSchema = z.object({ operation: z.string(), replica: z.string() });

/** A claim as the board knows it. */
export interface Claim {
  readonly revision: number;
  readonly replica: string;
}

/** A waiting operation. */
export interface Waiting extends QueueEntry {
  readonly operationId: string;
  readonly createRevision: number;
}

/** What the board tells its runner. */
export interface BoardListener {
  /** Something about this machine's queue or claim changed. */
  changed(machineId: string): void;
  /** Somebody asked to cancel this operation. */
  cancelled(operationId: string): void;
  /** A claim is gone, by its creation revision: given back, or ended with its replica's lease. */
  released(machineId: string, revision: number): void;
  /** The operation is final: its queue entry is gone. */
  left(operationId: string): void;
}

/** See the module comment. */
export class WorkBoard {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #queues = new Map<string, Map<string, Waiting>>();
  readonly #claims = new Map<string, Claim>();
  readonly #cancels = new Set<string>();

  constructor(store: Store, edges: Edges) {
    this.#store = store;
    this.#edges = edges;
  }

  /** The operation to run next on a machine. */
  head(machineId: string): Waiting | undefined {
    let first: Waiting | undefined;
    for (const entry of this.#queues.get(machineId)?.values() ?? []) {
      if (!first || entry.createRevision < first.createRevision) first = entry;
    }
    return first;
  }

  /** How many operations wait or run on a machine. */
  length(machineId: string): number {
    return this.#queues.get(machineId)?.size ?? 0;
  }

  claimed(machineId: string): boolean {
    return this.#claims.has(machineId);
  }

  /** Who holds the claim of a machine. */
  claim(machineId: string): Claim | undefined {
    return this.#claims.get(machineId);
  }

  cancelRequested(operationId: string): boolean {
    return this.#cancels.has(operationId);
  }

  /** Operations waiting or running on all machines. */
  get total(): number {
    let sum = 0;
    for (const queue of this.#queues.values()) sum += queue.size;
    return sum;
  }

  /** Mirrors until `signal` aborts. `ready` is called after the first load. */
  async run(listener: BoardListener, ready: () => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#follow(listener, ready, signal);
      } catch (error) {
        if (!signal.aborted) this.#edges.log.warn("work board reloads", { problem: messageOf(error) });
      }
      await pause(this.#edges, reloadMs, signal);
    }
  }

  async #follow(listener: BoardListener, ready: () => void, signal: AbortSignal): Promise<void> {
    const all = prefixRange(keys.work);
    const { kvs, revision } = await this.#store.range(all);
    const before = new Set(
      [...this.#queues].flatMap(([machine, queue]) => [...queue.keys()].map((id) => `${machine}/${id}`)),
    );
    const claimed = [...this.#claims];
    this.#queues.clear();
    this.#claims.clear();
    this.#cancels.clear();
    for (const kv of kvs) this.#put(kv);
    for (const [machineId, claim] of claimed) {
      if (this.#claims.get(machineId)?.revision !== claim.revision) {
        listener.released(machineId, claim.revision);
      }
    }
    for (const path of before) {
      const [machineId = "", id = ""] = path.split("/");
      if (!this.#queues.get(machineId)?.has(id)) listener.left(id);
    }
    for (const machineId of this.#queues.keys()) listener.changed(machineId);
    for (const id of this.#cancels) listener.cancelled(id);
    const watch = this.#store.watch({ ...all, startRevision: revision + 1, signal });
    try {
      await watch.ready;
      ready();
      for await (const batch of watch) this.#applyAll(batch.events, listener);
    } finally {
      watch.close();
    }
  }

  /** Applies a batch as a whole before anybody is told: a queue entry and its claim come together. */
  #applyAll(events: readonly StoreEvent[], listener: BoardListener): void {
    const notices = events.map((event) => this.#apply(event, listener));
    for (const notice of notices) notice?.();
  }

  #apply(event: StoreEvent, listener: BoardListener): (() => void) | undefined {
    const key = event.kv.key.toString("utf8");
    if (event.type === "put") {
      this.#put(event.kv);
      if (key.startsWith(keys.cancel())) return () => listener.cancelled(key.slice(keys.cancel().length));
      return key.startsWith(keys.queue()) ? () => listener.changed(machineOf(key)) : undefined;
    }
    if (key.startsWith(keys.cancel())) {
      this.#cancels.delete(key.slice(keys.cancel().length));
      return undefined;
    }
    if (key.startsWith(keys.claim())) {
      const machineId = key.slice(keys.claim().length);
      const revision = this.#claims.get(machineId)?.revision;
      this.#claims.delete(machineId);
      return () => {
        if (revision !== undefined) listener.released(machineId, revision);
        listener.changed(machineId);
      };
    }
    if (key.startsWith(keys.queue())) {
      const machineId = machineOf(key);
      const id = key.slice(keys.queue(machineId).length);
      const queue = this.#queues.get(machineId);
      queue?.delete(id);
      if (queue?.size === 0) this.#queues.delete(machineId);
      return () => {
        listener.left(id);
        listener.changed(machineId);
      };
    }
    return undefined;
  }

  #put(kv: KeyValue): void {
    const key = kv.key.toString("utf8");
    if (key.startsWith(keys.claim())) {
      const holder = parsed(kv, claimSchema);
      this.#claims.set(key.slice(keys.claim().length), {
        revision: kv.createRevision,
        replica: holder?.replica ?? "",
      });
    } else if (key.startsWith(keys.cancel())) {
      this.#cancels.add(key.slice(keys.cancel().length));
    } else if (key.startsWith(keys.queue())) {
      const machineId = machineOf(key);
      const operationId = key.slice(keys.queue(machineId).length);
      let queue = this.#queues.get(machineId);
      if (!queue) this.#queues.set(machineId, (queue = new Map()));
      queue.set(operationId, { operationId, createRevision: kv.createRevision, ...entryOf(kv) });
    }
  }
}

function machineOf(queueKey: string): string {
  return queueKey.slice(keys.queue().length).split("/", 1)[0] ?? "";
}

/** A damaged entry still holds its place in the queue and runs at once. */
function entryOf(kv: KeyValue): QueueEntry {
  return parsed(kv, queueEntrySchema) ?? { notBefore: 0 };
}

function parsed<T>(kv: KeyValue, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.safeParse(JSON.parse(kv.value.toString("utf8"))).data;
  } catch {
    return undefined;
  }
}
