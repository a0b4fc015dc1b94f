/**
 * The order of installation: lower priorities first, equal ones together. Pure.
 */
import { isConditionTrue } from "@kontinuum/controller";
import type { Addon } from "../../kinds/index.ts";
import { isEnabled, priorityOf, releaseOf } from "./addon.resolve.ts";

/** Releases that must be ready before `addon` may start; empty when it is its turn. */
export function blockedBy(addon: Addon, all: readonly Addon[]): readonly string[] {
  const own = priorityOf(addon);
  return all
    .filter(
      (other) =>
        other.metadata.uid !== addon.metadata.uid &&
        other.spec.talosClusterRef.name === addon.spec.talosClusterRef.name &&
        isEnabled(other) &&
        priorityOf(other) < own &&
        !isConditionTrue(other.status?.conditions, "Ready"),
    )
    .map(releaseOf)
    .sort();
}
