/**
 * The gate after installation: every definition of the chart must be established and served, or what
 * builds on it would fail.
 */
import { customResourceDefinitions, isConditionTrue } from "@kontinuum/controller";
import { at, stringAt, type JsonObject } from "@kontinuum/std";
import type { Downstream } from "../downstream/downstream.ts";
import { RestPaths } from "../downstream/rest-paths.ts";
import { isDefinition } from "./chart-documents.ts";

/** What is missing, as a sentence; `undefined` when all definitions of `documents` are there. */
export async function missingDefinition(
  { client }: Downstream,
  documents: readonly JsonObject[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const paths = new RestPaths(client);
  for (const document of documents.filter(isDefinition)) {
    const name = stringAt(document, "metadata", "name") ?? "";
    const found = await client.find(customResourceDefinitions, { name }, { signal });
    if (!found) return `definition ${name} does not exist`;
    if (!isConditionTrue(found.status?.conditions, "Established"))
      return `definition ${name} is not established`;
    for (const version of servedVersions(document)) {
      if (!(await paths.serves(`${found.spec.group}/${version}`, found.spec.names.kind, signal))) {
        return `version ${version} of definition ${name} is not served yet`;
      }
    }
  }
  return undefined;
}

/** Versions of a definition that it serves; the others need not be there. */
export function servedVersions(definition: JsonObject): readonly string[] {
  const versions = at(definition, "spec", "versions");
  if (!Array.isArray(versions)) return [];
  return versions
    .filter((version) => at(version, "served") === true)
    .map((version) => stringAt(version, "name") ?? "");
}
