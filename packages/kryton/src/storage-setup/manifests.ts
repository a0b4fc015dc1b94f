/**
 * Manifests of storage systems, from a folder that the operator filled: nothing is ever downloaded.
 *
 * The folder has one subfolder per part (`snapshot-controller`, `longhorn`, `rook-ceph`), each with the YAML files of
 * its maker's release. What is read is bounded, and its digest goes into the set-up's log, so that it can be told
 * later what was applied.
 */
import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { at, CodedError, messageOf, stringAt } from "@kontinuum/std";
import { isKubeObject, type KubeObject } from "../cluster/kubernetes.ts";

/** Parts of the folder. */
export type Part = "snapshot-controller" | "longhorn" | "rook-ceph";

const maxFiles = 100;
const maxFileBytes = 8 * 1024 * 1024;
const maxBytes = 32 * 1024 * 1024;
const maxObjects = 2_000;

/** The objects of a part. */
export interface Manifests {
  /** Kinds first that others need: namespaces and definitions, then accounts and rights, then the rest. */
  readonly objects: readonly KubeObject[];
  /** SHA-256 over all files, in the order of their names. */
  readonly digest: string;
}

const firstKinds = ["Namespace", "CustomResourceDefinition"];
const earlyKinds = [
  "PriorityClass",
  "ServiceAccount",
  "ClusterRole",
  "Role",
  "ClusterRoleBinding",
  "RoleBinding",
  "ConfigMap",
  "Secret",
];

/** Whether there is anything to read for a part. */
export async function hasManifests(folder: string, part: Part): Promise<boolean> {
  return (await filesOf(join(folder, part))).length > 0;
}

/** Reads a part. Fails with `failed_precondition`, naming folder or file and the remedy. */
export async function readManifests(folder: string, part: Part): Promise<Manifests> {
  const directory = join(folder, part);
  const files = await filesOf(directory);
  if (files.length === 0) {
    throw refuse(`there are no manifests in ${directory}; put the YAML files of ${part}'s release there`);
  }
  if (files.length > maxFiles) throw refuse(`${directory} has more than ${maxFiles} files`);
  const hash = createHash("sha256");
  const objects: KubeObject[] = [];
  let size = 0;
  for (const file of files) {
    const text = await readOne(join(directory, file));
    size += text.length;
    if (size > maxBytes) throw refuse(`${directory} holds more than ${maxBytes} bytes`);
    hash.update(text);
    objects.push(...(await parse(text, join(directory, file))));
    if (objects.length > maxObjects) throw refuse(`${directory} holds more than ${maxObjects} objects`);
  }
  if (objects.length === 0) throw refuse(`the files in ${directory} hold no objects`);
  const ranked = objects.map((object, index) => ({ object, rank: rank(object.kind), index }));
  ranked.sort((a, b) => a.rank - b.rank || a.index - b.index);
  return { objects: ranked.map(({ object }) => object), digest: hash.digest("hex") };
}

async function filesOf(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => /\.ya?ml$/.test(name)).sort();
}

async function readOne(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > maxFileBytes) throw refuse(`${file} is larger than ${maxFileBytes} bytes`);
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw refuse(`${file} cannot be read: ${messageOf(error)}`);
  }
}

async function parse(text: string, file: string): Promise<KubeObject[]> {
  const { parseAllDocuments } = await import("yaml");
  const found: KubeObject[] = [];
  for (const document of parseAllDocuments(text, { logLevel: "silent" })) {
    if (!("contents" in document) || document.errors.length > 0) throw refuse(`${file} is not valid YAML`);
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: 100 });
    } catch {
      throw refuse(`${file} uses too many YAML aliases`);
    }
    // A release's folder often has a kustomization beside its objects: it is for a tool, not for the cluster.
    if (value === null || value === undefined || stringAt(value, "kind") === "Kustomization") continue;
    const items = at(value, "kind") === "List" ? at(value, "items") : [value];
    for (const item of Array.isArray(items) ? items : []) {
      if (!isKubeObject(item))
        throw refuse(`${file} holds something without apiVersion, kind and metadata.name`);
      found.push(item);
    }
  }
  return found;
}

function rank(kind: string): number {
  const first = firstKinds.indexOf(kind);
  if (first >= 0) return first;
  return earlyKinds.includes(kind) ? firstKinds.length : firstKinds.length + 1;
}

function refuse(message: string): CodedError {
  return new CodedError("failed_precondition", message);
}
