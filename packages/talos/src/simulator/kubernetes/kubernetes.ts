/**
 * The seam between a cluster of nodes and its Kubernetes.
 */
import type { NodeConfig } from "../node-config.ts";
import type { SimulatedNode } from "../node.ts";

/** The Kubernetes of one cluster. */
export interface Kubernetes {
  /** Serves the API on a control-plane node's address. */
  startServer(node: SimulatedNode, config: NodeConfig): Promise<void>;
  stopServer(node: SimulatedNode): Promise<void>;
  /** Registers a node and runs its pods. Idempotent. */
  addKubelet(node: SimulatedNode, config: NodeConfig): Promise<void>;
  /** The node is off: its pods end, its Node object becomes not ready. */
  removeKubelet(node: SimulatedNode): Promise<void>;
  /** Ends everything; kept data stays. */
  close(): Promise<void>;
}
