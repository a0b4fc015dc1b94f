/**
 * Jobs: long work as a person follows it, computed from machines, golden builds and storage set-ups.
 *
 * Nothing is stored. Steps come from phases, not from message texts. A caller sees the jobs of the
 * projects it may see; golden builds and storage belong to none and are for everybody who signed in.
 */
import { z } from "zod";
import { formatTime, timeSchema } from "../model/bytes.ts";
import type { GoldenBuild } from "../golden/build.ts";
import type { Machine, ProviderName } from "../model/machine.ts";
import type { Operation } from "../model/operation.ts";
import { setupSteps, type SetupRecord } from "../storage-setup/record.ts";

/** How long a running dockur machine counts as a job after its creation, milliseconds. */
const dockurWindowMs = 6 * 3_600_000;
/** How long an ended golden build stays in the list, milliseconds. */
const goldenWindowMs = 4 * 3_600_000;
/** How long an ended storage set-up stays in the list, milliseconds. */
const storageWindowMs = 2 * 3_600_000;
const storageLogLines = 120;

const stepSchema = z.object({
  id: z.string(),
  label: z.string(),
  state: z.enum(["pending", "active", "done", "failed"]),
  detail: z.string().optional(),
});
/** One step of a job. */
export type Step = z.infer<typeof stepSchema>;

/** A job in answers. */
export const jobSchema = z
  .object({
    id: z.string(),
    kind: z.enum(["machine", "golden", "storage"]),
    name: z.string(),
    state: z.enum(["running", "succeeded", "failed"]),
    progressPercent: z.int(),
    message: z.string().optional(),
    consoleUrl: z.string().optional(),
    project: z.string().optional(),
    steps: z.array(stepSchema),
    logs: z.array(
      z.object({ time: timeSchema, level: z.enum(["info", "ok", "warn", "err"]), message: z.string() }),
    ),
    startedAt: timeSchema,
    updatedAt: timeSchema,
  })
  .meta({ id: "Job" });
/** See {@link jobSchema}. */
export type Job = z.infer<typeof jobSchema>;

const machineSteps: Readonly<Record<ProviderName, readonly string[]>> = {
  demo: [],
  dockur: [
    "Allocate resources",
    "Start dockur/windows",
    "Download Windows media",
    "Unattended Windows setup",
    "Console ready",
    "Install complete",
  ],
  libvirt: ["Allocate resources", "Copy disk", "Write cloud-init", "Start domain", "Guest running"],
  kubevirt: ["Create virtual machine", "Clone volume", "Schedule", "Start guest", "Guest running"],
};

const goldenSteps = [
  "Start dockur builder",
  "Download Windows ISO",
  "Install Windows",
  "Sysprep generalize",
  "Capture golden qcow2",
  "Validate with guestkit",
];

const goldenPhases: Readonly<Record<string, number>> = {
  prepare: 1,
  pull: 1,
  download: 2,
  windows_setup: 3,
  generalize: 4,
  sysprep: 4,
  convert: 5,
  validate: 6,
  complete: 6,
};
const goldenStates: Readonly<Record<string, number>> = { capturing: 5, sysprep: 4, installing: 3 };

/** Phase of an operation to the step it belongs to. */
const machinePhases: Readonly<Record<string, number>> = {
  prepare: 0,
  pull: 1,
  copy: 1,
  clone: 1,
  download: 2,
  seed: 2,
  schedule: 2,
  start: 3,
  install: 3,
  console: 4,
  complete: 5,
};

/** Steps with the one at `active` under way; `failed` marks it instead. */
export function stepsAt(
  labels: readonly string[],
  active: number,
  detail: string | undefined,
  failed: boolean,
): Step[] {
  return labels.map((label, index) => {
    const id = label.toLowerCase().replaceAll(" ", "-");
    if (index < active) return { id, label, state: "done" };
    if (index > active) return { id, label, state: "pending" };
    return { id, label, state: failed ? "failed" : "active", ...(detail ? { detail } : {}) };
  });
}

/** The job of a machine, or `undefined` when there is nothing to follow. */
export function machineJob(
  machine: Machine,
  operation: Operation | undefined,
  nowMs: number,
): Job | undefined {
  if (machine.provider === "demo" || !followed(machine, nowMs)) return undefined;
  const labels = machineSteps[machine.provider];
  const progress =
    operation?.progressPercent ?? machine.progressPercent ?? (machine.state === "running" ? 100 : 0);
  const done = (machine.state === "running" || machine.state === "stopped") && progress >= 100;
  const state = machine.state === "failed" ? "failed" : done ? "succeeded" : "running";
  const message = operation?.message ?? machine.message;
  const active = done ? labels.length : activeStep(machine, operation, labels.length);
  return {
    id: `machine:${machine.id}`,
    kind: "machine",
    name: machine.spec.name,
    state,
    progressPercent: Math.min(100, progress),
    ...(message ? { message } : {}),
    ...(machine.consoleUrl ? { consoleUrl: machine.consoleUrl } : {}),
    project: machine.project,
    steps: stepsAt(labels, active, message, state === "failed"),
    logs: [
      { time: machine.createdAt, level: "info", message: `Machine ${machine.spec.name} was created.` },
      ...(message
        ? [
            {
              time: machine.updatedAt,
              level: state === "failed" ? ("err" as const) : ("info" as const),
              message,
            },
          ]
        : []),
    ],
    startedAt: machine.createdAt,
    updatedAt: machine.updatedAt,
  };
}

/** The job of a golden build with the last lines of its log, or `undefined` when it is idle or over for long. */
export function goldenJob(build: GoldenBuild, log: readonly string[], nowMs: number): Job | undefined {
  const over = build.state === "ready" || build.state === "failed" || build.state === "idle";
  if (over && Date.parse(build.updatedAt) < nowMs - goldenWindowMs) return undefined;
  const state = build.state === "ready" ? "succeeded" : build.state === "failed" ? "failed" : "running";
  const at = goldenPhases[build.phase ?? ""] ?? goldenStates[build.state] ?? 1;
  const message = build.error ?? build.message;
  return {
    id: `golden:${build.id}`,
    kind: "golden",
    name: `Golden ${build.imageId}`,
    state,
    progressPercent: build.progressPercent,
    ...(message ? { message } : {}),
    ...(build.consoleUrl ? { consoleUrl: build.consoleUrl } : {}),
    steps: stepsAt(
      goldenSteps,
      state === "succeeded" ? goldenSteps.length : at - 1,
      message,
      state === "failed",
    ),
    logs:
      log.length > 0
        ? log.map((line) => logEntry(line, build.updatedAt))
        : message
          ? [{ time: build.updatedAt, level: state === "failed" ? "err" : "info", message }]
          : [],
    startedAt: build.startedAt,
    updatedAt: build.updatedAt,
  };
}

const logLevels = { OK: "ok", ERR: "err", WARN: "warn" } as const;

/** A line of a builder's log; its tag may stand behind a time, and a line without one has `otherwise`. */
function logEntry(line: string, otherwise: string): Job["logs"][number] {
  const stamp = /^\[?(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z)\]?\s+/.exec(line);
  const ms = Date.parse(stamp?.[1] ?? "");
  const message = stamp ? line.slice(stamp[0].length) : line;
  const tag = /^\s*(?:\S+\s+){0,2}\[(OK|ERR|WARN)\]/.exec(message)?.[1];
  return {
    time: Number.isNaN(ms) ? otherwise : formatTime(ms),
    level: tag === "OK" || tag === "ERR" || tag === "WARN" ? logLevels[tag] : "info",
    message,
  };
}

/** The job of a storage set-up, or `undefined` when it ended long ago. Its disk, texts and log are for administrators. */
export function storageJob(record: SetupRecord, admin: boolean, nowMs: number): Job | undefined {
  const { state, backend, device, step } = record;
  if (state !== "running" && Date.parse(record.updatedAt) < nowMs - storageWindowMs) return undefined;
  const message = admin ? (record.error ?? record.message) : undefined;
  return {
    id: "storage:setup",
    kind: "storage",
    name: `Storage: ${backend}${admin && device ? ` (${device})` : ""}`,
    state,
    progressPercent: state === "succeeded" ? 100 : state === "failed" ? 0 : 50,
    ...(message ? { message } : {}),
    steps: stepsAt(setupSteps, step, message, state === "failed"),
    logs: admin ? record.logs.slice(-storageLogLines) : [],
    startedAt: record.startedAt,
    updatedAt: record.updatedAt,
  };
}

function followed(machine: Machine, nowMs: number): boolean {
  if (["provisioning", "starting", "pending", "failed"].includes(machine.state)) return true;
  if (machine.provider !== "dockur" || machine.state !== "running") return false;
  return (machine.progressPercent ?? 100) < 100 || Date.parse(machine.createdAt) > nowMs - dockurWindowMs;
}

function activeStep(machine: Machine, operation: Operation | undefined, count: number): number {
  const byPhase = machinePhases[operation?.phase ?? ""];
  if (byPhase !== undefined) return Math.min(byPhase, count - 1);
  if (machine.state === "failed") return 0;
  return machine.state === "running" ? Math.min(4, count - 1) : 1;
}
