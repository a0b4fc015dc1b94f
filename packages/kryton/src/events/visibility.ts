/**
 * Which events a caller may see, decided when an event is sent and not when a stream was opened.
 *
 * Callers with the same projects form a class: a frame is put together once per class, not once per
 * subscriber.
 */
import type { CloudEvent } from "../model/event.ts";
import { hasProject, type Principal } from "../model/principal.ts";

/** True when `principal` may see `event`: events of no project are for everyone. */
export function sees(principal: Principal, event: CloudEvent): boolean {
  const project = event.data?.["project"];
  return typeof project !== "string" || hasProject(principal, project);
}

/** Callers with equal classes see the same events. */
export function visibilityClass(principal: Principal): string {
  return principal.projects.includes("*") ? "*" : [...principal.projects].sort().join(",");
}
