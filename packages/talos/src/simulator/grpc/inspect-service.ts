/**
 * `inspect.InspectService`: which controllers write which resources. Of a node's own controllers only those are told
 * whose resources the simulator shows.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import { DependencyEdgeType, type InspectService } from "../../gen/inspect/inspect_pb.ts";
import { readable } from "./preconditions.ts";

/** See the module's comment. */
export const inspectService: ServiceImpl<typeof InspectService> = {
  controllerRuntimeDependencies(_request, context) {
    const seen = new Set<string>();
    const edges = readable(context)
      .currentResources()
      .all()
      .filter(
        ({ owner, type }) => owner !== "" && !seen.has(`${owner} ${type}`) && seen.add(`${owner} ${type}`),
      )
      .map(({ owner, type, namespace }) => ({
        controllerName: owner,
        edgeType: DependencyEdgeType.OUTPUT_SHARED,
        resourceNamespace: namespace,
        resourceType: type,
      }));
    return { messages: [{ edges }] };
  },
};
