/**
 * Writing a workload's status only when it says something new.
 */
import { isDeepStrictEqual } from "node:util";
import type { CachedClient, Resource } from "@kontinuum/controller";
import type { JsonObject } from "@kontinuum/std";
import type { Workload } from "./kinds.ts";

/** Merges `status` into the workload's and writes it if that changed anything. */
export async function reportStatus(
  client: CachedClient,
  resource: Resource<Workload>,
  workload: Workload,
  status: JsonObject,
): Promise<void> {
  const next = { ...workload.status, observedGeneration: workload.metadata.generation ?? 1, ...status };
  if (isDeepStrictEqual(next, workload.status)) return;
  await client.updateStatus(resource, { ...workload, status: next });
}
