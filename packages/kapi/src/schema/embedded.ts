/**
 * Embedded resources (`x-kubernetes-embedded-resource`): each must name its apiVersion and kind and carry a
 * well-formed `metadata`.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { child, indexed, invalid, required } from "./field-error.ts";
import type { UniquenessCheck } from "./list-type.ts";
import { maxFieldErrors } from "./findings.ts";
import { own } from "./json-value.ts";
import type { SchemaNode } from "./schema-node.ts";

function checkStringMap(meta: JsonObject, name: string, path: string, errors: FieldError[]): void {
  const value = own(meta, name);
  if (value === undefined || value === null) return;
  if (!isObject(value) || Object.values(value).some((item) => typeof item !== "string"))
    errors.push(invalid(child(path, name), value, "must be a map of strings"));
}

function checkEmbedded(object: JsonObject, path: string, errors: FieldError[]): void {
  const apiVersion = own(object, "apiVersion");
  if (typeof apiVersion !== "string" || apiVersion === "") {
    errors.push(required(child(path, "apiVersion"), "must not be empty"));
  } else if (apiVersion.split("/").length > 2) {
    errors.push(
      invalid(child(path, "apiVersion"), apiVersion, `unexpected GroupVersion string: ${apiVersion}`),
    );
  }
  const kind = own(object, "kind");
  if (typeof kind !== "string" || kind === "")
    errors.push(required(child(path, "kind"), "must not be empty"));
  else if (!/^[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(kind)) {
    errors.push(
      invalid(child(path, "kind"), kind, "may have mixed case, but should otherwise match: a DNS-1035 label"),
    );
  }
  const meta = own(object, "metadata");
  if (meta === undefined || meta === null) return;
  const metaPath = child(path, "metadata");
  if (!isObject(meta)) {
    errors.push(invalid(metaPath, meta, "must be an object"));
    return;
  }
  for (const name of ["name", "generateName", "namespace"]) {
    const value = own(meta, name);
    if (value !== undefined && value !== null && typeof value !== "string")
      errors.push(invalid(child(metaPath, name), value, "must be a string"));
  }
  checkStringMap(meta, "labels", metaPath, errors);
  checkStringMap(meta, "annotations", metaPath, errors);
}

/** Compiles the checks of embedded resources below `schema`; `undefined` when it has none. */
export function compileEmbeddedCheck(schema: SchemaNode): UniquenessCheck | undefined {
  const properties = new Map<string, UniquenessCheck>();
  for (const [name, node] of schema.properties) {
    const check = compileEmbeddedCheck(node);
    if (check) properties.set(name, check);
  }
  const additional = schema.additional && compileEmbeddedCheck(schema.additional);
  const items = schema.items ? compileEmbeddedCheck(schema.items) : undefined;
  if (!schema.embedded && properties.size === 0 && !additional && !items) return undefined;
  return (value, path, errors) => {
    if (Array.isArray(value)) {
      if (items) for (let i = 0; i < value.length; i++) items(value[i], indexed(path, i), errors);
      return;
    }
    if (!isObject(value) || errors.length >= maxFieldErrors) return;
    if (schema.embedded) checkEmbedded(value, path, errors);
    for (const key of Object.keys(value)) {
      const check = properties.get(key) ?? additional;
      check?.(value[key], child(path, key), errors);
    }
  };
}
