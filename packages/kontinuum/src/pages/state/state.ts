/**
 * What people read instead of conditions: one word and one tone per object. In each function the first line that
 * applies decides, and the words are the ones kubectl users find in reasons and columns.
 */
import type { Status } from "@kontinuum/web";
import type { Addon, Instance, InstancePool, Kontinuum, TalosCluster, Zone } from "../../kinds/index.ts";
import { labels } from "../../kinds/index.ts";
import { lookup } from "./condition-lookup.ts";

const state = (word: string, tone: Status["tone"]): Status => ({ word, tone });
const minutes = (count: number): number => count * 60_000;

/** Milliseconds since an RFC 3339 time; infinite when absent. */
function sinceMs(time: string | undefined, nowMs: number): number {
  return time === undefined ? Number.POSITIVE_INFINITY : nowMs - Date.parse(time);
}

/** How a machine stands. */
export function instanceState(instance: Instance): Status {
  const on = lookup(instance.status?.conditions);
  const claimed = instance.metadata.labels?.[labels.claimedBy] !== undefined;
  if (instance.metadata.deletionTimestamp) {
    return claimed && on.is("Configured", "True")
      ? state("Resetting", "leaving")
      : state("Deleting", "leaving");
  }
  if (on.is("Ready", "False", "Unhealthy")) return state("Unhealthy", "bad");
  if (on.is("Ready", "True")) return state("Ready", "ok");
  if (on.is("Joined", "True")) return state("Joined", "ok");
  if (on.is("Configured", "True")) return state("Joining", "busy");
  if (claimed) return state("Configuring", "busy");
  if (on.is("Discovered", "True")) return state("Unclaimed", "free");
  if (on.is("Discovered", "False", "NoInterfaces")) return state("No address", "warn");
  if (on.is("Discovered", "False", "ProbeFailed")) return state("No answer", "warn");
  const discovered = on.of("Discovered");
  if (discovered) return state(discovered.reason, "warn");
  return state("Discovering", "busy");
}

/** How a pool stands; `have` is the number of claimed machines. */
export function poolState(pool: InstancePool, have: number): Status {
  const on = lookup(pool.status?.conditions);
  if (pool.metadata.deletionTimestamp) return state("Releasing", "leaving");
  if (pool.spec.replicas === 0 && have === 0) return state("Empty", "off");
  if (on.is("InsufficientCapacity", "True", "CandidatesExhausted")) return state("Short of machines", "warn");
  if (on.is("InsufficientCapacity", "True")) return state("Creating machines", "busy");
  if (have > pool.spec.replicas) return state("Scaling down", "busy");
  if (on.is("Ready", "True") && (pool.status?.readyReplicas ?? 0) >= pool.spec.replicas)
    return state("Ready", "ok");
  return on.none ? state("Pending", "wait") : state("Waiting", "wait");
}

/** How a cluster stands; `membersBad` says that a member or the health check fails. */
export function clusterState(cluster: TalosCluster, membersBad: boolean, nowMs: number): Status {
  const on = lookup(cluster.status?.conditions);
  if (cluster.metadata.deletionTimestamp) return state("Deleting", "leaving");
  if (on.is("Ready", "True")) return membersBad ? state("Degraded", "warn") : state("Ready", "ok");
  if (on.is("Ready", "False", "AddonNotHealthy")) {
    const young = sinceMs(on.of("Ready")?.lastTransitionTime, nowMs) < minutes(15);
    return young ? state("Installing addons", "busy") : state("Addons unhealthy", "warn");
  }
  if (on.is("ControlPlaneReady", "False", "WaitingForInstances")) return state("Waiting", "wait");
  if (on.is("ControlPlaneReady", "False")) return state("Bootstrapping", "busy");
  return on.none ? state("Pending", "wait") : state("Bootstrapping", "busy");
}

/** How an addon stands. */
export function addonState(addon: Addon, nowMs: number): Status {
  const on = lookup(addon.status?.conditions);
  if (addon.metadata.deletionTimestamp) return state("Uninstalling", "leaving");
  if (addon.spec.enabled === false) return state("Off", "off");
  if (on.is("Ready", "False", "InstallFailed")) return state("Install failed", "bad");
  if (on.is("Ready", "True")) return state("Healthy", "ok");
  if (on.is("Ready", "False", "CRDsNotReady")) return state("Waiting", "wait");
  if (on.is("Ready", "False", "NotHealthy")) {
    const young = sinceMs(on.of("Ready")?.lastTransitionTime, nowMs) < minutes(5);
    return young ? state("Starting", "busy") : state("Unhealthy", "warn");
  }
  return on.none ? state("Pending", "wait") : state("Waiting", "wait");
}

/** How a zone stands; `process` is its registered server, `cluster` the state of its cluster. */
export function zoneState(
  zone: Zone,
  process: Kontinuum | undefined,
  cluster: Status | undefined,
  nowMs: number,
): Status {
  const on = lookup(zone.status?.conditions);
  if (zone.metadata.deletionTimestamp) {
    return on.is("Teardown", "False") ? state("Removing, late", "late") : state("Removing", "leaving");
  }
  if (on.is("ClusterReady", "False", "TalosClusterNotFound")) return state("No cluster", "bad");
  if (on.is("Installed", "False", "InstallFailed")) return state("Install failed", "bad");
  if (on.is("Installed", "False", "AnonymousExposureRefused")) return state("Blocked", "bad");
  if (on.is("Installed", "False", "NoStorageSecretFound")) return state("Blocked", "bad");
  if (on.is("RegistryJoined", "True")) {
    if (sinceMs(process?.status?.lastHeartbeatTime, nowMs) > 90_000) return state("No contact", "unknown");
    if (cluster?.word === "Degraded") return state("Degraded", "warn");
  }
  if (on.is("Ready", "True")) return state("Ready", "ok");
  if (on.is("ClusterReady", "False", "WaitingForTalosCluster")) return state("Waiting", "wait");
  if (on.is("Installed", "False", "WaitingForCertificate")) return state("Installing", "busy");
  if (on.is("Installed", "False")) return state("Waiting", "wait");
  if (on.is("RegistryJoined", "False")) return state("Joining", "wait");
  return on.none ? state("Pending", "wait") : state("Installing", "busy");
}

/** How a process stands, by its heartbeat. */
export function processState(process: Kontinuum, nowMs: number): Status {
  if (process.metadata.deletionTimestamp) return state("Leaving", "leaving");
  const last = process.status?.lastHeartbeatTime;
  if (last === undefined) return state("Starting", "busy");
  const silent = sinceMs(last, nowMs);
  if (silent < 90_000) return state("Online", "ok");
  return silent < minutes(5) ? state("Late", "warn") : state("Gone", "unknown");
}
