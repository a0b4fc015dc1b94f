/**
 * Keeps the store small: old events, ended operations and remembered idempotency keys are removed by one
 * replica at a time, a few at once.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import { prefixRange, type KeyValue, type Store } from "@kontinuum/storage/client";
import { idempotencySchema, rememberMs } from "../http/idempotency.ts";
import { isFinal, operationSchema } from "../model/operation.ts";
import { Change, type Fence } from "../store/change.ts";
import { decode, type Schema } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { pause, type Leadership } from "../store/leadership.ts";

/** Time between two rounds, milliseconds. */
const everyMs = 60_000;
/** Keys one transaction removes. */
const batch = 100;
const page = 500;
/** How long an ended operation is kept, milliseconds. */
export const operationLifeMs = 7 * 24 * 3_600_000;

/** What the keeper needs. */
export interface KeeperOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly leadership: Leadership;
  /** Events that stay. */
  readonly retention: number;
}

/** See the module comment. */
export class Keeper {
  readonly #options: KeeperOptions;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Tidies whenever this replica leads, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void> {
    const { leadership, edges } = this.#options;
    return leadership.run(
      "keeper",
      async (fence, held) => {
        while (!held.aborted) {
          try {
            await this.tidy(fence, held);
          } catch (error) {
            if (!held.aborted) edges.log.warn("housekeeping was cut short", { problem: messageOf(error) });
          }
          await pause(edges, everyMs, held);
        }
      },
      signal,
    );
  }

  /** One round. */
  async tidy(fence: Fence, signal: AbortSignal): Promise<void> {
    await this.#trimEvents(fence, signal);
    const now = this.#options.edges.clock.now();
    await this.#drop(keys.operation(), operationSchema, fence, signal, (operation, change) => {
      if (!isFinal(operation) || Date.parse(operation.updatedAt) > now - operationLifeMs) return false;
      change.delete(keys.operationOf(operation.machineId, operation.id));
      return true;
    });
    await this.#drop(
      keys.idempotencies,
      idempotencySchema,
      fence,
      signal,
      (kept) => kept.at < now - rememberMs,
    );
  }

  async #trimEvents(fence: Fence, signal: AbortSignal): Promise<void> {
    const { store, retention, edges } = this.#options;
    const all = prefixRange(keys.event());
    const { count } = await store.range({ ...all, countOnly: true });
    if (count <= retention) return;
    const { kvs } = await store.range({
      ...all,
      keysOnly: true,
      sort: { by: "create" },
      limit: count - retention,
    });
    for (let i = 0; i < kvs.length && !signal.aborted; i += batch) {
      const change = new Change().fencedBy(fence);
      for (const kv of kvs.slice(i, i + batch)) change.delete(kv.key.toString("utf8"));
      if (!(await change.commit(store, edges)).succeeded) return;
    }
  }

  /** Removes the documents under `prefix` that `old` says are; it may add what belongs to them. */
  async #drop<T>(
    prefix: string,
    schema: Schema<T>,
    fence: Fence,
    signal: AbortSignal,
    old: (value: T, change: Change) => boolean,
  ): Promise<void> {
    const { store, edges } = this.#options;
    const { key, end } = prefixRange(prefix);
    let from: Buffer = key;
    while (!signal.aborted) {
      const { kvs, more } = await store.range({ key: from, end, limit: page });
      for (let i = 0; i < kvs.length; i += batch) {
        const change = new Change().fencedBy(fence);
        for (const kv of kvs.slice(i, i + batch)) this.#consider(kv, schema, old, change);
        if (change.ops.length > 0 && !(await change.commit(store, edges)).succeeded) return;
      }
      const last = kvs.at(-1);
      if (!more || !last) return;
      from = Buffer.concat([last.key, Buffer.from([0])]);
    }
  }

  #consider<T>(
    kv: KeyValue,
    schema: Schema<T>,
    old: (value: T, change: Change) => boolean,
    change: Change,
  ): void {
    const stored = decode(kv, schema, this.#options.edges.log);
    if (stored && old(stored.value, change)) {
      const key = kv.key.toString("utf8");
      change.unchanged(key, kv.modRevision).delete(key);
    }
  }
}
