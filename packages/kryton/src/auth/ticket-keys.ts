/**
 * Keys that sign console tickets: in the shared store, so that every replica accepts what any has
 * issued, and replaced before they grow old.
 *
 * A key signs for half of its life and verifies for all of it, so a ticket is always good for its full
 * time. The stored key is sealed.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { z } from "zod";
import { Change } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys, timeKey } from "../store/keyspace.ts";
import type { Sealer } from "../store/sealer.ts";

/** How long a key signs, milliseconds. It verifies for twice as long. */
export const signMs = 12 * 3_600_000;
/** How long a replica relies on what it has read, milliseconds. */
const cacheMs = 30_000;

const keySchema = z.object({ sealed: z.string(), createdAt: z.number() });

interface TicketKey {
  readonly id: string;
  readonly secret: Buffer;
  readonly createdAt: number;
}

/** See the module comment. */
export class TicketKeys {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #sealer: Sealer;
  readonly #documents: Documents;
  #known = new Map<string, TicketKey>();
  #readAt = -Infinity;

  constructor(store: Store, edges: Edges, sealer: Sealer) {
    this.#store = store;
    this.#edges = edges;
    this.#sealer = sealer;
    this.#documents = new Documents(store, edges.log);
  }

  /** The key to sign with; made when there is none that is young enough. */
  async signing(): Promise<TicketKey> {
    for (let attempt = 0; attempt < 8; attempt++) {
      await this.#refresh();
      const now = this.#edges.clock.now();
      const young = [...this.#known.values()]
        .filter((key) => now - key.createdAt < signMs)
        .sort((a, b) => (a.id < b.id ? -1 : 1))[0];
      if (young) return young;
      // One key per period: replicas that rotate at the same time agree by the name.
      const id = timeKey(Math.floor(now / signMs) * signMs);
      const place = keys.ticketKey(id);
      const secret = Buffer.from(this.#edges.random.bytes(32)).toString("base64url");
      const change = new Change()
        .absent(place)
        .put(place, { sealed: this.#sealer.seal(secret, place), createdAt: now });
      for (const old of this.#known.values()) {
        if (now - old.createdAt >= 2 * signMs) change.delete(keys.ticketKey(old.id));
      }
      await change.commit(this.#store, this.#edges);
      this.#readAt = -Infinity;
    }
    throw new RangeError("no console ticket key could be made");
  }

  /** The key of this id, while it still verifies. */
  async verifying(id: string): Promise<TicketKey | undefined> {
    await this.#refresh();
    if (!this.#known.has(id)) {
      this.#readAt = Math.min(this.#readAt, this.#edges.clock.monotonic() - cacheMs + 1_000);
      await this.#refresh();
    }
    const key = this.#known.get(id);
    return key && this.#edges.clock.now() - key.createdAt < 2 * signMs ? key : undefined;
  }

  async #refresh(): Promise<void> {
    if (this.#edges.clock.monotonic() - this.#readAt < cacheMs) return;
    const stored = await this.#documents.list(keys.ticketKey(), keySchema);
    this.#known = new Map(
      stored.map(({ key: place, value }) => {
        const id = place.slice(keys.ticketKey().length);
        const secret = Buffer.from(this.#sealer.open(value.sealed, place), "base64url");
        return [id, { id, secret, createdAt: value.createdAt }];
      }),
    );
    this.#readAt = this.#edges.clock.monotonic();
  }
}
