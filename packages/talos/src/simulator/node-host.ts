/**
 * What a node needs of the rack it stands in.
 */
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Edges } from "@kontinuum/std";
import type { MachineRecord } from "./machine-record.ts";
import type { NodeConfig } from "./node-config.ts";
import type { Peer } from "./node-listener.ts";
import type { SimulatedCluster } from "./cluster.ts";
import type { SimulatedNode } from "./node.ts";
import type { NodeTiming } from "./timing.ts";

/** Ports of a node. Every node has its own address, so all may use the same ones. */
export interface NodePorts {
  /** The Talos API. */
  readonly api: number;
  readonly trustd: number;
  /** The Kubernetes API of a control-plane node. */
  readonly kubernetes: number;
}

/** See the module's comment. */
export interface NodeHost {
  readonly edges: Edges;
  readonly timing: NodeTiming;
  readonly ports: NodePorts;
  /** Keeps what survives a loss of power. */
  save(node: SimulatedNode, record: MachineRecord): Promise<void>;
  /** The cluster a configuration belongs to. */
  clusterOf(config: NodeConfig): SimulatedCluster;
  /** The data of an etcd member of this cluster was wiped. */
  lostData(cluster: SimulatedCluster | undefined): Promise<void>;
  /** Answers a call to the Talos API. */
  handle(node: SimulatedNode, request: Http2ServerRequest, response: Http2ServerResponse, peer: Peer): void;
  /** Answers a call to trustd. */
  handleTrustd(node: SimulatedNode, request: Http2ServerRequest, response: Http2ServerResponse): void;
}
