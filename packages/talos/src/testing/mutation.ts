/**
 * For tests: a valid configuration with one thing changed, described so that the same change can be made anywhere.
 */
import { isObject } from "@kontinuum/std";
import { stringify } from "yaml";
import { parseYamlStream } from "../config/config-document.ts";
import { generateConfigDocuments } from "../config/generate-machine-config.ts";
import { parseSecretsBundle } from "../pki/secrets-bundle.ts";
import { official } from "./official.ts";

/** One change. */
export interface Mutation {
  /** Talos 1.`minor` judges it. */
  readonly minor: number;
  readonly mode: "metal" | "cloud" | "container";
  /** `controlplane` or `worker` for a generated configuration, or an official file. */
  readonly base: string;
  /** Which document. */
  readonly document: number;
  /** Where in it. */
  readonly path: readonly (string | number)[];
  readonly change: "set" | "delete" | "repeat" | "unknown";
  /** What is set. */
  readonly value?: unknown;
}

const bundle = parseSecretsBundle(official("machine-config/stability/secrets.yaml"));

const generated = new Map<string, readonly unknown[]>();

/** The documents of a generated configuration. */
export function baseConfig(type: "controlplane" | "worker", minor: number): unknown[] {
  const key = `${type} ${minor}`;
  const documents =
    generated.get(key) ??
    generateConfigDocuments({
      type,
      clusterName: "demo",
      endpoint: "https://192.0.2.10:6443",
      kubernetesVersion: "1.34.0",
      talosVersion: `v1.${minor}.0`,
      bundle,
      hostname: "node-1",
      install: { disk: "/dev/sda" },
    });
  generated.set(key, documents);
  return structuredClone([...documents]);
}

/** The changed configuration as text. Fails with a plain error when the change cannot be made there. */
export function mutated({ minor, base, document, path, change, value }: Mutation): string {
  const documents =
    base === "controlplane" || base === "worker"
      ? baseConfig(base, minor)
      : parseYamlStream(official(base), base);
  const parents = path.slice(0, -1).reduce<unknown>((at, key) => childOf(at, key), documents[document]);
  const key = path.at(-1) ?? "";
  switch (change) {
    case "set":
      setChild(parents, key, value);
      break;
    case "delete":
      if (Array.isArray(parents)) parents.splice(Number(key), 1);
      else if (isObject(parents)) Reflect.deleteProperty(parents, key);
      else throw new Error("nothing to delete from");
      break;
    case "repeat":
      if (!Array.isArray(parents)) throw new Error("only an entry of a list can be repeated");
      parents.push(structuredClone(parents[Number(key)]));
      break;
    case "unknown":
      if (!isObject(childOf(parents, key))) throw new Error("only a mapping takes a key");
      setChild(childOf(parents, key), "zzz", 1);
      break;
  }
  return documents.map((entry) => stringify(entry, { lineWidth: 0, version: "1.1" })).join("---\n");
}

function childOf(parent: unknown, key: string | number): unknown {
  if (Array.isArray(parent)) return parent[Number(key)];
  return isObject(parent) ? parent[String(key)] : undefined;
}

function setChild(parent: unknown, key: string | number, value: unknown): void {
  if (Array.isArray(parent)) parent[Number(key)] = value;
  else if (isObject(parent)) Object.assign(parent, { [key]: value });
  else throw new Error("nothing to set in");
}
