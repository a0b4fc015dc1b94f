/**
 * The installing step without a release: every object of the chart is applied server-side.
 *
 * Definitions go first and the rest follows in rendered order, because what uses a definition may stand
 * before it in a chart.
 */
import { type JsonObject } from "@kontinuum/std";
import { fieldManager } from "../downstream/apply.ts";
import type { Downstream } from "../downstream/downstream.ts";
import { RestPaths } from "../downstream/rest-paths.ts";
import { ensureNamespace } from "../ensure.ts";
import { pruneApplied } from "./addon.prune.ts";
import { isDefinition } from "./chart-documents.ts";

/**
 * Applies `documents` of `release`; objects without namespace go to `namespace`, which is created when missing. What was
 * applied before and is not among them any more is removed.
 */
export async function applyDocuments(
  downstream: Downstream,
  release: string,
  documents: readonly JsonObject[],
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const { client } = downstream;
  await ensureNamespace(client, namespace);
  const ordered = [...documents.filter(isDefinition), ...documents.filter((object) => !isDefinition(object))];
  const paths = new RestPaths(client);
  for (const object of ordered) {
    const path = await paths.pathOf(object, namespace, signal);
    const query = `fieldManager=${fieldManager}&force=true`;
    await client.request("PATCH", `${path}?${query}`, { signal }, object, "application/apply-patch+yaml");
  }
  await pruneApplied(downstream, paths, release, documents, namespace, signal);
}
