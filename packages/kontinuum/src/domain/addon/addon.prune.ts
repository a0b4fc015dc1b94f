/**
 * Removing what an applied chart no longer holds: a ConfigMap beside it lists what was applied, and whatever left the list
 * is deleted.
 *
 * Definitions and namespaces stay: with them everything made of them would go. So does an object that another manager
 * took over since (its field manager is not ours any more).
 */
import type { JsonObject } from "@kontinuum/std";
import { at, isCoded, isObject, stringAt } from "@kontinuum/std";
import { labels } from "../../kinds/index.ts";
import { ensureAbsent, fieldManager } from "../downstream/apply.ts";
import type { Downstream } from "../downstream/downstream.ts";
import type { RestPaths } from "../downstream/rest-paths.ts";

/** One applied object. */
interface Applied extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const kept = new Set(["CustomResourceDefinition", "Namespace"]);
const listKey = "objects";

/** Name of the ConfigMap with the list. */
export const inventoryName = (release: string): string => `kontinuum-addon-${release}`;

/** Deletes what the former list has and `documents` have not, then writes the new list. Call it when all are applied. */
export async function pruneApplied(
  downstream: Downstream,
  paths: RestPaths,
  release: string,
  documents: readonly JsonObject[],
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const place = `/api/v1/namespaces/${namespace}/configmaps/${inventoryName(release)}`;
  const present = await downstream.client.request("GET", place, { signal }).catch((error: unknown) => {
    if (isCoded(error, "not_found")) return undefined;
    throw error;
  });
  const wanted = documents.map((one) => appliedOf(one, namespace));
  const known = new Set(wanted.map(keyOf));
  const gone = readList(stringAt(present, "data", listKey)).filter((one) => !known.has(keyOf(one)));
  for (const object of gone) {
    if (kept.has(object.kind) || !(await isOurs(downstream, paths, object, namespace, signal))) continue;
    await ensureAbsent(downstream, paths, object, namespace, signal);
  }
  const list = JSON.stringify(wanted);
  if (stringAt(present, "data", listKey) === list) return;
  const inventory = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: inventoryName(release), namespace, labels: { [labels.managedBy]: "addon" } },
    data: { [listKey]: list },
  };
  const query = `fieldManager=${fieldManager}&force=true`;
  await downstream.client.request(
    "PATCH",
    `${place}?${query}`,
    { signal },
    inventory,
    "application/apply-patch+yaml",
  );
}

function appliedOf(document: JsonObject, namespace: string): Applied {
  return {
    apiVersion: stringAt(document, "apiVersion") ?? "",
    kind: stringAt(document, "kind") ?? "",
    metadata: {
      name: stringAt(document, "metadata", "name") ?? "",
      namespace: stringAt(document, "metadata", "namespace") ?? namespace,
    },
  };
}

/** A newer version of the same group is the same object. */
function keyOf({ apiVersion, kind, metadata }: Applied): string {
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  return JSON.stringify([group, kind, metadata.namespace, metadata.name]);
}

async function isOurs(
  { client }: Downstream,
  paths: RestPaths,
  object: Applied,
  namespace: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const present = await client.request("GET", await paths.pathOf(object, namespace, signal), { signal });
    const managers = at(present, "metadata", "managedFields");
    return Array.isArray(managers) && managers.some((entry) => stringAt(entry, "manager") === fieldManager);
  } catch (error) {
    if (isCoded(error, "not_found")) return false;
    throw error;
  }
}

/** A list that can't be read is none: then nothing is deleted, and it is written anew. */
function readList(text: string | undefined): readonly Applied[] {
  let value: unknown;
  try {
    value = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  return (Array.isArray(value) ? value : []).flatMap((entry: unknown) => {
    const complete =
      ["apiVersion", "kind"].every((field) => stringAt(entry, field)) && stringAt(entry, "metadata", "name");
    return isObject(entry) && complete
      ? [appliedOf(entry, stringAt(entry, "metadata", "namespace") ?? "")]
      : [];
  });
}
