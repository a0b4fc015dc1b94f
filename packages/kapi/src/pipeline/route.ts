/**
 * The last stage: which room answers an authorized request.
 */
import type { DiscoveryDocuments } from "../discovery/documents.ts";
import type { RegistryHandler } from "../registry/handler.ts";
import { wrongMethod } from "../status/status.ts";
import { sendBytes, sendText, sendValue } from "../wire/respond.ts";
import type { RequestContext } from "./context.ts";
import type { Documents } from "./documents.ts";
import { isHealthPath, serveHealth, type HealthChecks } from "./health.ts";
import { versionInfo } from "./version.ts";

/** Where requests can go. */
export interface RouteTargets {
  readonly registry: RegistryHandler;
  readonly discovery: DiscoveryDocuments;
  readonly health: HealthChecks;
  /** Requests for group versions that other servers answer; `false` when it is not one. */
  proxy(context: RequestContext): Promise<boolean>;
  /** Further documents by path (`/metrics`, `/openid/v1/jwks`, …). */
  readonly documents: Documents;
}

/** Makes the router. */
export function router(targets: RouteTargets): (context: RequestContext) => Promise<void> {
  const { registry, discovery, health, documents } = targets;
  return async (context) => {
    const { info } = context;
    if (await targets.proxy(context)) return;
    if (info.isResource) return registry.handle(context);
    const { path } = info;
    const { method } = context.request;
    if (method !== "GET" && method !== "HEAD") throw wrongMethod();
    if (path === "/api" || path === "/apis" || path.startsWith("/api/") || path.startsWith("/apis/"))
      return discovery.discovery(context);
    if (path === "/openapi/v2" || path === "/openapi/v3" || path.startsWith("/openapi/v3/"))
      return discovery.openapi(context);
    if (path === "/version") return sendValue(context, 200, versionInfo);
    if (isHealthPath(path)) return serveHealth(context, health);
    if (path === "/") return sendValue(context, 200, { paths: rootPaths(targets) });
    const document = documents.get(path);
    if (document) {
      const { contentType, body } = await document();
      return sendBytes(context, 200, contentType, Buffer.from(body));
    }
    return sendText(context, 404, "404 page not found\n");
  };
}

function rootPaths({ discovery, health, documents }: RouteTargets): readonly string[] {
  const paths = ["/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", ...documents.keys()];
  for (const { group, versions } of discovery.groups) {
    if (group !== "") paths.push(`/apis/${group}`);
    for (const { version } of versions)
      paths.push(group === "" ? `/api/${version}` : `/apis/${group}/${version}`);
  }
  for (const endpoint of ["healthz", "livez", "readyz"] as const) {
    paths.push(`/${endpoint}`, ...[...health[endpoint].keys()].map((name) => `/${endpoint}/${name}`));
  }
  return paths.sort();
}
