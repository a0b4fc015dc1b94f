/**
 * Snapshots: records beside their machine, made, restored and removed by operations.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { formatTime } from "../model/bytes.ts";
import { invalidRequest, KrytonError } from "../model/errors.ts";
import { snapshotSchema, type Snapshot } from "../model/machine.ts";
import type { Provider } from "../provider-contract/contract.ts";
import { Change } from "../store/change.ts";
import { Documents, type Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { awaitMs, type Asking } from "./asking.ts";
import { throwIfFailed } from "./machine-refusals.ts";
import type { MachineService } from "./machines.ts";

/** Snapshots of one machine. */
export const maxSnapshots = 100;
/** Bytes of a snapshot's name. */
export const maxSnapshotName = 253;

/** What the service is made from. */
export interface SnapshotServiceOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly provider: Provider;
  readonly machines: MachineService;
}

/** See the module comment. */
export class SnapshotService {
  readonly #options: SnapshotServiceOptions;
  readonly #documents: Documents;

  constructor(options: SnapshotServiceOptions) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
  }

  /** Snapshots of a machine, newest first. */
  async list(project: string, machineId: string): Promise<Snapshot[]> {
    this.#supported();
    await this.#options.machines.find(project, machineId);
    const stored = await this.#documents.list(keys.snapshot(machineId), snapshotSchema);
    return stored.sort((a, b) => b.createRevision - a.createRevision).map(({ value }) => value);
  }

  /** A snapshot of a machine; `NOT_FOUND` when there is none. */
  async get(project: string, machineId: string, id: string): Promise<Snapshot> {
    return (await this.#existing(project, machineId, id)).value;
  }

  /** Takes a snapshot. */
  async create(
    project: string,
    machineId: string,
    name: string | undefined,
    asking: Asking,
  ): Promise<Snapshot> {
    this.#supported();
    const { edges, machines } = this.#options;
    const nowMs = edges.clock.now();
    const snapshot: Snapshot = {
      id: edges.random.uuid(),
      project,
      machineId,
      name: name || defaultName(nowMs),
      state: "creating",
      createdAt: formatTime(nowMs),
    };
    const accepted = await machines.operate(
      project,
      machineId,
      {
        kind: "snapshot",
        parameters: { snapshotId: snapshot.id, snapshotName: snapshot.name },
        requestedBy: asking.requestedBy,
      },
      async () => {
        const { count } = await this.#options.store.range({
          key: keys.snapshot(machineId),
          end: `${keys.snapshot(machineId).slice(0, -1)}0`,
          countOnly: true,
        });
        if (count >= maxSnapshots) throw invalidRequest(`a machine has at most ${maxSnapshots} snapshots`);
        const change = new Change().put(keys.snapshot(machineId, snapshot.id), snapshot);
        asking.record?.(change, { machineId, snapshotId: snapshot.id });
        return change;
      },
    );
    throwIfFailed(await accepted.ended(awaitMs));
    return (await this.#find(machineId, snapshot.id))?.value ?? snapshot;
  }

  /** Puts the machine back to a snapshot, and with `start` starts it then. */
  async restore(
    project: string,
    machineId: string,
    id: string,
    start: boolean,
    asking: Asking,
  ): Promise<Snapshot> {
    const found = await this.#existing(project, machineId, id);
    if (found.value.state !== "ready" && found.value.state !== "restored") {
      throw new KrytonError("CONFLICT", `snapshot ${id} is ${found.value.state}, not ready`, {
        hint: "Wait until it is ready, or take another one.",
      });
    }
    const { message: _, ...rest } = found.value;
    const restoring: Snapshot = { ...rest, state: "restoring" };
    const accepted = await this.#options.machines.operate(
      project,
      machineId,
      {
        kind: "snapshot-restore",
        parameters: { snapshotId: id, snapshotName: found.value.name, ...(start ? { start } : {}) },
        requestedBy: asking.requestedBy,
      },
      () => {
        const change = new Change().unchanged(found.key, found.modRevision).put(found.key, restoring);
        asking.record?.(change, { machineId, snapshotId: id });
        return change;
      },
    );
    throwIfFailed(await accepted.ended(awaitMs));
    return (await this.#find(machineId, id))?.value ?? restoring;
  }

  async delete(project: string, machineId: string, id: string, asking: Asking): Promise<void> {
    await this.#existing(project, machineId, id);
    const accepted = await this.#options.machines.operate(
      project,
      machineId,
      { kind: "snapshot-delete", parameters: { snapshotId: id }, requestedBy: asking.requestedBy },
      () => {
        const change = new Change();
        asking.record?.(change, { machineId, snapshotId: id });
        return change;
      },
    );
    throwIfFailed(await accepted.ended(awaitMs));
  }

  async #existing(project: string, machineId: string, id: string): Promise<Stored<Snapshot>> {
    this.#supported();
    await this.#options.machines.find(project, machineId);
    const found = await this.#find(machineId, id);
    if (!found) throw new KrytonError("NOT_FOUND", `machine ${machineId} has no snapshot ${id}`);
    return found;
  }

  #find(machineId: string, id: string): Promise<Stored<Snapshot> | undefined> {
    return this.#documents.get(keys.snapshot(machineId, id), snapshotSchema);
  }

  #supported(): void {
    if (this.#options.provider.snapshots) return;
    throw new KrytonError("UNSUPPORTED", `provider ${this.#options.provider.name} has no snapshots`, {
      hint: "GET /api/v1/capabilities lists what it can do.",
    });
  }
}

function defaultName(nowMs: number): string {
  const digits = new Date(nowMs).toISOString().replace(/[-:]/g, "");
  return `snap-${digits.slice(0, 8)}-${digits.slice(9, 15)}`;
}
