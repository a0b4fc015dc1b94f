/**
 * The kinds of `kontinuum.sh`, and the manifests that install them.
 */
import type { CrdManifest } from "@kontinuum/kapi";
import { addonKind } from "./addon.kind.ts";
import { instanceKind } from "./instance.kind.ts";
import { instancePoolKind } from "./instancepool.kind.ts";
import { convertKontinuums } from "./kontinuum.conversion.ts";
import { kontinuumKind } from "./kontinuum.kind.ts";
import { talosClusterKind } from "./taloscluster.kind.ts";
import { zoneKind } from "./zone.kind.ts";

export * from "./addon.kind.ts";
export * from "./instance.kind.ts";
export * from "./instancepool.kind.ts";
export * from "./kontinuum.kind.ts";
export * from "./taloscluster.kind.ts";
export * from "./zone.kind.ts";
export { group, type Declared } from "./kind.ts";
export * from "./well-known.ts";

/** The definitions, in the order they are installed. */
export const crds: readonly CrdManifest[] = [
  kontinuumKind,
  zoneKind,
  instanceKind,
  instancePoolKind,
  talosClusterKind,
  addonKind,
].map((kind) => kind.crd);

/** Conversions between versions, by the name of the definition. */
export const converters = { "kontinuums.kontinuum.sh": convertKontinuums };
