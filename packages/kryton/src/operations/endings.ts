/**
 * How an operation ends when it does not succeed: cancelled, failed, or put off.
 *
 * Every failure ends in a state a person can act on: a machine that shows what happened and can be
 * deleted, an operation that says who has to do something.
 */
import { messageOf, type Random } from "@kontinuum/std";
import { formatTime } from "../model/bytes.ts";
import { snapshotSchema, type Machine } from "../model/machine.ts";
import type { Operation } from "../model/operation.ts";
import type { Observation, ProviderCall } from "../provider-contract/contract.ts";
import type { Change } from "../store/change.ts";
import type { Stored } from "../store/documents.ts";
import { keys, timeKey } from "../store/keyspace.ts";
import type { QueueEntry } from "./board.ts";
import { machineEvent, stateEvent, type Effect, type Tools } from "./effects.ts";
import { classify, retryClassOf } from "./failure.ts";
import { refOf, withObservation, withState, type MachineRecord } from "./record.ts";
import type { Held } from "./runner.ts";

/** Attempts before an operation counts as failed. */
export const maxOperationAttempts = 6;
const firstDelayMs = 1_000;
const longestDelayMs = 60_000;
/** How long a machine that could not be removed when its time was over is left alone, milliseconds. */
const expireAgainMs = 10 * 60_000;
/** How long a failed operation waits to learn the machine's real state, milliseconds. */
export const observeLimitMs = 10_000;

/** Whether another attempt follows. */
export function shouldRetry(operation: Operation, error: unknown): boolean {
  const retry = retryClassOf(error);
  return (retry === "retry" || retry === "retry-elsewhere") && operation.attempt < maxOperationAttempts;
}

/** Exponential back-off with full jitter in its upper half. */
export function retryDelayMs(attempt: number, random: Random): number {
  const ceiling = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.max(0, attempt - 1));
  return Math.round(ceiling / 2 + random.float() * (ceiling / 2));
}

/** An operation that failed for good or was cancelled, and what the machine looks like after it. */
export async function failure(
  held: Held,
  error: unknown,
  cancelled: boolean,
  tools: Tools,
  call: ProviderCall,
  time: string,
): Promise<{ effect: Effect; operation: Operation }> {
  const { operation } = held;
  const known = classify(error);
  const message = cancelled ? `${operation.kind} was cancelled` : known.message;
  const seen = await observeAfter(held, tools, call);
  const snapshot = await snapshotOf(operation, tools);
  return {
    operation: {
      ...operation,
      state: cancelled ? "cancelled" : "failed",
      message,
      error: { code: known.kryton, message, retryClass: finalClass(error) },
      updatedAt: time,
      finishedAt: time,
    },
    effect: (record, change, nowMs) => {
      change.event(
        machineEvent(
          cancelled ? "io.kryton.operation.cancelled" : "io.kryton.operation.failed",
          record.machine,
          {
            operationId: operation.id,
            kind: operation.kind,
            code: known.kryton,
            message,
          },
        ),
      );
      if (snapshot) {
        if (operation.kind !== "snapshot-delete") {
          change.put(keys.snapshot(snapshot.machineId, snapshot.id), {
            ...snapshot,
            state: "failed",
            message,
          });
        }
        change.event({
          type: "io.kryton.snapshot.failed",
          subject: `snapshots/${snapshot.id}`,
          data: {
            project: snapshot.project,
            machineId: snapshot.machineId,
            snapshotId: snapshot.id,
            name: snapshot.name,
            message,
          },
        });
        return record;
      }
      if (record.desired === "deleted" && operation.kind !== "delete") return record;
      const machine = afterFailure(record.machine, operation, seen, message, nowMs);
      // No action tells of the state it left behind: that has to be told by itself.
      if (machine.state !== record.machine.state) change.event(stateEvent(machine));
      if (operation.kind !== "delete") return { ...record, machine };
      const kept: MachineRecord = { ...record, desired: "stopped", machine };
      return operation.parameters.reason === "expired" ? expiringAgain(kept, change, nowMs) : kept;
    },
  };
}

/** An operation whose machine is gone or cannot be read: it ends, and says so. */
export function withoutMachine(
  { key, value, modRevision }: Stored<Operation>,
  time: string,
  change: Change,
): void {
  const message = `machine ${value.machineId} is gone, or its record cannot be read`;
  change.unchanged(key, modRevision).put(key, {
    ...value,
    state: "failed",
    message,
    error: { code: "NOT_FOUND", message, retryClass: "needs-person" },
    updatedAt: time,
    finishedAt: time,
  } satisfies Operation);
}

/** The record with its expiry put off: a removal that fails must not be tried at every sweep. */
function expiringAgain(record: MachineRecord, change: Change, nowMs: number): MachineRecord {
  const { project, id } = record.machine;
  const expiryKey = keys.expiry(timeKey(nowMs + expireAgainMs), project, id);
  if (record.expiryKey) change.delete(record.expiryKey);
  change.put(expiryKey, null);
  return { ...record, expiryKey };
}

/** An operation that is tried again later. */
export function postponed(
  operation: Operation,
  error: unknown,
  nowMs: number,
  delayMs: number,
  replicaId: string,
): { queued: Operation; entry: QueueEntry } {
  const known = classify(error);
  const retryClass = retryClassOf(error);
  const elsewhere = retryClass === "retry-elsewhere";
  const notBefore = nowMs + (elsewhere ? 0 : delayMs);
  return {
    queued: {
      ...operation,
      state: "queued",
      message: known.message,
      error: { code: known.kryton, message: known.message, retryClass },
      notBefore: formatTime(notBefore),
      updatedAt: formatTime(nowMs),
      ...(elsewhere ? { avoidReplica: replicaId } : {}),
    },
    entry: { notBefore, ...(elsewhere ? { avoid: replicaId } : {}) },
  };
}

function finalClass(error: unknown): "needs-person" | "fatal" {
  return retryClassOf(error) === "fatal" ? "fatal" : "needs-person";
}

function afterFailure(
  machine: Machine,
  operation: Operation,
  seen: Observation | undefined,
  message: string,
  nowMs: number,
): Machine {
  const failed = withState(machine, "failed", nowMs, message);
  if (operation.kind === "create" || operation.kind === "clone" || operation.kind === "delete") return failed;
  if (!seen) return failed;
  const settled = seen.state === "running" || seen.state === "stopped" || seen.state === "paused";
  return settled ? withObservation(machine, { ...seen, message }, nowMs) : failed;
}

async function observeAfter(held: Held, tools: Tools, call: ProviderCall): Promise<Observation | undefined> {
  try {
    return await tools.provider.observe(refOf(held.record.value.machine), call);
  } catch (error) {
    // The first failure is what matters; not knowing the state is shown as failed.
    call.progress({ message: messageOf(error) });
    return undefined;
  }
}

async function snapshotOf(operation: Operation, tools: Tools) {
  const id = operation.parameters.snapshotId;
  if (id === undefined) return undefined;
  return (await tools.documents.get(keys.snapshot(operation.machineId, id), snapshotSchema))?.value;
}
