/**
 * Accepting an operation: one transaction that records it, queues it behind what already waits, and,
 * when nothing does, takes the claim for this replica so that it begins without another round trip.
 */
import { uuidv7, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { formatTime } from "../model/bytes.ts";
import { KrytonError } from "../model/errors.ts";
import { isFinal, operationSchema, type Operation, type OperationKind } from "../model/operation.ts";
import { Change } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import type { ReplicaSession } from "../store/session.ts";
import type { MachineRecord } from "./record.ts";
import type { OperationRunner } from "./runner.ts";
import { transitional } from "./transitions.ts";
import type { End } from "./waiters.ts";

/** Greatest number of operations that wait for one machine. */
export const maxQueued = 16;

/** An operation that is asked for. */
export interface Wanted {
  readonly kind: OperationKind;
  readonly parameters: Operation["parameters"];
  readonly requestedBy: string;
}

/** A machine record and its revision; 0 when it is about to be created. */
export interface Base {
  readonly record: MachineRecord;
  readonly modRevision: number;
}

/** An operation that was accepted. */
export interface Accepted {
  readonly operation: Operation;
  /** How it ended, or `undefined` when it goes on after `timeoutMs`. Call at most once. */
  ended(timeoutMs: number): Promise<End | undefined>;
}

/** What acceptance needs. */
export interface AcceptanceOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly session: ReplicaSession;
  readonly runner: OperationRunner;
}

/** See the module comment. */
export class Acceptance {
  readonly #options: AcceptanceOptions;

  constructor(options: AcceptanceOptions) {
    this.#options = options;
  }

  /**
   * Records `wanted` on `base` together with `more`. `undefined` when the machine changed meanwhile: read it
   * again and repeat. Fails with `CONFLICT` when too much waits already.
   */
  async accept(base: Base, wanted: Wanted, more: Change): Promise<Accepted | undefined> {
    const { store, edges, session, runner } = this.#options;
    const { machine } = base.record;
    if (wanted.kind !== "delete" && runner.board.length(machine.id) >= maxQueued) {
      throw new KrytonError("CONFLICT", `${maxQueued} operations wait for machine ${machine.id} already`, {
        hint: "Wait for them or cancel some.",
        retryAfterMs: 5_000,
      });
    }
    const id = uuidv7(edges.clock, edges.random);
    const slot = runner.reserve(machine.id, id);
    const waiter = runner.waiter(id);
    const refuse = (): void => {
      waiter.release();
      slot?.release();
    };
    try {
      const lease = slot && (await session.lease());
      const now = edges.clock.now();
      const time = formatTime(now);
      const operation: Operation = {
        id,
        kind: wanted.kind,
        machineId: machine.id,
        machineName: machine.spec.name,
        project: machine.project,
        state: lease ? "running" : "queued",
        requestedBy: wanted.requestedBy,
        attempt: lease ? 1 : 0,
        progressPercent: 0,
        createdAt: time,
        ...(lease ? { startedAt: time } : {}),
        updatedAt: time,
        parameters: wanted.parameters,
      };
      const record: MachineRecord =
        lease || base.modRevision === 0
          ? transitional(operation, base.record, now)
          : { ...base.record, operation: { id, kind: operation.kind } };
      const machineKey = keys.machine(machine.project, machine.id);
      const change = new Change()
        .include(more)
        .unchanged(machineKey, base.modRevision)
        .put(machineKey, record)
        .put(keys.operation(id), operation)
        .put(keys.operationOf(machine.id, id), null)
        .put(keys.queue(machine.id, id), { notBefore: 0 });
      const claimKey = keys.claim(machine.id);
      if (lease) {
        change.absent(claimKey).put(claimKey, { operation: id, replica: session.replicaId }, lease.id);
      }
      const done = lease ? await session.commit(change, lease) : await change.commit(store, edges);
      if (!done.succeeded) {
        refuse();
        return undefined;
      }
      if (slot && lease) {
        slot.begin({
          operation,
          record: { key: machineKey, value: record, createRevision: 0, modRevision: done.revision },
          fence: { key: claimKey, revision: done.revision },
          lease,
        });
      }
      return { operation, ended: async (timeoutMs) => this.#told(id, await waiter.ended(timeoutMs)) };
    } catch (error) {
      refuse();
      throw error;
    }
  }

  /** The end with its operation. Whoever hears first that it left the queue does not know how it ended. */
  async #told(id: string, end: End | undefined): Promise<End | undefined> {
    if (!end || end.operation) return end;
    const { store, edges } = this.#options;
    const found = await new Documents(store, edges.log).get(keys.operation(id), operationSchema);
    return found && isFinal(found.value) ? { ...end, operation: found.value } : end;
  }
}
