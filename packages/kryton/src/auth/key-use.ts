/**
 * When each API key was last used, for finding keys that nobody needs.
 *
 * Kept in memory and written to the shared store every half minute, only for keys whose time moved by a minute: a
 * sign-in never waits for it. So a time is exact to about a minute, and the last minute is lost when a replica dies.
 */
import { createHash } from "node:crypto";
import { messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import { z } from "zod";
import { formatTime, timeSchema } from "../model/bytes.ts";
import { Change } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { pause } from "../store/leadership.ts";

const flushMs = 30_000;
const exactMs = 60_000;
/** Names remembered; more are not counted. */
const maxNames = 10_000;
const batch = 100;

const useSchema = z.object({ name: z.string(), lastUsedAt: timeSchema });

/** See the module comment. */
export class KeyUse {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #documents: Documents;
  /** Last use, and the time that was written of it, by name; epoch milliseconds. */
  readonly #seen = new Map<string, { used: number; written: number }>();

  constructor(store: Store, edges: Edges) {
    this.#store = store;
    this.#edges = edges;
    this.#documents = new Documents(store, edges.log);
  }

  /** Notes that a key was used now. */
  used(name: string): void {
    const now = this.#edges.clock.now();
    const seen = this.#seen.get(name);
    if (seen) seen.used = now;
    else if (this.#seen.size < maxNames) this.#seen.set(name, { used: now, written: 0 });
  }

  /** Last uses by name, RFC 3339: what is stored, and what this replica knows better. */
  async list(): Promise<Map<string, string>> {
    const stored = await this.#documents.list(keys.apiKeyUse(), useSchema, { limit: maxNames });
    const times = new Map(stored.map(({ value }) => [value.name, value.lastUsedAt]));
    for (const [name, { used }] of this.#seen) {
      const known = times.get(name);
      if (known === undefined || Date.parse(known) < used) times.set(name, formatTime(used));
    }
    return times;
  }

  /** Writes now what has to be written. */
  async flush(): Promise<void> {
    const due = [...this.#seen].filter(([, { used, written }]) => used - written >= exactMs);
    for (let i = 0; i < due.length; i += batch) {
      const change = new Change();
      const part = due.slice(i, i + batch).map(([name, seen]) => ({ name, seen, used: seen.used }));
      for (const { name, used } of part) {
        const key = keys.apiKeyUse(createHash("sha256").update(name).digest("hex"));
        change.put(key, { name, lastUsedAt: formatTime(used) });
      }
      await change.commit(this.#store, this.#edges);
      for (const { seen, used } of part) seen.written = used;
    }
  }

  /** Writes from time to time until `signal` aborts, and once more then. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await pause(this.#edges, flushMs, signal);
      try {
        await this.flush();
      } catch (error) {
        this.#edges.log.warn("last uses of API keys could not be written", { problem: messageOf(error) });
      }
      if (signal.aborted) return;
    }
  }
}
