/**
 * Defaulting by a structural schema (apiextensions.k8s.io/v1): on every write and on every read.
 *
 * A default applies where its key is absent, or `null` while the field is not nullable, also inside list
 * items and values of maps; a parent is never made to hold a child's default. A `null` of a field that is
 * neither nullable nor defaulted is dropped.
 *
 * Nodes without any default below them are skipped, so that reads of large objects stay cheap.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { cloneJson, put } from "./json-value.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Fills defaults and drops nulls, in place. */
export type Defaulter = (value: unknown) => void;

const isRefusedNull = (value: unknown, schema: SchemaNode): boolean => value === null && !schema.nullable;

/** Compiles `schema` into a function that changes a value in place. */
export function compileDefaults(schema: SchemaNode): Defaulter {
  const defaults: [string, unknown][] = [];
  const children = new Map<string, { readonly schema: SchemaNode; readonly apply: Defaulter }>();
  for (const [name, property] of schema.properties) {
    if (property.default !== undefined) defaults.push([name, property.default]);
    children.set(name, { schema: property, apply: compileDefaults(property) });
  }
  const additional = schema.additional && {
    schema: schema.additional,
    apply: compileDefaults(schema.additional),
  };
  const items = schema.items ? { schema: schema.items, apply: compileDefaults(schema.items) } : undefined;
  if (children.size === 0 && !additional && !items) return () => undefined;

  const fillObject = (object: JsonObject): void => {
    for (const [name, value] of defaults) {
      if (!Object.hasOwn(object, name)) put(object, name, cloneJson(value));
    }
    for (const key of Object.keys(object)) {
      const node = children.get(key) ?? additional;
      if (!node) continue;
      if (isRefusedNull(object[key], node.schema)) {
        if (node.schema.default === undefined) {
          delete object[key];
          continue;
        }
        put(object, key, cloneJson(node.schema.default));
      }
      node.apply(object[key]);
    }
  };
  return (value) => {
    if (isObject(value)) fillObject(value);
    else if (items && Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) {
        if (items.schema.default !== undefined && isRefusedNull(value[i], items.schema))
          value[i] = cloneJson(items.schema.default);
        items.apply(value[i]);
      }
    }
  };
}
