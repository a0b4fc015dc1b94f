/**
 * The aggregation room put together: the aggregator and the identity it shows to backends.
 */
import type { Transport } from "@kontinuum/controller";
import { messageOf, type Edges } from "@kontinuum/std";
import type { Outbound } from "../outbound/outbound.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import { Aggregator } from "./aggregator.ts";
import { frontProxyIdentity, publishFrontProxy, type FrontProxyIdentity } from "./front-proxy.ts";

/** What the room needs. */
export interface AggregationOptions {
  readonly edges: Edges;
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly transport: Transport;
  readonly outbound: Outbound;
  readonly systemNamespace: string;
  /** Discovery documents must be made again. */
  readonly changed: () => void;
}

/** The aggregator and its identity. */
export interface Aggregation {
  readonly aggregator: Aggregator;
  /** Publishes whom backends must trust. Nobody waits for it: no backend asks before the first one is registered. */
  publish(clientCa: string | undefined): void;
}

/** Makes the room, where APIServices are served. */
export function makeAggregation(options: AggregationOptions): Aggregation | undefined {
  const { edges, resources, storage, transport, outbound, systemNamespace, changed } = options;
  const resource = resources.get("apiregistration.k8s.io", "v1", "apiservices");
  if (!resource) return undefined;
  let made: Promise<FrontProxyIdentity> | undefined;
  const identity = (): Promise<FrontProxyIdentity> => {
    made ??= frontProxyIdentity(transport, systemNamespace, edges.clock).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
  const aggregator = new Aggregator({
    edges,
    resources,
    store: storage.of(resource),
    transport,
    ...outbound,
    identity,
    changed,
  });
  return {
    aggregator,
    publish(clientCa) {
      if (!resources.get("", "v1", "configmaps") || !resources.get("", "v1", "secrets")) return;
      identity()
        .then((value) => publishFrontProxy(transport, value, clientCa))
        .catch((error: unknown) =>
          edges.log.warn("the front proxy's identity is not published", { reason: messageOf(error) }),
        );
    },
  };
}
