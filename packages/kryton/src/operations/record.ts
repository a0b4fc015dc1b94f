/**
 * A machine as it is stored: what callers see, plus what is wanted of it.
 */
import { z } from "zod";
import { formatTime } from "../model/bytes.ts";
import { machineSchema, type Machine } from "../model/machine.ts";
import type { MachineRef, Observation } from "../provider-contract/contract.ts";

/** The stored form of a machine. */
export const machineRecordSchema = z.object({
  machine: machineSchema,
  /** What the last accepted request asked for. */
  desired: z.enum(["running", "stopped", "deleted"]),
  /** The operation whose claim or queue entry is the newest; shown while it is not final. */
  operation: z.object({ id: z.string(), kind: z.string() }).optional(),
  /** Key of the expiry index, when the machine expires. */
  expiryKey: z.string().optional(),
});
/** See {@link machineRecordSchema}. */
export type MachineRecord = z.infer<typeof machineRecordSchema>;

/** The machine for its provider. */
export function refOf(machine: Machine): MachineRef {
  return {
    id: machine.id,
    project: machine.project,
    spec: machine.spec,
    providerRef: machine.providerRef,
  };
}

/**
 * The machine with what its provider sees. Observed fields are replaced as a whole: what the provider
 * no longer reports is gone. `updatedAt` moves only when something changed.
 */
export function withObservation(machine: Machine, seen: Observation, nowMs: number): Machine {
  const { id, project, provider, spec, createdAt, expiresAt, updatedAt } = machine;
  const next: Machine = {
    id,
    project,
    provider,
    state: seen.state,
    spec,
    providerRef: { ...seen.providerRef },
    ...(seen.ipAddresses?.length ? { ipAddresses: [...seen.ipAddresses] } : {}),
    ...(seen.consoleUrl ? { consoleUrl: seen.consoleUrl } : {}),
    ...(seen.rdpHost ? { rdpHost: seen.rdpHost } : {}),
    ...(seen.rdpPort ? { rdpPort: seen.rdpPort } : {}),
    ...(seen.rdpUsername ? { rdpUsername: seen.rdpUsername } : {}),
    ...(seen.progressPercent === undefined ? {} : { progressPercent: seen.progressPercent }),
    ...(seen.message ? { message: seen.message } : {}),
    ...(seen.conditions?.length ? { conditions: seen.conditions } : {}),
    createdAt,
    updatedAt,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
  if (JSON.stringify(next) === JSON.stringify(machine)) return machine;
  return { ...next, updatedAt: formatTime(nowMs) };
}

/** The machine in another state, with a message or none. */
export function withState(
  machine: Machine,
  state: Machine["state"],
  nowMs: number,
  message?: string,
): Machine {
  const { message: _, ...rest } = machine;
  return { ...rest, state, updatedAt: formatTime(nowMs), ...(message ? { message } : {}) };
}
