/**
 * Why a node is not ready yet, as its machine status says it.
 */
import type { NodeFaults } from "./faults.ts";
import { nodeNameOf } from "./node-config.ts";
import type { NodeService } from "./node-view.ts";

/** In Talos' order: time, services, the node in Kubernetes (for a configured one). */
export function unmetConditions(options: {
  readonly faults: NodeFaults;
  readonly services: readonly NodeService[];
  readonly isConfigured: boolean;
  readonly hostname: string;
  readonly kubernetesReady: boolean | undefined;
}): { name: string; reason: string }[] {
  const { faults, services, isConfigured, hostname, kubernetesReady } = options;
  const pending = services.filter(({ state, healthy }) => state !== "Running" || healthy === false);
  const nodeName = JSON.stringify(nodeNameOf(hostname));
  return [
    ...(faults.timeNotSynced === true ? [{ name: "time", reason: "time is not in sync" }] : []),
    ...(pending.length > 0
      ? [{ name: "services", reason: `${pending.map(({ id }) => id).join(", ")} not running` }]
      : []),
    ...(isConfigured && kubernetesReady !== true
      ? [{ name: "nodeReady", reason: `node ${nodeName} status is not available yet` }]
      : []),
  ];
}
