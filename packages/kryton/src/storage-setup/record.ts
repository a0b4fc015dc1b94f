/**
 * A storage set-up as it is stored: what was asked for, the step it is in, and its log.
 */
import { z } from "zod";
import { timeSchema, zeroTime } from "../model/bytes.ts";

/** Storage systems that can be set up. */
export const setupBackends = ["longhorn", "rook-ceph"] as const;
/** How Rook gets its disks: one node, every empty disk; every empty disk of three nodes; none, the cluster is there; one disk. */
export const rookModes = ["lab", "devices", "pool-only", "device"] as const;

/** Steps in order; their index is what a record points at. */
export const setupSteps = [
  "Enable KubeVirt snapshots",
  "Install CSI backend",
  "Apply StorageClass",
  "Verify cluster inventory",
] as const;

/** Lines of the log that are kept. */
export const maxLogLines = 200;
/** Bytes of one line. */
export const maxLogBytes = 500;

const request = {
  backend: z.enum(setupBackends),
  rookMode: z.enum(rookModes).optional(),
  device: z.string().optional(),
  wipeDevice: z.boolean().optional(),
  setDefault: z.boolean(),
};

/** What is wanted. */
export type SetupRequest = z.infer<z.ZodObject<typeof request>>;

const logLine = z.object({
  time: timeSchema,
  level: z.enum(["info", "ok", "warn", "err"]),
  message: z.string(),
});
/** One line of the log. */
export type SetupLogLine = z.infer<typeof logLine>;

/** The stored form. */
export const setupRecordSchema = z.object({
  ...request,
  state: z.enum(["running", "succeeded", "failed"]),
  step: z.int().min(0).max(setupSteps.length),
  /** When the present step began, on whichever replica: limits count from here. */
  stepStartedAt: timeSchema,
  storageClass: z.string().optional(),
  message: z.string().optional(),
  error: z.string().optional(),
  cancelRequestedBy: z.string().optional(),
  requestedBy: z.string(),
  startedAt: timeSchema,
  updatedAt: timeSchema,
  logs: z.array(logLine),
});
/** See {@link setupRecordSchema}. */
export type SetupRecord = z.infer<typeof setupRecordSchema>;

/** A set-up in answers. */
export const setupStateSchema = z
  .object({
    id: z.string(),
    backend: z.string(),
    rookMode: z.string().optional(),
    device: z.string().optional(),
    state: z.enum(["idle", "running", "succeeded", "failed"]),
    message: z.string().optional(),
    error: z.string().optional(),
    storageClass: z.string().optional(),
    startedAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({ id: "StorageSetupState" });
/** See {@link setupStateSchema}. */
export type SetupState = z.infer<typeof setupStateSchema>;

/** The answer for a record, or for none. Disks, and texts that may name folders of the host, are for administrators. */
export function setupState(record: SetupRecord | undefined, admin: boolean): SetupState {
  if (!record) {
    return { id: "current", backend: "", state: "idle", startedAt: zeroTime, updatedAt: zeroTime };
  }
  const { backend, rookMode, device, state, message, error, storageClass, startedAt, updatedAt } = record;
  return {
    id: "current",
    backend,
    ...(rookMode === undefined ? {} : { rookMode }),
    ...(device === undefined || !admin ? {} : { device }),
    state,
    ...(message === undefined || !admin ? {} : { message }),
    ...(error === undefined || !admin ? {} : { error }),
    ...(storageClass === undefined ? {} : { storageClass }),
    startedAt,
    updatedAt,
  };
}

/** The log as lines of text, oldest first. */
export function logTexts(record: SetupRecord | undefined): string[] {
  const tags = { info: "", ok: "[OK] ", warn: "[WARN] ", err: "[ERR] " };
  return (record?.logs ?? []).map(({ time, level, message }) => `${time} ${tags[level]}${message}`);
}
