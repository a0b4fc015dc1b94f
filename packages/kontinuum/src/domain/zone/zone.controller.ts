/**
 * Zones: installs this program into a ready cluster, and waits until it reports itself.
 */
import { isDeepStrictEqual } from "node:util";
import {
  addFinalizer,
  defineController,
  hasFinalizer,
  isDeleting,
  keyOf,
  parseKey,
  watchOf,
  type DefinedController,
} from "@kontinuum/controller";
import { finalizers, kontinuumKind, systemNamespace, talosClusterKind, zoneKind } from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { writeStatus } from "../transition-events.ts";
import { leaseRetry, placementKey } from "../zone-lease/zone-leases.ts";
import { installZone } from "./zone.install.ts";
import { zoneStatus } from "./zone.status.ts";
import { tearDownZone } from "./zone.teardown.ts";

/** Zones worked on at the same time. */
const concurrency = 16;

/** What the controller needs besides the common context. */
export interface ZoneControllerOptions {
  /** Version of this program. */
  readonly version: string;
  /** PEM authorities a zone must trust to reach this hub; empty: the system's. */
  readonly hubAuthorities: () => string;
}

/** The controller `zone`. */
export function zoneController(domain: DomainContext, options: ZoneControllerOptions): DefinedController {
  const { timings, leases } = domain;
  return defineController({
    name: "zone",
    concurrency,
    watches: [
      watchOf(zoneKind.resource),
      watchOf(talosClusterKind.resource, { map: (cluster) => [keyOf(cluster)] }),
      watchOf(kontinuumKind.resource, {
        map: ({ spec }) =>
          spec.region && spec.zone ? [`${systemNamespace}/${spec.region}-${spec.zone}`] : [],
      }),
    ],
    async reconcile(key, { client, edges, log, signal }) {
      const zone = await client.find(zoneKind.resource, parseKey(key));
      if (!zone) return;
      if (isDeleting(zone) && !hasFinalizer(zone, finalizers.zone)) return;
      const lease = placementKey(zone.spec.region, zone.spec.zone);
      if (!(await leases.tryAcquire(client, lease))) {
        return leaseRetry(timings.retryMs, edges.random);
      }
      if (isDeleting(zone)) {
        const done = await tearDownZone({ domain, client, edges, log, signal }, zone);
        return done ? undefined : { requeueAfterMs: timings.retryMs };
      }
      if (addFinalizer(zone, finalizers.zone)) {
        await client.update(zoneKind.resource, zone);
        return;
      }
      const outcome = await leases.whileHeld(client, lease, signal, (held) =>
        installZone({ domain, client, edges, signal: held, ...options }, zone),
      );
      const status = zoneStatus(zone, outcome, edges.clock);
      if (!isDeepStrictEqual(zone.status ?? {}, status)) {
        await writeStatus({ client, clock: edges.clock, log }, zoneKind.resource, zone, status);
        log.info("looked at a zone", { at: outcome.at, message: outcome.message });
      }
      // A zone that falls silent must not stay Ready: looked at again when its last heartbeat is too old.
      return {
        requeueAfterMs:
          outcome.at === "ready" ? Math.min(timings.identityCheckMs, outcome.staleInMs) : timings.retryMs,
      };
    },
  });
}
