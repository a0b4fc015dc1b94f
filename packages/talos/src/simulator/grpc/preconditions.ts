/**
 * What calls ask of a node before they do anything.
 */
import type { HandlerContext } from "@connectrpc/connect";
import { parseVersionContract } from "../../config/version-contract.ts";
import { unimplemented, unknownError } from "../call-error.ts";
import type { SimulatedNode } from "../node.ts";
import { callerOf } from "./call-context.ts";

/** The node, where its maintenance mode answers this kind of call at all (since Talos 1.13). */
export function readable(context: HandlerContext): SimulatedNode {
  const { node } = callerOf(context);
  if (!node.config) refuseInOldMaintenance(node);
  return node;
}

/** Before Talos 1.13 a server of its own answered in maintenance mode, and few calls. */
export function refuseInOldMaintenance(node: SimulatedNode): void {
  if (minorOf(node) < 13) throw unimplemented("API is not implemented in maintenance mode");
}

/** The node's release, Talos 1.`minor`. */
export function minorOf(node: SimulatedNode): number {
  return parseVersionContract(node.record.talosVersion).minor;
}

/** Fails unless the node is a control plane. */
export function controlPlaneOnly(node: SimulatedNode, what: string): void {
  if (node.config?.role !== "controlplane")
    throw unimplemented(`${what} is only available on control plane nodes`);
}

/** The cluster of a control plane whose etcd is up. */
export function etcdCluster(node: SimulatedNode): NonNullable<SimulatedNode["cluster"]> {
  const isUp = node.view().services.some(({ id, state }) => id === "etcd" && state === "Running");
  if (!node.cluster || !isUp) throw unknownError("failed to create etcd client: context deadline exceeded");
  return node.cluster;
}

/** Nothing more comes: the call stays open until its caller leaves or the node goes down. */
export function untilCancelled(context: HandlerContext): Promise<void> {
  return new Promise((resolve) => {
    if (context.signal.aborted) resolve();
    else context.signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Fails as a release does that has no such service. */
export function unknownBefore(node: SimulatedNode, minor: number, service: string): void {
  if (minorOf(node) < minor) throw unimplemented(`unknown service ${service}`);
}
