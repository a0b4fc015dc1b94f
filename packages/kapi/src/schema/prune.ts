/**
 * Pruning by a structural schema: removes what the schema does not name and reports its path.
 *
 * Nothing is removed directly under `x-kubernetes-preserve-unknown-fields: true`, but declared children
 * below such a node are pruned by their own schema. Embedded resources keep `apiVersion`, `kind` and the
 * known fields of `metadata`.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { child, indexed } from "./field-error.ts";
import { pruneObjectMeta } from "./object-meta.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Most paths reported for one object; the rest is pruned silently. */
export const maxReportedUnknownFields = 1000;

function report(unknown: string[], path: string): void {
  if (unknown.length < maxReportedUnknownFields) unknown.push(path);
}

function pruneObject(
  object: JsonObject,
  schema: SchemaNode,
  path: string,
  unknown: string[],
  isResource: boolean,
): void {
  const keepAll = schema.preserveUnknown || schema.additionalAllowed === true;
  for (const key of Object.keys(object)) {
    if (isResource) {
      if (key === "metadata") {
        pruneObjectMeta(object[key], child(path, key), unknown);
        continue;
      }
      if (key === "apiVersion" || key === "kind") continue;
    }
    const property = schema.properties.get(key) ?? schema.additional;
    if (property) pruneValue(object[key], property, child(path, key), unknown);
    else if (!keepAll) {
      delete object[key];
      report(unknown, child(path, key));
    }
  }
}

function pruneValue(value: unknown, schema: SchemaNode, path: string, unknown: string[]): void {
  if (Array.isArray(value)) {
    if (!schema.items) {
      // A list where the schema knows no items is a type error that validation names, unless all is kept.
      return;
    }
    for (let i = 0; i < value.length; i++) pruneValue(value[i], schema.items, indexed(path, i), unknown);
  } else if (isObject(value)) pruneObject(value, schema, path, unknown, schema.embedded);
}

/** Prunes a whole resource in place; returns the dotted paths of what was removed. */
export function pruneResource(object: JsonObject, schema: SchemaNode): readonly string[] {
  const unknown: string[] = [];
  pruneObject(object, schema, "", unknown, true);
  return unknown;
}

/** Prunes any value by its schema, in place; returns the dotted paths of what was removed. */
export function prune(value: unknown, schema: SchemaNode): readonly string[] {
  const unknown: string[] = [];
  pruneValue(value, schema, "", unknown);
  return unknown;
}
