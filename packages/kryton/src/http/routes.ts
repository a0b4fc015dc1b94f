/**
 * Every route of the API.
 */
import type { Route } from "./route.ts";
import { apiKeyRoutes } from "./routes/api-keys.ts";
import { consoleRoutes } from "./routes/console.ts";
import { discoveryRoutes } from "./routes/discovery.ts";
import { eventRoutes } from "./routes/events.ts";
import { goldenRoutes } from "./routes/golden.ts";
import { jobRoutes } from "./routes/jobs.ts";
import { labRoutes } from "./routes/lab.ts";
import { machineRoutes } from "./routes/machines.ts";
import { metaRoutes } from "./routes/meta.ts";
import { operationRoutes } from "./routes/operations.ts";
import { settingsRoutes } from "./routes/settings.ts";
import { snapshotRoutes } from "./routes/snapshots.ts";
import { storageRoutes } from "./routes/storage.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import type { Services } from "./services.ts";

/** See the module comment. */
export function allRoutes(services: Services): readonly Route[] {
  const routes: Route[] = [
    ...metaRoutes(services),
    ...labRoutes(services),
    ...machineRoutes(services),
    ...snapshotRoutes(services),
    ...consoleRoutes(services),
    ...operationRoutes(services),
    ...apiKeyRoutes(services),
    ...eventRoutes(services),
    ...webhookRoutes(services),
    ...settingsRoutes(services),
    ...storageRoutes(services),
    ...goldenRoutes(services),
    ...jobRoutes(services),
  ];
  routes.push(...discoveryRoutes(services, () => routes));
  return routes;
}
