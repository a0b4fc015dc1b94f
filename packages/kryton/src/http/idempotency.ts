/**
 * `Idempotency-Key`: a repeated request is recognised and answered like the first, on any replica.
 *
 * The key is reserved before the work, bound to this replica's lease; the transaction that makes the
 * change turns the reservation into a record of what was accepted; the answer is added at the end. So
 * a crash at any moment leaves either no trace and no change, or a change that a repeat finds.
 */
import { createHash } from "node:crypto";
import { messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { z } from "zod";
import { invalidRequest, KrytonError } from "../model/errors.ts";
import type { AcceptedChange } from "../service/asking.ts";
import { Change } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import type { ReplicaSession } from "../store/session.ts";
import type { Reply } from "./reply.ts";

/** How long a key is remembered, milliseconds. */
export const rememberMs = 24 * 3_600_000;
/** Largest answer that is kept; a larger one is rebuilt from what was accepted. */
const maxKeptBytes = 64 * 1024;

/** The stored form of a key. */
export const idempotencySchema = z.object({
  state: z.enum(["pending", "accepted", "done"]),
  fingerprint: z.string(),
  at: z.number(),
  machineId: z.string().optional(),
  snapshotId: z.string().optional(),
  /** Replica that works on it. */
  owner: z.string().optional(),
  status: z.int().optional(),
  json: z.unknown().optional(),
});
type Record_ = z.infer<typeof idempotencySchema>;

/** A request that carries a key. */
export interface Keyed {
  readonly caller: string;
  readonly key: string;
  /** Hash over method, target and body. */
  readonly fingerprint: string;
}

/** What became of a key. */
export type Reservation =
  | {
      readonly kind: "new";
      readonly storeKey: string;
      /** Revision of the reservation. */
      readonly revision: number;
      /** What the accepting transaction turns it into; absent before it was tried. */
      written(): Record_ | undefined;
      record(change: Change, accepted: AcceptedChange): void;
    }
  | { readonly kind: "accepted"; readonly accepted: AcceptedChange }
  | { readonly kind: "done"; readonly reply: Reply };

/** Hash of what must be equal for a request to count as the same. */
export function fingerprintOf(method: string, target: string, body: Buffer): string {
  return createHash("sha256").update(`${method} ${target}\n`).update(body).digest("hex");
}

/** See the module comment. */
export class Idempotency {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #session: ReplicaSession;
  readonly #documents: Documents;
  readonly #running = new Set<string>();

  constructor(store: Store, edges: Edges, session: ReplicaSession) {
    this.#store = store;
    this.#edges = edges;
    this.#session = session;
    this.#documents = new Documents(store, edges.log);
  }

  /** Reserves a key, or tells what it was used for. Fails with `CONFLICT` while the first request runs. */
  async reserve(keyed: Keyed): Promise<Reservation> {
    if (!/^[\x21-\x7e]{1,255}$/.test(keyed.key)) {
      throw invalidRequest("Idempotency-Key must be 1 to 255 visible ASCII characters");
    }
    const storeKey = keys.idempotency(hash(keyed.caller), hash(keyed.key));
    const fresh: Record_ = {
      state: "pending",
      fingerprint: keyed.fingerprint,
      at: this.#edges.clock.now(),
      owner: this.#session.replicaId,
    };
    const reserved = await this.#take(storeKey, 0, fresh);
    if (reserved) return reserved;
    const found = await this.#documents.get(storeKey, idempotencySchema);
    if (
      found?.value.state === "pending" &&
      found.value.owner === fresh.owner &&
      !this.#running.has(storeKey)
    ) {
      // Ours, and nobody works on it: the store took the reservation and lost the answer.
      const again = await this.#take(storeKey, found.modRevision, fresh);
      if (again) return again;
    }
    if (!found || found.value.state === "pending") {
      throw new KrytonError("CONFLICT", "a request with this Idempotency-Key is under way", {
        retryAfterMs: 1_000,
      });
    }
    if (found.value.fingerprint !== keyed.fingerprint) {
      throw new KrytonError("IDEMPOTENCY_MISMATCH", "this Idempotency-Key was used for another request", {
        hint: "Use a new key for a new request.",
      });
    }
    const { state, status, json, machineId = "", snapshotId } = found.value;
    if (state === "done" && status !== undefined) {
      return { kind: "done", reply: json === undefined ? { status } : { status, json } };
    }
    return { kind: "accepted", accepted: { machineId, ...(snapshotId ? { snapshotId } : {}) } };
  }

  /** Reserves the key when it is as expected (0: absent). */
  async #take(
    storeKey: string,
    modRevision: number,
    fresh: Record_,
  ): Promise<Extract<Reservation, { kind: "new" }> | undefined> {
    const lease = await this.#session.lease();
    if (this.#running.has(storeKey)) return undefined;
    this.#running.add(storeKey);
    let revision = 0;
    try {
      const take = new Change().unchanged(storeKey, modRevision).put(storeKey, fresh, lease.id);
      const done = await this.#session.commit(take, lease);
      if (done.succeeded) revision = done.revision;
    } finally {
      if (revision === 0) this.#running.delete(storeKey);
    }
    if (revision === 0) return undefined;
    let written: Record_ | undefined;
    return {
      kind: "new",
      storeKey,
      revision,
      written: () => written,
      record: (change, accepted) => {
        // A reservation that ran out while this replica was away belongs to somebody else by now.
        change.unchanged(storeKey, revision);
        written = { ...fresh, ...accepted, state: "accepted" };
        change.put(storeKey, written);
      },
    };
  }

  /**
   * Keeps the answer for repeats. A refusal is not kept: the next try may do better. When the store failed it is
   * not known whether the change was made, so a record of its acceptance stays.
   */
  async finish(
    reservation: Extract<Reservation, { kind: "new" }>,
    keyed: Keyed,
    reply: Reply,
  ): Promise<void> {
    const { storeKey, revision } = reservation;
    const written = reservation.written();
    // Only what is still this request's own is touched: the reservation, or what its acceptance made of it.
    const own = [
      ...(written && reply.status < 500 ? [new Change().holding(storeKey, written)] : []),
      new Change().unchanged(storeKey, revision),
    ];
    try {
      for (const change of own) {
        if (reply.status >= 400) change.delete(storeKey);
        else change.put(storeKey, this.#answer(keyed, reply));
        if ((await change.commit(this.#store, this.#edges)).succeeded) break;
      }
    } catch (error) {
      // The answer stands; a repeat finds what was accepted, or does the work again.
      this.#edges.log.warn("answer was not kept for repeats", { problem: messageOf(error) });
    } finally {
      this.#running.delete(storeKey);
    }
  }

  #answer(keyed: Keyed, { status, json }: Reply): Record_ {
    const kept = json !== undefined && JSON.stringify(json).length <= maxKeptBytes;
    return {
      state: "done",
      fingerprint: keyed.fingerprint,
      at: this.#edges.clock.now(),
      status,
      ...(kept ? { json } : {}),
    };
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
