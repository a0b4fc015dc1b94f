/**
 * What can be seen of a node at one moment: the input of its resources and of most replies.
 */
import type { MachineSpec } from "./machine-spec.ts";
import type { NodeConfig } from "./node-config.ts";

/** Where a node is in its life. `off` is not a stage of Talos: nothing answers then. */
export type NodeStage =
  | "off"
  | "booting"
  | "installing"
  | "maintenance"
  | "running"
  | "rebooting"
  | "shutting down"
  | "resetting"
  | "upgrading";

/** State of a service as `ServiceList` shows it. */
export type ServiceState =
  | "Initialized"
  | "Preparing"
  | "Waiting"
  | "Starting"
  | "Running"
  | "Stopping"
  | "Finished"
  | "Failed"
  | "Skipped";

/** A change of a service. */
export interface ServiceEvent {
  readonly message: string;
  readonly state: ServiceState;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A service of the node. */
export interface NodeService {
  readonly id: string;
  readonly state: ServiceState;
  /** `undefined`: not checked. */
  readonly healthy: boolean | undefined;
  /** Newest last. */
  readonly events: readonly ServiceEvent[];
}

/** A member of the cluster as discovery shows it. */
export interface ClusterMemberView {
  readonly id: string;
  readonly hostname: string;
  readonly address: string;
  readonly role: "controlplane" | "worker";
  readonly talosVersion: string;
}

/** See the module's comment. */
export interface NodeView {
  readonly spec: MachineSpec;
  readonly stage: NodeStage;
  readonly hostname: string;
  readonly talosVersion: string;
  /** Active configuration; absent in maintenance mode. */
  readonly config: NodeConfig | undefined;
  readonly installed: boolean;
  /** Keys of the META partition. */
  readonly meta: Readonly<Record<string, string>>;
  readonly isTimeSynced: boolean;
  /** Kernel name of the disk it is installed on. */
  readonly systemDisk: string | undefined;
  readonly services: readonly NodeService[];
  readonly unmetConditions: readonly { readonly name: string; readonly reason: string }[];
  readonly members: readonly ClusterMemberView[];
  readonly etcdMemberId: string | undefined;
  /** Whether the node is registered in Kubernetes and ready there. */
  readonly kubernetesReady: boolean | undefined;
}
