/**
 * Validation rules of containers that Talos runs itself (`ContainerConfig`, Talos 1.14), and of their order.
 */
import { at, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "../config-document.ts";
import { documentsOfKind, objects, textOf, texts } from "../machine-config-facts.ts";
import { eachOf, needs, type Finding, type Rule } from "./rule.ts";

const nameMax = 63;
const mountKinds = ["userVolume", "tmpfs", "hostPath"] as const;
const mountOptions = new Set(["ro", "rw", "noexec", "nosuid", "nodev", "noatime", "rbind", "rshared"]);
const networkConditions = new Set(["addresses", "connectivity", "hostname", "etcfiles"]);

const isAbsolute = (value: unknown): boolean => textOf(value).startsWith("/");

function mountErrors(mount: Readonly<Record<string, unknown>>): Finding[] {
  const kinds = mountKinds.filter((kind) => isObject(mount[kind]));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) return [`exactly one of ${mountKinds.join(", ")} is required`];
  const options = texts(at(mount, kind, "options"));
  return [
    kind === "userVolume" && textOf(at(mount, kind, "name")) === "" && "userVolume.name is required",
    kind === "hostPath" &&
      !isAbsolute(at(mount, kind, "source")) &&
      "hostPath.source must be an absolute path",
    !isAbsolute(at(mount, kind, "destination")) && `${kind}.destination must be an absolute path`,
    options.some((option) => !mountOptions.has(option)) && `${kind}.options: an entry is not supported`,
    options.includes("ro") && options.includes("rw") && `${kind}.options: ro and rw exclude each other`,
  ];
}

function destinationsOf(document: ConfigDocument): string[] {
  return objects(document["mounts"]).map((mount) => {
    const kind = mountKinds.find((candidate) => isObject(mount[candidate]));
    return kind === undefined ? "" : textOf(at(mount, kind, "destination"));
  });
}

function capabilityErrors(document: ConfigDocument): Finding[] {
  const add = texts(at(document, "security", "capabilities", "add"));
  const drop = texts(at(document, "security", "capabilities", "drop"));
  const isName = (name: string): boolean => /^(?!CAP_)[A-Z_]+$/.test(name);
  return [
    add.includes("ALL") && "security.capabilities.add does not take ALL: use profile privileged",
    !add.every(isName) && "security.capabilities.add: an entry is no capability",
    !drop.every(isName) && "security.capabilities.drop: an entry is no capability",
    add.some((name) => drop.includes(name)) && "security.capabilities: one is both added and dropped",
  ];
}

function limitErrors(document: ConfigDocument): Finding[] {
  const cpu = textOf(at(document, "resources", "limits", "cpu"));
  const memory = textOf(at(document, "resources", "limits", "memory"));
  return [
    cpu !== "" && !/^(?!0+m$)\d{1,19}m$/.test(cpu) && "resources.limits.cpu must be in millicores, as 1500m",
    memory !== "" &&
      !/^\d+(?:\.\d+)?\s*(?:[kmgtpe]i?b?|b)?$/i.test(memory) &&
      "resources.limits.memory must be a size such as 512MiB",
  ];
}

/** Rules of one container. */
export const containerRule: Rule = (document) => {
  const name = textOf(document["name"]);
  const destinations = destinationsOf(document).filter((destination) => destination !== "");
  const dependsOn = texts(at(document, "dependsOn", "containers"));
  return [
    name !== "" && !/^[a-z0-9-]+$/.test(name) && "name may hold lower case letters, digits and hyphens only",
    name.length > nameMax && `name must have at most ${nameMax} characters`,
    needs(document, "image"),
    texts(document["environment"]).some((entry) => !entry.includes("=")) &&
      "an entry of environment is not KEY=value",
    ...eachOf(document, "mounts", mountErrors),
    new Set(destinations).size !== destinations.length && "mounts: two have the same destination",
    !["", "restricted", "privileged"].includes(textOf(at(document, "security", "profile"))) &&
      "security.profile must be restricted or privileged",
    ...capabilityErrors(document),
    !["", "none", "host"].includes(textOf(at(document, "network", "mode"))) &&
      "network.mode must be none or host",
    ...limitErrors(document),
    !texts(at(document, "dependsOn", "paths")).every(isAbsolute) &&
      "dependsOn.paths: an entry is no absolute path",
    texts(at(document, "dependsOn", "networks")).some((condition) => !networkConditions.has(condition)) &&
      "dependsOn.networks: an entry is not supported",
    dependsOn.includes("") && "dependsOn.containers: an entry is empty",
    dependsOn.includes(name) && "dependsOn.containers: a container cannot wait for itself",
  ];
};

/** Containers wait for containers that there are, and never in a circle. */
export function containerOrderErrors(documents: readonly ConfigDocument[]): string[] {
  const waits = new Map(
    documentsOfKind(documents, "ContainerConfig").map((document) => [
      textOf(document["name"]),
      texts(at(document, "dependsOn", "containers")),
    ]),
  );
  const errors: string[] = [];
  for (const [name, others] of waits) {
    for (const other of others)
      if (!waits.has(other))
        errors.push(`ContainerConfig ${name}: dependsOn names ${other}, which is not there`);
  }
  // Whoever waits for nothing that is left can start; what can never start is in a circle or behind one.
  const left = new Map(waits);
  for (let started = true; started;) {
    started = false;
    for (const [name, others] of left) {
      if (others.some((other) => left.has(other))) continue;
      left.delete(name);
      started = true;
    }
  }
  if (left.size > 0) errors.push(`ContainerConfig: ${[...left.keys()].join(", ")} wait for each other`);
  return errors;
}
