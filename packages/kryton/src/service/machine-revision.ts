/**
 * Changes of a machine's record that need no provider: name, labels, expiry.
 */
import { formatTime } from "../model/bytes.ts";
import type { Machine, UpdateMachine } from "../model/machine.ts";
import { machineEvent } from "../operations/effects.ts";
import type { MachineRecord } from "../operations/record.ts";
import { Change } from "../store/change.ts";
import type { Stored } from "../store/documents.ts";
import { keys, timeKey } from "../store/keyspace.ts";
import { goneSoon } from "./machine-refusals.ts";
import { withoutEmpty } from "./machine-shape.ts";

/** The record after `body`, and what else has to be written with it. */
export function revised(
  found: Stored<MachineRecord>,
  body: UpdateMachine,
  now: number,
): { record: MachineRecord; change: Change } {
  const { machine, desired, expiryKey: oldKey } = found.value;
  if (desired === "deleted") throw goneSoon(machine);
  const change = new Change();
  let { spec, expiresAt } = machine;
  let expiryKey = oldKey;
  if (body.labels) spec = withoutEmpty({ ...spec, labels: body.labels });
  if (body.name !== undefined && body.name !== spec.name) {
    const nameKey = keys.name(machine.project, body.name);
    change.absent(nameKey).put(nameKey, machine.id).delete(keys.name(machine.project, spec.name));
    spec = { ...spec, name: body.name };
  }
  if (body.ttlMinutes !== undefined) {
    const at = body.ttlMinutes === 0 ? undefined : now + body.ttlMinutes * 60_000;
    const nextKey = at === undefined ? undefined : keys.expiry(timeKey(at), machine.project, machine.id);
    if (oldKey && oldKey !== nextKey) change.delete(oldKey);
    if (nextKey) change.put(nextKey, null);
    expiryKey = nextKey;
    expiresAt = at === undefined ? undefined : formatTime(at);
    spec = withoutEmpty({ ...spec, ttlMinutes: body.ttlMinutes });
  }
  const { expiresAt: _, ...rest } = machine;
  const next: Machine = { ...rest, spec, updatedAt: formatTime(now), ...(expiresAt ? { expiresAt } : {}) };
  // A resize is told when it is done, not when it is asked for.
  if (body.labels || body.name !== undefined || body.ttlMinutes !== undefined) {
    change.event(machineEvent("io.kryton.machine.updated", next, { state: next.state }));
  }
  const { expiryKey: __, ...record } = found.value;
  return { record: { ...record, machine: next, ...(expiryKey ? { expiryKey } : {}) }, change };
}

/** Sizes after a change of sizes. */
export function resizeTarget(
  machine: Machine,
  body: UpdateMachine,
): { cpu: number; memoryMiB: number; diskGiB: number } {
  return {
    cpu: body.compute?.cpu ?? machine.spec.compute.cpu,
    memoryMiB: body.compute?.memoryMiB ?? machine.spec.compute.memoryMiB,
    diskGiB: body.disk?.sizeGiB ?? machine.spec.disk.sizeGiB,
  };
}
