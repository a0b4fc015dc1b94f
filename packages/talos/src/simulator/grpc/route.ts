/**
 * Which node shall answer a call: `node` and `nodes` metadata (Talos API, request proxying).
 */
import { Code, ConnectError } from "@connectrpc/connect";
import { invalidArgument, permissionDenied } from "../call-error.ts";
import type { SimulatedNode } from "../node.ts";

/** What a route depends on: the node that was dialled, and how. */
export interface RouteOrigin {
  readonly node: Pick<SimulatedNode, "config" | "hostname" | "spec">;
  readonly isMaintenance: boolean;
}

/** Where a call goes. */
export type Route =
  | { readonly kind: "local" }
  | { readonly kind: "one"; readonly target: string }
  | { readonly kind: "many"; readonly targets: readonly string[] };

/** Services whose replies can be merged. */
const fanOutServices = new Set([
  "machine.MachineService",
  "cluster.ClusterService",
  "inspect.InspectService",
  "storage.StorageService",
  "time.TimeService",
]);

/** Nodes one call may name. */
const targetLimit = 1000;

/** The route of a call; throws what the real apid answers to a wrong one. */
export function routeOf(header: Headers, service: string, origin: RouteOrigin): Route {
  const { node } = origin;
  if (origin.isMaintenance || !node.config || header.get("proxyfrom") !== null) return { kind: "local" };
  const one = values(header, "node");
  const many = values(header, "nodes");
  if (one.length > 1) throw invalidArgument("node metadata must be single-valued");
  if (many.length > 0 && !fanOutServices.has(service)) {
    throw invalidArgument("one-2-many proxying is not supported for this method");
  }
  const targets = one.length > 0 ? one : many;
  if (targets.length === 0) return { kind: "local" };
  if (targets.length > targetLimit) throw invalidArgument(`more than ${targetLimit} nodes`);
  for (const target of targets) {
    if (target === "" || /^[^:]*:\d+$|\]:\d+$/.test(target)) {
      throw new ConnectError(`invalid target ${JSON.stringify(target)}`, Code.Internal);
    }
  }
  if (node.config.role === "worker") {
    const [target = ""] = targets;
    const isSelf = targets.length === 1 && (target === node.spec.address || target === node.hostname);
    if (!isSelf) throw permissionDenied("no request forwarding");
    return { kind: "local" };
  }
  const [target] = one;
  return target === undefined ? { kind: "many", targets: many } : { kind: "one", target };
}

/** Repeated metadata arrives joined by commas. */
function values(header: Headers, name: string): string[] {
  const text = header.get(name);
  return text === null ? [] : text.split(",").map((part) => part.trim());
}
