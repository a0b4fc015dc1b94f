/**
 * The scale subresource: `autoscaling/v1 Scale` as a view of its parent.
 */
import { at, isObject, type JsonObject } from "@kontinuum/std";
import type { SubresourceDefinition, TableColumn } from "../resource.ts";
import { age } from "../kinds/columns/format.ts";
import { plainText } from "../schema/json-value.ts";
import { metadataOf, metaText } from "./metadata.ts";

/** Where a kind keeps what Scale shows. */
export type ScalePaths = NonNullable<SubresourceDefinition["scale"]>;

/** How a Scale is printed. */
export const scaleColumns: readonly TableColumn[] = [
  column("Name", "string", (object) => metaText(object, "name"), "name"),
  column("Desired", "integer", (object) => at(object, "spec", "replicas") ?? 0),
  column("Available", "integer", (object) => at(object, "status", "replicas") ?? 0),
  column("Age", "string", (object, now) => age(metadataOf(object)["creationTimestamp"], now)),
];

function column(
  name: string,
  type: TableColumn["type"],
  cell: TableColumn["cell"],
  format = "",
): TableColumn {
  return { name, type, format, description: `${name} of the scaled object.`, priority: 0, cell };
}

/** The Scale of an object. */
export function scaleOf(parent: JsonObject, paths: ScalePaths): JsonObject {
  const metadata = metadataOf(parent);
  const own: JsonObject = {};
  for (const field of ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]) {
    if (metadata[field] !== undefined) own[field] = metadata[field];
  }
  const replicas = at(parent, ...paths.specReplicas.split("."));
  const current = at(parent, ...paths.statusReplicas.split("."));
  const selector = paths.selector === undefined ? "" : selectorText(at(parent, ...paths.selector.split(".")));
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: own,
    spec: replicas === undefined || replicas === null ? {} : { replicas },
    status: { replicas: current ?? 0, ...(selector === "" ? {} : { selector }) },
  };
}

/** A selector as text: a string as it is, a label selector or a map of labels written out. */
function selectorText(value: unknown): string {
  if (typeof value === "string") return value;
  if (!isObject(value)) return "";
  const structured = isObject(value["matchLabels"]) || Array.isArray(value["matchExpressions"]);
  const labels = structured ? value["matchLabels"] : value;
  const terms: string[] = [];
  if (isObject(labels))
    for (const key of Object.keys(labels).sort()) terms.push(`${key}=${plainText(labels[key])}`);
  const expressions = structured && Array.isArray(value["matchExpressions"]) ? value["matchExpressions"] : [];
  for (const expression of expressions) {
    if (!isObject(expression)) continue;
    const key = plainText(expression["key"]);
    const values = Array.isArray(expression["values"]) ? expression["values"].map(plainText).join(",") : "";
    const forms: Record<string, string> = {
      In: `${key} in (${values})`,
      NotIn: `${key} notin (${values})`,
      Exists: key,
      DoesNotExist: `!${key}`,
    };
    const form = forms[plainText(expression["operator"])];
    if (form) terms.push(form);
  }
  return terms.join(",");
}

/** Sets a dotted path, making maps on the way. */
export function setPath(object: JsonObject, path: string, value: unknown): void {
  const steps = path.split(".");
  const last = steps.pop() ?? "";
  let current = object;
  for (const step of steps) {
    const next = current[step];
    if (isObject(next)) current = next;
    else {
      const made: JsonObject = {};
      current[step] = made;
      current = made;
    }
  }
  current[last] = value;
}
