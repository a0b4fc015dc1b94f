/**
 * What an addon reports.
 */
import { setCondition, type Condition } from "@kontinuum/controller";
import type { Clock } from "@kontinuum/std";
import { isDeepStrictEqual } from "node:util";
import type { Addon, AddonStatus } from "../../kinds/index.ts";

/** How a pass over an addon ended. */
export type AddonOutcome =
  | { readonly reason: "Healthy"; readonly message: string }
  | { readonly reason: "InstallFailed" | "CRDsNotReady" | "NotHealthy"; readonly message: string }
  /** Nobody knows: the addon may be well. */
  | { readonly reason: "ClusterUnreachable"; readonly message: string };

/** What `Ready` is for a reason. */
const statusOf = (reason: AddonOutcome["reason"]): Condition["status"] =>
  reason === "Healthy" ? "True" : reason === "ClusterUnreachable" ? "Unknown" : "False";

/** The status after `outcome`, or `undefined` when nothing changes. */
export function addonStatus(
  addon: Addon,
  { reason, message }: AddonOutcome,
  clock: Clock,
): AddonStatus | undefined {
  const before = addon.status ?? {};
  const conditions: Condition[] = structuredClone(before.conditions ?? []);
  setCondition(
    conditions,
    {
      type: "Ready",
      status: statusOf(reason),
      reason,
      message,
      observedGeneration: addon.metadata.generation ?? 0,
    },
    clock,
  );
  const status: AddonStatus = { ...before, conditions };
  return isDeepStrictEqual(before, status) ? undefined : status;
}
