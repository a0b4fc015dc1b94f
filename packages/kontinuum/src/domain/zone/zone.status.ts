/**
 * What a zone reports. `Ready` mirrors what decides it, so that one condition answers "can I use it". Pure.
 */
import { removeCondition, setCondition, type Condition } from "@kontinuum/controller";
import type { Clock } from "@kontinuum/std";
import { zoneConditions, type Zone, type ZoneStatus } from "../../kinds/index.ts";

/** Where a pass ended: the first thing that is not as it should be, or everything well. */
export type ZoneOutcome =
  | {
      readonly at: "cluster";
      readonly reason: "TalosClusterNotFound" | "WaitingForTalosCluster";
      readonly message: string;
    }
  | { readonly at: "installation"; readonly reason: InstallationReason; readonly message: string }
  | { readonly at: "registry"; readonly installed: string; readonly message: string }
  | {
      readonly at: "ready";
      readonly installed: string;
      readonly message: string;
      /** When the last heartbeat becomes too old, if no other follows; milliseconds from now. */
      readonly staleInMs: number;
    };

/** Reasons why a zone's server is not installed. */
export type InstallationReason =
  | "DownstreamNotReady"
  | "NoStorageSecretFound"
  | "NoVersionFound"
  | "AnonymousExposureRefused"
  | "InstallFailed"
  | "WaitingForCertificate";

type Report = readonly [type: string, holds: boolean, reason: string, message: string];

/** The status after `outcome`. */
export function zoneStatus(zone: Zone, outcome: ZoneOutcome, clock: Clock): ZoneStatus {
  return withReports(zone, reportsOf(outcome), clock, { keepTeardown: false });
}

/** The status while the zone is being removed. */
export function teardownStatus(zone: Zone, reason: string, message: string, clock: Clock): ZoneStatus {
  const reports: Report[] = [
    ["Teardown", false, reason, message],
    ["Ready", false, reason, message],
  ];
  return withReports(zone, reports, clock, { keepTeardown: true });
}

function reportsOf(outcome: ZoneOutcome): readonly Report[] {
  const { message } = outcome;
  switch (outcome.at) {
    case "cluster":
      return [
        ["ClusterReady", false, outcome.reason, message],
        ["Ready", false, outcome.reason, message],
      ];
    case "installation":
      return [
        clusterReady,
        ["Installed", false, outcome.reason, message],
        ["Ready", false, outcome.reason, message],
      ];
    case "registry":
      return [
        clusterReady,
        ["Installed", true, "Installed", outcome.installed],
        ["RegistryJoined", false, "WaitingForRegistry", message],
        ["Ready", false, "WaitingForRegistry", message],
      ];
    case "ready":
      return [
        clusterReady,
        ["Installed", true, "Installed", outcome.installed],
        ["RegistryJoined", true, "RegistryJoined", message],
        ["Ready", true, "RegistryJoined", message],
      ];
  }
}

const clusterReady: Report = ["ClusterReady", true, "ClusterReady", "the cluster is ready"];

function withReports(
  zone: Zone,
  reports: readonly Report[],
  clock: Clock,
  { keepTeardown }: { readonly keepTeardown: boolean },
): ZoneStatus {
  const conditions: Condition[] = structuredClone(zone.status?.conditions ?? []);
  if (!keepTeardown) removeCondition(conditions, "Teardown");
  for (const [type, holds, reason, message] of reports) {
    const observedGeneration = zone.metadata.generation ?? 0;
    setCondition(
      conditions,
      { type, status: holds ? "True" : "False", reason, message, observedGeneration },
      clock,
    );
  }
  const place = ({ type }: Condition): number => zoneConditions.findIndex((known) => known === type);
  return { ...zone.status, conditions: conditions.sort((a, b) => place(a) - place(b)) };
}
