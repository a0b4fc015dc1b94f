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

/** Cancels an operation that has not begun. */
export function cancelWaiting(operation: Operation, modRevision: number, time: string, change: Change): void {
  change
    .unchanged(keys.operation(operation.id), modRevision)
    .put(keys.operation(operation.id), {
      ...operation,
      state: "cancelled",
      message: `${operation.kind} was cancelled before it began`,
      updatedAt: time,
      finishedAt: time,
    })
    .delete(keys.queue(operation.machineId, operation.id));
}
