/**
 * Asking again for what failed: the same work as a new operation, checked like the first time.
 */
import { KrytonError } from "../model/errors.ts";
import { snapshotSchema, type Machine, type Snapshot } from "../model/machine.ts";
import type { Operation } from "../model/operation.ts";
import type { MachineRecord } from "../operations/record.ts";
import { Change } from "../store/change.ts";
import type { Documents, Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import type { QuotaGuard } from "./quota-guard.ts";

/** Throws `CONFLICT` unless the operation ended without success. */
export function checkRetriable({ id, state }: Operation): void {
  if (state === "failed" || state === "cancelled") return;
  throw new KrytonError(
    "CONFLICT",
    `operation ${id} is ${state}: only what failed or was cancelled can be retried`,
  );
}

/** What the machine should become when the work succeeds. */
export function desiredAfter({ kind }: Operation, record: MachineRecord): MachineRecord["desired"] {
  if (kind === "stop") return "stopped";
  if (kind === "start" || kind === "restart" || kind === "create" || kind === "clone") return "running";
  return kind === "delete" ? "deleted" : record.desired;
}

/** What has to be written, and to hold, for the work to be done again. */
export async function retryChange(
  operation: Operation,
  found: Stored<MachineRecord>,
  documents: Documents,
  quotas: QuotaGuard,
): Promise<Change> {
  const change = new Change();
  const { machine } = found.value;
  const { kind, parameters } = operation;
  if ((kind === "create" || kind === "clone") && machine.state !== "failed") {
    throw new KrytonError("CONFLICT", `machine ${machine.id} is ${machine.state}: it was made already`);
  }
  if (kind === "resize") await quotas.guard(machine.project, machine, sizeAfter(machine, parameters), change);
  if (parameters.snapshotId === undefined) return change;
  const key = keys.snapshot(machine.id, parameters.snapshotId);
  const snapshot = await documents.get(key, snapshotSchema);
  if (!snapshot) throw new KrytonError("NOT_FOUND", `snapshot ${parameters.snapshotId} is gone`);
  if (kind === "snapshot-delete") return change;
  const { message: _, ...rest } = snapshot.value;
  const state = kind === "snapshot" ? "creating" : "restoring";
  return change.unchanged(key, snapshot.modRevision).put(key, { ...rest, state } satisfies Snapshot);
}

function sizeAfter({ spec }: Machine, { cpu, memoryMiB, diskGiB }: Operation["parameters"]) {
  return {
    cpu: cpu ?? spec.compute.cpu,
    memoryMiB: memoryMiB ?? spec.compute.memoryMiB,
    diskGiB: diskGiB ?? spec.disk.sizeGiB,
  };
}
