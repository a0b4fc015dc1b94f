/**
 * From a request path to the template of its route: for metrics, where an id must not become a label.
 */
import type { RouteNamer } from "../metrics/metrics.ts";
import type { Route } from "./route.ts";

/** Finds the template of a path; unknown paths are all `other`. */
export function routeNamer(routes: readonly Route[]): RouteNamer {
  const exact = new Set<string>();
  const patterns: { readonly pattern: RegExp; readonly path: string }[] = [];
  for (const { path } of routes) {
    if (!path.includes("{")) exact.add(path);
    else
      patterns.push({
        path,
        pattern: new RegExp(`^${path.replaceAll("{rest}", ".*").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
      });
  }
  return (_, path) =>
    exact.has(path) ? path : (patterns.find(({ pattern }) => pattern.test(path))?.path ?? "other");
}
