/**
 * Objects every cluster has: made at start, left alone when they exist.
 */
import type { Transport } from "@kontinuum/controller";
import type { ResourceSet } from "../registry/resource-set.ts";
import { call, failedWith } from "./call.ts";

const namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];

/** Ensures the standard namespaces. */
export async function bootstrapNamespaces(transport: Transport, resources: ResourceSet): Promise<void> {
  if (!resources.get("", "v1", "namespaces")) return;
  for (const name of namespaces) {
    await ensure(transport, "/api/v1/namespaces", {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name },
    });
  }
}

/** Creates an object unless its name is taken. */
export async function ensure(transport: Transport, path: string, object: unknown): Promise<void> {
  try {
    await call(transport, "POST", path, object);
  } catch (error) {
    if (!failedWith(error, 409)) throw error;
  }
}
