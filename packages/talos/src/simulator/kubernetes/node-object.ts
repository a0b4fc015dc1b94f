/**
 * The Node object of a simulated node, as its kubelet would register it.
 */
import { formatTime } from "@kontinuum/controller";
import type { Clock, JsonObject } from "@kontinuum/std";
import { nodeNameOf, type NodeConfig } from "../node-config.ts";
import type { SimulatedNode } from "../node.ts";
import { withCondition } from "./conditions.ts";
import type { BuiltinCondition, Node } from "./kinds.ts";

const controlPlaneRole = "node-role.kubernetes.io/control-plane";

/** Labels and taints. */
export function nodeRegistration(node: SimulatedNode, config: NodeConfig): Node {
  const name = nodeNameOf(node.hostname);
  const isControlPlane = config.role === "controlplane";
  const isTainted = isControlPlane && !config.facts.allowSchedulingOnControlPlanes;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        ...(isControlPlane ? { [controlPlaneRole]: "" } : {}),
        ...config.nodeLabels,
      },
      annotations: { "simulator.kontinuum.sh/machine": node.spec.name },
    },
    spec: isTainted ? { taints: [{ key: controlPlaneRole, effect: "NoSchedule" }] } : {},
  };
}

/** Its status while it is up. */
export function nodeStatus(
  node: SimulatedNode,
  config: NodeConfig,
  present: Node["status"],
  clock: Clock,
): NonNullable<Node["status"]> {
  const { spec } = node;
  const memoryKi = spec.memoryModulesMiB.reduce((sum, size) => sum + size, 0) * 1024;
  const resources: JsonObject = {
    cpu: String(spec.cpu.cores * spec.cpu.sockets * 2),
    memory: `${memoryKi}Ki`,
    pods: "110",
    "ephemeral-storage": "100Gi",
  };
  const talos = `Talos (${node.record.talosVersion})`;
  return {
    ...present,
    conditions: conditions(present?.conditions ?? [], clock),
    addresses: [
      { type: "InternalIP", address: spec.address },
      { type: "Hostname", address: nodeNameOf(node.hostname) },
    ],
    capacity: resources,
    allocatable: resources,
    nodeInfo: {
      machineID: spec.uuid.replaceAll("-", ""),
      systemUUID: spec.uuid,
      bootID: spec.uuid,
      kernelVersion: "6.18.0-talos-simulated",
      osImage: talos,
      containerRuntimeVersion: "containerd://2.1.0-simulated",
      kubeletVersion: `v${config.kubernetesVersion}`,
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture: "amd64",
    },
  };
}

/** Conditions of a node that is up, or has gone silent. */
export function conditions(
  present: readonly BuiltinCondition[],
  clock: Clock,
  isUp = true,
): BuiltinCondition[] {
  const heartbeat = { lastHeartbeatTime: formatTime(clock.now()) };
  const pressure = ["MemoryPressure", "DiskPressure", "PIDPressure"].map((type) => ({
    type,
    status: isUp ? ("False" as const) : ("Unknown" as const),
    reason: isUp ? `KubeletHasNo${type}` : "NodeStatusUnknown",
    message: isUp ? "kubelet has no pressure (simulated)" : "Kubelet stopped posting node status.",
  }));
  const ready = isUp
    ? {
        type: "Ready",
        status: "True" as const,
        reason: "KubeletReady",
        message: "kubelet is posting ready status (simulated)",
      }
    : {
        type: "Ready",
        status: "Unknown" as const,
        reason: "NodeStatusUnknown",
        message: "Kubelet stopped posting node status.",
      };
  return [...pressure, ready]
    .reduce((all: BuiltinCondition[], condition) => withCondition(all, condition, clock), [...present])
    .map((condition) => (isUp ? { ...condition, ...heartbeat } : condition));
}
