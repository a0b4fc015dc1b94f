/**
 * A piece of provider work: a durable record that outlives the request and the process.
 *
 * One operation at a time runs on a machine, in the order they were accepted. It ends in one of
 * the final states; a failed one says whether trying again can help and who has to act.
 */
import { z } from "zod";
import { timeSchema } from "./bytes.ts";

/** What an operation does. */
export const operationKinds = [
  "create",
  "clone",
  "start",
  "stop",
  "restart",
  "pause",
  "resume",
  "resize",
  "delete",
  "snapshot",
  "snapshot-restore",
  "snapshot-delete",
] as const;
/** One of {@link operationKinds}. */
export type OperationKind = (typeof operationKinds)[number];

/** Where an operation stands. `queued` includes waiting for the next attempt. */
export const operationStates = ["queued", "running", "succeeded", "failed", "cancelled"] as const;
/** One of {@link operationStates}. */
export type OperationState = (typeof operationStates)[number];

/** Whether and how a failed attempt is worth repeating. */
export const retryClasses = ["retry", "retry-elsewhere", "needs-person", "fatal"] as const;
/** One of {@link retryClasses}. */
export type RetryClass = (typeof retryClasses)[number];

/** A durable operation. */
export const operationSchema = z
  .object({
    id: z.uuid(),
    kind: z.enum(operationKinds),
    machineId: z.uuid(),
    machineName: z.string(),
    project: z.string(),
    state: z.enum(operationStates),
    requestedBy: z.string(),
    attempt: z.int().meta({ description: "Attempts begun so far." }),
    progressPercent: z.int().min(0).max(100),
    phase: z.string().optional(),
    message: z.string().optional(),
    error: z
      .object({
        code: z.string(),
        message: z.string(),
        retryClass: z.enum(retryClasses),
      })
      .optional(),
    cancelRequested: z.boolean().optional(),
    notBefore: timeSchema.optional().meta({ description: "Earliest next attempt." }),
    createdAt: timeSchema,
    startedAt: timeSchema.optional(),
    updatedAt: timeSchema,
    finishedAt: timeSchema.optional(),
    parameters: z
      .object({
        force: z.boolean().optional(),
        forceAfterSeconds: z.int().optional(),
        start: z.boolean().optional(),
        snapshotId: z.string().optional(),
        snapshotName: z.string().optional(),
        sourceMachineId: z.string().optional(),
        reason: z.enum(["request", "expired"]).optional(),
        cpu: z.int().optional(),
        memoryMiB: z.int().optional(),
        diskGiB: z.int().optional(),
      })
      .meta({ description: "What the operation was asked to do, beside its kind." }),
    avoidReplica: z.string().optional().meta({ description: "Replica that asked for another to try." }),
  })
  .meta({ id: "Operation" });
/** See {@link operationSchema}. */
export type Operation = z.infer<typeof operationSchema>;

/** True when nothing more will happen to it. */
export function isFinal(operation: Operation): boolean {
  return operation.state === "succeeded" || operation.state === "failed" || operation.state === "cancelled";
}
