/**
 * The seam between a cluster of nodes and its Kubernetes.
 */
import type { NodeConfig } from "../node-config.ts";
import type { SimulatedNode } from "../node.ts";

/** A pod that is bound to a node. */
export interface RunningPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly containers: readonly { readonly name: string; readonly image: string }[];
}

/** The Kubernetes of one cluster. */
export interface Kubernetes {
  /** Serves the API on a control-plane node's address. */
  startServer(node: SimulatedNode, config: NodeConfig): Promise<void>;
  stopServer(node: SimulatedNode): Promise<void>;
  /** Registers a node and runs its pods. Idempotent. */
  addKubelet(node: SimulatedNode, config: NodeConfig): Promise<void>;
  /** The node is off: its pods end, its Node object becomes not ready. */
  removeKubelet(node: SimulatedNode): Promise<void>;
  /** Pods that are bound to a node, sorted by namespace and name. */
  podsOn(node: SimulatedNode): Promise<readonly RunningPod[]>;
  /** Ends everything; kept data stays. */
  close(): Promise<void>;
}
