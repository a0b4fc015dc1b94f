/**
 * Expiry: machines whose time is over are deleted, each once.
 *
 * One replica at a time sweeps (leadership); the deletion itself is an ordinary operation, accepted by
 * compare-and-swap on the machine and on its entry in the index, so even two sweepers would expire a machine once,
 * and one whose time was extended meanwhile not at all. The index is kept by
 * time: a sweep reads only what is due.
 */
import { isCoded, messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import type { MachineService } from "../service/machines.ts";
import { Change, type Fence } from "../store/change.ts";
import { keys } from "../store/keyspace.ts";
import { pause, type Leadership } from "../store/leadership.ts";

/** Machines one sweep expires before it reads again. */
const batch = 200;
/** Deletions that are asked for at the same time. */
const concurrency = 16;

/** What expiry needs. */
export interface ExpiryOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly leadership: Leadership;
  readonly machines: MachineService;
  readonly intervalMs: number;
  onExpired?(): void;
}

/** See the module comment. */
export class Expiry {
  readonly #options: ExpiryOptions;

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** Sweeps whenever this replica leads, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void> {
    const { leadership, edges, intervalMs } = this.#options;
    return leadership.run(
      "expiry",
      async (fence, held) => {
        while (!held.aborted) {
          const next = await this.sweep(fence, held);
          const untilNext = next === undefined ? intervalMs : Math.max(0, next - edges.clock.now());
          await pause(edges, Math.min(intervalMs, untilNext), held);
        }
      },
      signal,
    );
  }

  /** Deletes what is due; answers when the next machine is due, if one is known. */
  async sweep(fence: Fence, signal: AbortSignal): Promise<number | undefined> {
    const { store, edges } = this.#options;
    let from: string = keys.expiries;
    while (!signal.aborted) {
      const { kvs, more } = await store.range({
        key: from,
        end: endOfExpiries,
        limit: batch,
        keysOnly: true,
      });
      const entries = kvs.map((kv) => parse(kv.key.toString("utf8")));
      const due = entries.filter((entry) => entry.atMs <= edges.clock.now());
      for (let i = 0; i < due.length && !signal.aborted; i += concurrency) {
        await Promise.all(due.slice(i, i + concurrency).map((entry) => this.#expire(entry, fence)));
      }
      const later = entries.find((entry) => entry.atMs > edges.clock.now());
      if (later) return later.atMs;
      const last = entries.at(-1);
      if (!more || !last) return undefined;
      from = `${last.key}\0`;
    }
    return undefined;
  }

  async #expire(entry: Entry, fence: Fence): Promise<void> {
    const { machines, edges, store, onExpired } = this.#options;
    try {
      const asking = {
        requestedBy: "expiry",
        // The entry goes when the machine's time is extended: then it must live on.
        record: (change: Change) => void change.fencedBy(fence).present(entry.key),
      };
      if (await machines.delete(entry.project, entry.id, asking, "expired")) onExpired?.();
    } catch (error) {
      if (isCoded(error, "not_found")) {
        await new Change().fencedBy(fence).delete(entry.key).commit(store, edges);
        return;
      }
      // The next sweep tries again; other machines are not held up.
      edges.log.warn("machine could not be expired", { machineId: entry.id, problem: messageOf(error) });
    }
  }
}

interface Entry {
  readonly key: string;
  readonly atMs: number;
  readonly project: string;
  readonly id: string;
}

const endOfExpiries = `${keys.expiries.slice(0, -1)}0`;

function parse(key: string): Entry {
  const [time = "", project = "", id = ""] = key.slice(keys.expiries.length).split("/");
  return { key, atMs: Number(time), project, id };
}
