/**
 * The state a machine shows while an operation runs on it.
 */
import type { MachineState } from "../model/machine.ts";
import type { Operation, OperationKind } from "../model/operation.ts";
import { withState, type MachineRecord } from "./record.ts";

const shown: Partial<Record<OperationKind, MachineState>> = {
  create: "provisioning",
  clone: "provisioning",
  start: "starting",
  stop: "stopping",
  restart: "starting",
  delete: "deleting",
};

/** The record while `operation` runs: the state in between, unless the machine is already where it should be. */
export function transitional(operation: Operation, record: MachineRecord, nowMs: number): MachineRecord {
  const state = shown[operation.kind];
  const named = { ...record, operation: { id: operation.id, kind: operation.kind } };
  const settled =
    (operation.kind === "start" && record.machine.state === "running") ||
    (operation.kind === "stop" && record.machine.state === "stopped");
  if (state === undefined || settled || record.machine.state === state) return named;
  return { ...named, machine: withState(record.machine, state, nowMs, record.machine.message) };
}
