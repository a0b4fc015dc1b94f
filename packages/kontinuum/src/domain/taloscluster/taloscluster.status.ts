/**
 * What a cluster reports: its conditions from what a pass saw. Pure.
 */
import { findCondition, isConditionTrue, setCondition, type Condition } from "@kontinuum/controller";
import type { Clock } from "@kontinuum/std";
import type { Addon, TalosCluster, TalosClusterStatus } from "../../kinds/index.ts";
import { isEnabled, releaseOf } from "../addon/addon.resolve.ts";

/** One condition. */
export interface ClusterReport {
  readonly type: "Bootstrapped" | "ControlPlaneReady" | "Ready";
  readonly holds: boolean;
  readonly reason: string;
  readonly message: string;
}

/** The status with `reports`. */
export function clusterStatus(
  cluster: TalosCluster,
  reports: readonly ClusterReport[],
  clock: Clock,
): TalosClusterStatus {
  const conditions: Condition[] = structuredClone(cluster.status?.conditions ?? []);
  for (const { type, holds, reason, message } of reports) {
    const observedGeneration = cluster.metadata.generation ?? 0;
    setCondition(
      conditions,
      { type, status: holds ? "True" : "False", reason, message, observedGeneration },
      clock,
    );
  }
  return { ...cluster.status, conditions };
}

/** `Ready` of a cluster whose control plane is well, from its addons. */
export function addonsReport(addons: readonly Addon[]): ClusterReport {
  const waiting = addons
    .filter((addon) => isEnabled(addon) && !isConditionTrue(addon.status?.conditions, "Ready"))
    .map(
      (addon) =>
        `${releaseOf(addon)}: ${findCondition(addon.status?.conditions, "Ready")?.reason ?? "Pending"}`,
    )
    .sort();
  return waiting.length === 0
    ? {
        type: "Ready",
        holds: true,
        reason: "AddonsInstalled",
        message: "all addons are installed and healthy",
      }
    : { type: "Ready", holds: false, reason: "AddonNotHealthy", message: waiting.join(", ") };
}
