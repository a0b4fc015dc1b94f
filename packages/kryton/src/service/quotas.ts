/**
 * Quotas per project: how many machines and how much of the host they may ask for.
 *
 * What a project uses is one document, changed in the transaction that creates, resizes or removes a
 * machine, so two creations can never both take the last place. Kept only for projects with a quota.
 */
import { z } from "zod";
import { KrytonError } from "../model/errors.ts";
import type { MachineSpec } from "../model/machine.ts";

/** Limits; absent means none. */
export interface Quota {
  readonly machines?: number | undefined;
  readonly cpu?: number | undefined;
  readonly memoryMiB?: number | undefined;
  readonly diskGiB?: number | undefined;
}

/** What the machines of a project ask for together. */
export const usageSchema = z.object({
  machines: z.int(),
  cpu: z.int(),
  memoryMiB: z.int(),
  diskGiB: z.int(),
});
/** See {@link usageSchema}. */
export type Usage = z.infer<typeof usageSchema>;

/** Nothing in use. */
export const noUsage: Usage = { machines: 0, cpu: 0, memoryMiB: 0, diskGiB: 0 };

const dimensions = ["machines", "cpu", "memoryMiB", "diskGiB"] as const;

/** The part of one machine. */
export function usageOf(spec: MachineSpec): Usage {
  return {
    machines: 1,
    cpu: spec.compute.cpu,
    memoryMiB: spec.compute.memoryMiB,
    diskGiB: spec.disk.sizeGiB,
  };
}

/** Sum of two usages, or their difference with `sign` -1. */
export function addUsage(a: Usage, b: Usage, sign: 1 | -1 = 1): Usage {
  return {
    machines: a.machines + sign * b.machines,
    cpu: a.cpu + sign * b.cpu,
    memoryMiB: a.memoryMiB + sign * b.memoryMiB,
    diskGiB: a.diskGiB + sign * b.diskGiB,
  };
}

/** Throws `QUOTA_EXCEEDED` naming every limit that `next` passes and `before` did not pass as far. */
export function checkQuota(project: string, quota: Quota, before: Usage, next: Usage): void {
  const over = dimensions.filter(
    (name) => next[name] > (quota[name] ?? Infinity) && next[name] > before[name],
  );
  if (over.length === 0) return;
  const parts = over.map((name) => `${name} ${next[name]} of ${quota[name]}`);
  throw new KrytonError("QUOTA_EXCEEDED", `project ${project} would use ${parts.join(", ")}`, {
    hint: "Delete machines or ask for a larger quota.",
    details: { over },
  });
}
