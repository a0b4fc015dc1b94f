/**
 * Every route of the API.
 */
import type { Route } from "./route.ts";
import { discoveryRoutes } from "./routes/discovery.ts";
import { eventRoutes } from "./routes/events.ts";
import { labRoutes } from "./routes/lab.ts";
import { machineRoutes } from "./routes/machines.ts";
import { metaRoutes } from "./routes/meta.ts";
import { operationRoutes } from "./routes/operations.ts";
import { snapshotRoutes } from "./routes/snapshots.ts";
import type { Services } from "./services.ts";

/** See the module comment. */
export function allRoutes(services: Services): readonly Route[] {
  const routes: Route[] = [
    ...metaRoutes(services),
    ...labRoutes(services),
    ...machineRoutes(services),
    ...snapshotRoutes(services),
    ...operationRoutes(services),
    ...eventRoutes(services),
  ];
  routes.push(...discoveryRoutes(services, () => routes));
  return routes;
}
