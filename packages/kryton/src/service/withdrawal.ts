/**
 * Withdrawing what waits for a machine that is going to be deleted.
 */
import { z } from "zod";
import { operationSchema, type Operation } from "../model/operation.ts";
import { Change } from "../store/change.ts";
import type { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";

/** A change that cancels every waiting operation of the machine and asks the running one to stop. */
export async function withdraw(documents: Documents, machineId: string, time: string): Promise<Change> {
  const change = new Change();
  for (const entry of await documents.list(keys.queue(machineId), z.unknown())) {
    const id = entry.key.slice(keys.queue(machineId).length);
    const found = await documents.get(keys.operation(id), operationSchema);
    if (!found) continue;
    if (found.value.state === "running") change.put(keys.cancel(id), {});
    else cancelWaiting(found.value, found.modRevision, time, change);
  }
  return change;
}

/** Cancels an operation that does not run: writes its end, takes it out of the queue, tells of it. Returns it as it ends. */
export function cancelWaiting(
  operation: Operation,
  modRevision: number,
  time: string,
  change: Change,
): Operation {
  const { notBefore: _, ...rest } = operation;
  const cancelled: Operation = {
    ...rest,
    state: "cancelled",
    message: `${operation.kind} was cancelled before it ${operation.attempt === 0 ? "began" : "was tried again"}`,
    updatedAt: time,
    finishedAt: time,
  };
  change
    .unchanged(keys.operation(operation.id), modRevision)
    .put(keys.operation(operation.id), cancelled)
    .delete(keys.queue(operation.machineId, operation.id))
    .delete(keys.cancel(operation.id))
    .event({
      type: "io.kryton.operation.cancelled",
      subject: `machines/${operation.machineId}`,
      data: {
        project: operation.project,
        machineId: operation.machineId,
        name: operation.machineName,
        operationId: operation.id,
        kind: operation.kind,
      },
    });
  return cancelled;
}
