/**
 * The outbound room put together: the client with its address policy, and the way to find Services.
 */
import { OutboundClient, stringAt, type Edges } from "@kontinuum/std";
import type { CoreObjects } from "../registry/core-objects.ts";
import { ServiceTargets, type ServiceResolver } from "./service-target.ts";
import { TargetClient } from "./target-client.ts";

/** The way out. */
export interface Outbound {
  readonly client: TargetClient;
  readonly targets: ServiceTargets;
}

/**
 * Makes the way out. `allowed` are address ranges in CIDR form that the default policy would refuse; `ownListeners` this
 * server's own `address:port`, refused too.
 */
export function makeOutbound(
  edges: Edges,
  objects: CoreObjects,
  allowed: readonly string[],
  resolver: ServiceResolver | undefined,
  ownListeners: () => readonly string[],
): Outbound {
  const client = new TargetClient(
    new OutboundClient(edges.network, edges.clock, { allow: allowed, ownListeners }),
  );
  const targets = new ServiceTargets(
    {
      service: (namespace, name) => objects.read("services", namespace, name),
      endpoints: (namespace, name) => objects.read("endpoints", namespace, name),
      slices: async (namespace, service) => {
        const slices = await objects.list("discovery.k8s.io", "endpointslices", namespace);
        return slices.filter(
          (slice) => stringAt(slice, "metadata", "labels", "kubernetes.io/service-name") === service,
        );
      },
    },
    resolver,
  );
  return { client, targets };
}
