/**
 * Rules of `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` in a definition.
 */
import type { FieldError } from "../resource.ts";
import { child, forbidden, indexed, invalid, notSupported, required } from "./field-error.ts";
import type { SchemaNode } from "./schema-node.ts";

function requireType(
  schema: SchemaNode,
  type: string,
  member: string,
  path: string,
  errors: FieldError[],
): void {
  if (schema.type === type) return;
  const text = `must be ${type} if ${member} is set`;
  const at = child(path, "type");
  errors.push(schema.type === "" ? required(at, text) : invalid(at, schema.type, text));
}

function mapListRules(schema: SchemaNode, path: string, errors: FieldError[]): void {
  const keysPath = child(path, "x-kubernetes-list-map-keys");
  const { listMapKeys: keys, items } = schema;
  if (keys.length === 0)
    errors.push(required(keysPath, "must not be empty if x-kubernetes-list-type is map"));
  if (!items) {
    errors.push(required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map"));
    return;
  }
  const itemsPath = child(path, "items");
  if (items.type !== "object")
    errors.push(
      invalid(
        child(itemsPath, "type"),
        items.type,
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    );
  if (new Set(keys).size !== keys.length)
    errors.push(invalid(keysPath, keys, "must not contain duplicate entries"));
  for (const key of keys) {
    const property = items.properties.get(key);
    const at = indexed(child(itemsPath, "properties"), key);
    if (!property) {
      errors.push(invalid(keysPath, keys, "entries must all be names of item properties"));
      continue;
    }
    if (property.type === "array" || property.type === "object") {
      const text = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalid(child(at, "type"), property.type, text));
    }
    const because = "this property is in x-kubernetes-list-map-keys, so it";
    if (property.default === undefined && !items.required.includes(key))
      errors.push(required(child(at, "default"), `${because} must have a default or be a required property`));
    if (property.nullable) errors.push(forbidden(child(at, "nullable"), `${because} cannot be nullable`));
  }
}

function setListRules(schema: SchemaNode, path: string, errors: FieldError[]): void {
  const { items } = schema;
  if (!items) return;
  const itemsPath = child(path, "items");
  if (items.type === "object" && items.mapType !== "atomic") {
    const text = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(invalid(child(itemsPath, "x-kubernetes-map-type"), items.mapType, text));
  }
  if (items.type === "array" && items.listType !== "atomic" && items.listType !== "") {
    const text = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(invalid(child(itemsPath, "x-kubernetes-list-type"), items.listType, text));
  }
}

/** Appends what is wrong with the list and map extensions of one node. */
export function listRules(schema: SchemaNode, path: string, errors: FieldError[]): void {
  const { listType, mapType } = schema;
  const typePath = child(path, "x-kubernetes-list-type");
  if (listType !== "") {
    requireType(schema, "array", "x-kubernetes-list-type", path, errors);
    if (listType !== "atomic" && listType !== "set" && listType !== "map")
      errors.push(notSupported(typePath, listType, ["atomic", "set", "map"]));
  }
  if (schema.listMapKeys.length > 0 && listType !== "map") {
    const text = "must be map if x-kubernetes-list-map-keys is non-empty";
    errors.push(listType === "" ? required(typePath, text) : invalid(typePath, listType, text));
  }
  if (listType === "map") mapListRules(schema, path, errors);
  if (listType === "set") setListRules(schema, path, errors);
  if ((listType === "map" || listType === "set") && schema.items?.nullable)
    errors.push(
      forbidden(
        child(child(path, "items"), "nullable"),
        `cannot be nullable when x-kubernetes-list-type is ${listType}`,
      ),
    );
  if (mapType === "") return;
  requireType(schema, "object", "x-kubernetes-map-type", path, errors);
  if (mapType !== "atomic" && mapType !== "granular")
    errors.push(notSupported(child(path, "x-kubernetes-map-type"), mapType, ["atomic", "granular"]));
}
