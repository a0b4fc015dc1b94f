/**
 * The controllers of a hub, in one list.
 *
 * A zone's own server runs none of them: it reports itself and controls nothing, because what it may write on
 * its hub's store would not allow it to.
 */
import { combineControllers, type Controller } from "@kontinuum/controller";
import type { Edges } from "@kontinuum/std";
import { adminRbacController } from "../domain/admin-rbac/admin-rbac.controller.ts";
import { addonController } from "../domain/addon/addon.controller.ts";
import { ChartFetcher } from "../domain/addon/chart-fetch.ts";
import type { DomainContext } from "../domain/domain-context.ts";
import { instanceResetController } from "../domain/instance-reset/instance-reset.controller.ts";
import { instanceController } from "../domain/instance/instance.controller.ts";
import { talosProbe } from "../domain/instance/instance.probe.ts";
import { instancePoolController } from "../domain/instancepool/instancepool.controller.ts";
import type { Registration } from "../domain/registry/registration.ts";
import { registryController } from "../domain/registry/registry.controller.ts";
import { talosClusterController } from "../domain/taloscluster/taloscluster.controller.ts";
import { zoneController } from "../domain/zone/zone.controller.ts";
import { version } from "../version.ts";
import type { LazyHelm } from "./lazy-helm.ts";

/** All of them as one, with one client and shared caches. */
export function domainControllers(
  domain: DomainContext,
  registration: Registration,
  helm: LazyHelm,
  edges: Edges,
  hubAuthorities: () => string,
): Controller {
  const { oidc } = domain.config;
  const fetcher = new ChartFetcher({ edges, folder: async () => (await helm.get()).charts });
  return combineControllers("kontinuum", [
    registryController(domain, registration),
    instanceController(domain, talosProbe(edges)),
    instancePoolController(domain),
    talosClusterController(domain, edges.clock),
    instanceResetController(domain),
    addonController(domain, () => helm.get(), fetcher),
    zoneController(domain, { version, hubAuthorities }),
    ...(oidc ? [adminRbacController(domain)] : []),
  ]);
}
