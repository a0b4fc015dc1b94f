/**
 * Keeping objects in a cluster as they should be, writing only when they are not.
 *
 * What is wanted is a part of what is there: fields the cluster defaulted or others own are not looked at.
 * Writes are server-side applies as the field manager `kontinuum`.
 */
import { isCoded, isObject, type JsonObject } from "@kontinuum/std";
import type { Downstream } from "./downstream.ts";
import type { RestPaths } from "./rest-paths.ts";

/** Who this hub is among the managers of an object's fields. */
export const fieldManager = "kontinuum";

/** Makes the object as wanted. True when something was written. */
export async function ensureApplied(
  { client }: Downstream,
  paths: RestPaths,
  object: JsonObject,
  namespace: string,
  signal: AbortSignal,
): Promise<boolean> {
  const path = await paths.pathOf(object, namespace, signal);
  const present = await client.request("GET", path, { signal }).catch((error: unknown) => {
    if (isCoded(error, "not_found")) return undefined;
    throw error;
  });
  if (present !== undefined && covers(present, object)) return false;
  const query = `fieldManager=${fieldManager}&force=true`;
  await client.request("PATCH", `${path}?${query}`, { signal }, object, "application/apply-patch+yaml");
  return true;
}

/** Removes the object. An absent one, or one of a kind the cluster does not know, is no failure. */
export async function ensureAbsent(
  { client }: Downstream,
  paths: RestPaths,
  object: JsonObject,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const path = await paths.pathOf(object, namespace, signal);
    const options = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background" };
    await client.request("DELETE", path, { signal }, options);
  } catch (error) {
    if (!isCoded(error, "not_found")) throw error;
  }
}

/** Whether everything `wanted` says is true of `present`. Lists must have the same length. */
export function covers(present: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(present) || present.length !== wanted.length) return false;
    return wanted.every((item, index) => covers(present[index], item));
  }
  if (isObject(wanted)) {
    return isObject(present) && Object.entries(wanted).every(([key, item]) => covers(present[key], item));
  }
  // Kubernetes drops empty strings of some optional fields.
  return present === wanted || (wanted === "" && present === undefined);
}
