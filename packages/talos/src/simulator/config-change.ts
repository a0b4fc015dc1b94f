/**
 * Whether a changed configuration can take effect while the node runs.
 *
 * Talos lists the sections of the main document that can; every other difference in it needs a reboot.
 * Other documents always can.
 */
import { isDeepStrictEqual } from "node:util";
import { at, isObject } from "@kontinuum/std";
import type { NodeConfig } from "./node-config.ts";
import { mainDocumentOf } from "../config/machine-config-facts.ts";

const immediateMachine = new Set([
  "ca",
  "acceptedCAs",
  "time",
  "certSANs",
  "install",
  "network",
  "sysfs",
  "sysctls",
  "logging",
  "controlPlane",
  "kubelet",
  "kernel",
  "registries",
  "pods",
  "seccompProfiles",
  "nodeLabels",
  "nodeAnnotations",
  "nodeTaints",
]);

const immediateFeatures = new Set([
  "kubernetesTalosAPIAccess",
  "kubePrism",
  "hostDNS",
  "imageCache",
  "nodeAddressSortAlgorithm",
]);

/** Paths of the main document that changed and need a reboot. */
export function changesNeedingReboot(before: NodeConfig, after: NodeConfig): string[] {
  const old = mainDocumentOf(before.documents);
  const next = mainDocumentOf(after.documents);
  const top = differences(old, next).filter((name) => !["debug", "cluster", "machine"].includes(name));
  const machine = differences(at(old, "machine"), at(next, "machine")).filter(
    (name) => name !== "features" && !immediateMachine.has(name),
  );
  const features = differences(at(old, "machine", "features"), at(next, "machine", "features")).filter(
    (name) => !immediateFeatures.has(name),
  );
  return [
    ...top,
    ...machine.map((name) => `machine.${name}`),
    ...features.map((name) => `machine.features.${name}`),
  ];
}

function differences(before: unknown, after: unknown): string[] {
  const old = isObject(before) ? before : {};
  const next = isObject(after) ? after : {};
  const names = new Set([...Object.keys(old), ...Object.keys(next)]);
  return [...names].filter((name) => !isDeepStrictEqual(old[name], next[name]));
}
