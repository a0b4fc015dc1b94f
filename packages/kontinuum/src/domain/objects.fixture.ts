/**
 * Objects for the tests of the decisions: the least that is valid, with what a test is about on top.
 */
import type { Condition } from "@kontinuum/controller";
import { isObject } from "@kontinuum/std";
import {
  addonKind,
  instanceKind,
  instancePoolKind,
  kontinuumKind,
  systemNamespace,
  talosClusterKind,
  zoneKind,
  type Addon,
  type Instance,
  type InstancePool,
  type Kontinuum,
  type TalosCluster,
  type Zone,
} from "../kinds/index.ts";

type Extra = { readonly [key: string]: unknown };

function raw(kind: string, name: string, spec: Extra, extra: Extra): Extra {
  const metadata = isObject(extra["metadata"]) ? extra["metadata"] : {};
  return {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind,
    spec,
    ...extra,
    metadata: { name, namespace: systemNamespace, uid: `uid-${name}`, ...metadata },
  };
}

/** An Instance. */
export const instance = (
  name: string,
  extra: Extra = {},
  spec: Extra = { interfaces: ["10.0.0.1"] },
): Instance => instanceKind.resource.parse(raw("Instance", name, spec, extra));

/** An InstancePool. */
export const pool = (name: string, replicas: number, selector: Extra = {}, extra: Extra = {}): InstancePool =>
  instancePoolKind.resource.parse(raw("InstancePool", name, { selector, replicas }, extra));

/** A TalosCluster with pool `cp` and worker pools. */
export const cluster = (name: string, workers: readonly string[] = [], extra: Extra = {}): TalosCluster =>
  talosClusterKind.resource.parse(
    raw(
      "TalosCluster",
      name,
      {
        controlPlane: { poolRef: { name: "cp" } },
        workers: workers.map((one) => ({ name: one, poolRef: { name: one } })),
      },
      extra,
    ),
  );

/** An Addon of cluster `c`. */
export const addon = (name: string, spec: Extra = {}, extra: Extra = {}): Addon =>
  addonKind.resource.parse(raw("Addon", name, { talosClusterRef: { name: "c" }, ...spec }, extra));

/** A Zone. */
export const zone = (region: string, name: string, spec: Extra = {}, extra: Extra = {}): Zone =>
  zoneKind.resource.parse(raw("Zone", `${region}-${name}`, { region, zone: name, ...spec }, extra));

/** A Kontinuum. */
export const kontinuum = (name: string, spec: Extra = {}, extra: Extra = {}): Kontinuum =>
  kontinuumKind.resource.parse(raw("Kontinuum", name, spec, extra));

/** A condition. */
export const condition = (type: string, status: "True" | "False", reason = "Because"): Condition => ({
  type,
  status,
  reason,
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

/** `status` with conditions that are True. */
export const holding = (...types: readonly string[]): Extra => ({
  status: { conditions: types.map((type) => condition(type, "True")) },
});
