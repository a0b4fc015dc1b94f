/**
 * The virtual rack and its seams.
 */
export type { SimulatedCluster } from "./cluster.ts";
export { faultNames, parseFaults } from "./fault-text.ts";
export type { CrashPoint, NodeFaults } from "./faults.ts";
export {
  describeMachine,
  describeMachines,
  type DiskSpec,
  type LinkSpec,
  type MachineChoice,
  type MachineSpec,
} from "./machine-spec.ts";
export type { SimulatedNode } from "./node.ts";
export type { NodePorts } from "./node-host.ts";
export type { NodeStage } from "./node-view.ts";
export type { PodProcess, PodRunner, RunnablePod } from "./kubernetes/pod-runner.ts";
export { SimulatedRack, type RackOptions } from "./rack.ts";
export { demoTiming, realisticTiming, type NodeTiming } from "./timing.ts";
