/**
 * Merging one kubeconfig into another, entry by entry. Pure but for the questions it asks.
 *
 * New names are added, equal ones left alone, different ones are a question. Everything the import does not
 * name stays as it is, extensions and preferences included.
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { isDeepStrictEqual } from "node:util";

/** Asks a yes-or-no question; no is the default. */
export type Ask = (question: string) => Promise<boolean>;

const lists = [
  ["clusters", "cluster"],
  ["users", "user"],
  ["contexts", "context"],
] as const;

/** `present` with the entries of `imported`. Neither is changed. */
export async function mergeKubeconfig(
  present: JsonObject,
  imported: JsonObject,
  ask: Ask,
): Promise<JsonObject> {
  const merged: JsonObject = { apiVersion: "v1", kind: "Config", ...present };
  for (const [list, kind] of lists) {
    const entries = entriesOf(present, list);
    for (const entry of entriesOf(imported, list)) {
      const name = stringAt(entry, "name") ?? "";
      const index = entries.findIndex((one) => stringAt(one, "name") === name);
      if (index < 0) entries.push(entry);
      else if (!isDeepStrictEqual(at(entries[index], kind), at(entry, kind))) {
        if (await ask(`The ${kind} ${JSON.stringify(name)} exists and differs. Overwrite it?`))
          entries[index] = entry;
      }
    }
    merged[list] = entries;
  }
  const wanted = stringAt(imported, "current-context") ?? "";
  const current = stringAt(present, "current-context") ?? "";
  if (wanted !== "" && wanted !== current) {
    if (
      current === "" ||
      (await ask(`Switch the current context from ${JSON.stringify(current)} to ${JSON.stringify(wanted)}?`))
    ) {
      merged["current-context"] = wanted;
    }
  }
  return merged;
}

function entriesOf(config: JsonObject, list: string): JsonObject[] {
  const entries = config[list];
  return Array.isArray(entries) ? entries.filter(isObject) : [];
}
