/**
 * `x-kubernetes-list-type`: identity of list items, and the uniqueness that `set` and `map` lists promise.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { child, duplicate, indexed } from "./field-error.ts";
import { maxFieldErrors } from "./findings.ts";
import { own, printJson, put } from "./json-value.ts";
import type { SchemaNode } from "./schema-node.ts";

/** The keys of a map list's item with their values; absent keys take the schema's default. */
function keyObject(schema: SchemaNode, item: unknown): JsonObject | undefined {
  if (!isObject(item)) return undefined;
  const keys: JsonObject = {};
  for (const name of schema.listMapKeys) {
    const value = own(item, name) ?? schema.items?.properties.get(name)?.default;
    if (value !== undefined) put(keys, name, value);
  }
  return keys;
}

/** A text that identifies an item of a `map` list, or `undefined` when it is not an object. */
export function mapListKey(schema: SchemaNode, item: unknown): string | undefined {
  const keys = keyObject(schema, item);
  return keys && printJson(keys, true);
}

function checkUnique(list: readonly unknown[], schema: SchemaNode, path: string, errors: FieldError[]): void {
  const seen = new Set<string>();
  for (let i = 0; i < list.length; i++) {
    const identity = schema.listType === "map" ? keyObject(schema, list[i]) : list[i];
    if (identity === undefined) continue;
    const text = printJson(identity, true);
    if (errors.length >= maxFieldErrors) return;
    if (seen.has(text)) errors.push(duplicate(indexed(path, i), identity));
    seen.add(text);
  }
}

/** A walk that reports every duplicate in `set` and `map` lists; `undefined` when there is no such list below. */
export type UniquenessCheck = (value: unknown, path: string, errors: FieldError[]) => void;

/** Compiles the uniqueness checks below `schema`. */
export function compileUniqueness(schema: SchemaNode): UniquenessCheck | undefined {
  const properties = new Map<string, UniquenessCheck>();
  for (const [name, node] of schema.properties) {
    const check = compileUniqueness(node);
    if (check) properties.set(name, check);
  }
  const additional = schema.additional && compileUniqueness(schema.additional);
  const items = schema.items ? compileUniqueness(schema.items) : undefined;
  const isUnique = schema.listType === "set" || schema.listType === "map";
  if (properties.size === 0 && !additional && !items && !isUnique) return undefined;
  return (value, path, errors) => {
    if (Array.isArray(value)) {
      if (isUnique) checkUnique(value, schema, path, errors);
      if (items) for (let i = 0; i < value.length; i++) items(value[i], indexed(path, i), errors);
    } else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        const check = properties.get(key) ?? additional;
        check?.(value[key], child(path, key), errors);
      }
    }
  };
}
