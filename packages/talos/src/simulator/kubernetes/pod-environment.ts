/**
 * What a container of a pod sees: its environment and its mounted volumes, made of the API's objects.
 *
 * A config map or secret that is missing and not optional is a reason to wait, told as a
 * {@link MissingReference}. Files are written with mode 0600 below the pod's private folder; names come from the
 * API and are checked again, because they become paths.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { configMaps, secrets, type Client } from "@kontinuum/controller";
import { at, isObject, stringAt } from "@kontinuum/std";
import type { Container, Pod } from "./kinds.ts";

/** Something the pod refers to is not there (yet). */
export class MissingReference extends Error {}

/** Addresses only the kubelet knows. */
export interface PodPlacement {
  readonly podIP: string;
  readonly hostIP: string;
  readonly nodeName: string;
}

type Bytes = Readonly<Record<string, Buffer>>;

/** Resolves a container's environment. */
export async function containerEnvironment(
  client: Client,
  pod: Pod,
  container: Container,
  placement: PodPlacement,
): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const source of container.envFrom ?? []) {
    const prefix = stringAt(source, "prefix") ?? "";
    const data = await referencedData(client, pod, at(source, "configMapRef"), at(source, "secretRef"));
    for (const [name, bytes] of Object.entries(data)) env[prefix + name] = bytes.toString("utf8");
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (valueFrom === undefined) env[name] = expand(value ?? "", env);
    else {
      const found = await variable(client, pod, valueFrom, placement);
      if (found !== undefined) env[name] = found;
    }
  }
  return env;
}

/** `$(NAME)` of a variable that is defined before; `$$` escapes. */
function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)/g, (whole, name: string | undefined) =>
    whole === "$$" ? "$" : name !== undefined && Object.hasOwn(env, name) ? (env[name] ?? "") : whole,
  );
}

async function variable(
  client: Client,
  pod: Pod,
  from: unknown,
  placement: PodPlacement,
): Promise<string | undefined> {
  const field = stringAt(from, "fieldRef", "fieldPath");
  if (field !== undefined) return fieldValue(pod, field, placement);
  const configMap = at(from, "configMapKeyRef");
  const secret = at(from, "secretKeyRef");
  const reference = configMap ?? secret;
  if (reference === undefined) return undefined;
  const data = await referencedData(client, pod, configMap, secret);
  const key = stringAt(reference, "key") ?? "";
  const found = Object.hasOwn(data, key) ? data[key] : undefined;
  if (found === undefined && at(reference, "optional") !== true) {
    throw new MissingReference(
      `couldn't find key ${key} in ${configMap ? "ConfigMap" : "Secret"} ${pod.metadata.namespace}/${stringAt(reference, "name")}`,
    );
  }
  return found?.toString("utf8");
}

function fieldValue(pod: Pod, field: string, placement: PodPlacement): string | undefined {
  const entry = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(field);
  if (entry) return stringAt(pod.metadata, entry[1] ?? "", entry[2] ?? "") ?? "";
  switch (field) {
    case "spec.nodeName":
      return placement.nodeName;
    case "status.podIP":
    case "status.podIPs":
      return placement.podIP;
    case "status.hostIP":
    case "status.hostIPs":
      return placement.hostIP;
    default:
      return stringAt(pod, ...field.split("."));
  }
}

/** Data of the config map or secret that one of two references names; empty when optional and missing. */
async function referencedData(client: Client, pod: Pod, configMap: unknown, secret: unknown): Promise<Bytes> {
  const reference = configMap ?? secret;
  const name = stringAt(reference, "name") ?? stringAt(reference, "secretName") ?? "";
  const ref = { namespace: pod.metadata.namespace, name };
  const data = configMap !== undefined ? await configMapData(client, ref) : await secretData(client, ref);
  if (data) return data;
  if (at(reference, "optional") === true) return {};
  throw new MissingReference(
    `${configMap === undefined ? "secret" : "configmap"} ${JSON.stringify(name)} not found`,
  );
}

async function configMapData(
  client: Client,
  ref: { namespace: string | undefined; name: string },
): Promise<Bytes | undefined> {
  const found = await client.find(configMaps, ref);
  if (!found) return undefined;
  return {
    ...mapValues(found.data ?? {}, (text) => Buffer.from(text, "utf8")),
    ...mapValues(found.binaryData ?? {}, (text) => Buffer.from(text, "base64")),
  };
}

async function secretData(
  client: Client,
  ref: { namespace: string | undefined; name: string },
): Promise<Bytes | undefined> {
  const found = await client.find(secrets, ref);
  return found && mapValues(found.data ?? {}, (text) => Buffer.from(text, "base64"));
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, of: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, of(value)]));
}

/** Fills the pod's volumes below `privateDir`; returns the folder of each volume. */
export async function prepareVolumes(
  client: Client,
  pod: Pod,
  privateDir: string,
): Promise<Record<string, string>> {
  const folders: Record<string, string> = {};
  for (const volume of pod.spec.volumes ?? []) {
    const name = stringAt(volume, "name") ?? "";
    const folder = within(path.join(privateDir, "volumes"), name);
    const files = await volumeFiles(client, pod, volume);
    if (files) await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const [file, bytes] of Object.entries(files ?? {})) {
      const target = within(folder, file);
      await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
      await writeFile(target, bytes, { mode: 0o600 });
    }
    folders[name] = folder;
  }
  return folders;
}

/** Files of a volume, or `undefined` for one that starts empty and keeps what is written to it. */
async function volumeFiles(client: Client, pod: Pod, volume: unknown): Promise<Bytes | undefined> {
  const configMap = at(volume, "configMap");
  const secret = at(volume, "secret");
  if (configMap !== undefined || secret !== undefined) return itemFiles(client, pod, configMap, secret);
  const sources = at(volume, "projected", "sources");
  if (!Array.isArray(sources)) return undefined;
  const files: Record<string, Buffer> = {};
  for (const source of sources.filter(isObject)) {
    const [fromMap, fromSecret] = [source["configMap"], source["secret"]];
    if (fromMap !== undefined || fromSecret !== undefined) {
      Object.assign(files, await itemFiles(client, pod, fromMap, fromSecret));
    }
  }
  return files;
}

async function itemFiles(client: Client, pod: Pod, configMap: unknown, secret: unknown): Promise<Bytes> {
  const data = await referencedData(client, pod, configMap, secret);
  const items = at(configMap ?? secret, "items");
  if (!Array.isArray(items)) return data;
  const chosen = items.flatMap((item) => {
    const [key = "", target = ""] = [stringAt(item, "key"), stringAt(item, "path")];
    const bytes = Object.hasOwn(data, key) ? data[key] : undefined;
    return bytes === undefined ? [] : [[target, bytes] as const];
  });
  return Object.fromEntries(chosen);
}

/** The folder behind each mount path of a container. */
export function containerMounts(
  container: Container,
  folders: Readonly<Record<string, string>>,
): Record<string, string> {
  const mounts: Record<string, string> = {};
  for (const { name, mountPath, subPath } of container.volumeMounts ?? []) {
    const folder = folders[name];
    if (folder !== undefined) mounts[mountPath] = subPath ? within(folder, subPath) : folder;
  }
  return mounts;
}

/** A path below a folder; throws for one that leads out of it. */
function within(folder: string, name: string): string {
  const target = path.resolve(folder, name);
  if (name !== "" && !path.isAbsolute(name) && target.startsWith(path.resolve(folder) + path.sep))
    return target;
  throw new MissingReference(`${JSON.stringify(name)} is not a usable name of a file or volume`);
}
