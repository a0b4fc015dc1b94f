/**
 * `Idempotency-Key`: a repeated request is recognised and answered like the first, on any replica.
 *
 * The key is reserved before the work, bound to this replica's lease; the transaction that makes the
 * change turns the reservation into a record of what was accepted; the answer is added at the end. So
 * a crash at any moment leaves either no trace and no change, or a change that a repeat finds.
 */
import { createHash } from "node:crypto";
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import { z } from "zod";
import { invalidRequest, KrytonError } from "../model/errors.ts";
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
      record(change: Change, accepted: { machineId: string }): void;
    }
  | { readonly kind: "accepted"; readonly machineId: string }
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
    const lease = await this.#session.lease();
    const fresh: Record_ = { state: "pending", fingerprint: keyed.fingerprint, at: this.#edges.clock.now() };
    const reserved = await new Change()
      .absent(storeKey)
      .put(storeKey, fresh, lease.id)
      .commit(this.#store, this.#edges);
    if (reserved.succeeded) {
      return {
        kind: "new",
        storeKey,
        record: (change, { machineId }) => {
          change.put(storeKey, { ...fresh, state: "accepted", machineId } satisfies Record_);
        },
      };
    }
    const found = await this.#documents.get(storeKey, idempotencySchema);
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
    const { state, status, json, machineId } = found.value;
    if (state === "done" && status !== undefined) {
      return { kind: "done", reply: json === undefined ? { status } : { status, json } };
    }
    return { kind: "accepted", machineId: machineId ?? "" };
  }

  /** Keeps the answer for repeats. A refusal is not kept: the next try may do better. */
  async finish(
    reservation: Extract<Reservation, { kind: "new" }>,
    keyed: Keyed,
    reply: Reply,
  ): Promise<void> {
    const change = new Change();
    if (reply.status >= 400) {
      change.delete(reservation.storeKey);
    } else {
      const kept = reply.json === undefined || JSON.stringify(reply.json).length <= maxKeptBytes;
      change.put(reservation.storeKey, {
        state: "done",
        fingerprint: keyed.fingerprint,
        at: this.#edges.clock.now(),
        status: reply.status,
        ...(kept && reply.json !== undefined ? { json: reply.json } : {}),
      } satisfies Record_);
    }
    await change.commit(this.#store, this.#edges);
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
