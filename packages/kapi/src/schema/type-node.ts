/**
 * The merge structure (server-side apply) that a structural schema describes: `x-kubernetes-list-type`,
 * `-list-map-keys`, `-map-type`; objects are granular and lists atomic where nothing is said, and what the
 * schema leaves open is untyped.
 */
import type { TypeNode } from "../resource.ts";
import { objectMetaType } from "./object-meta.ts";
import type { SchemaNode } from "./schema-node.ts";

const scalar: TypeNode = { type: "scalar" };
const untyped: TypeNode = { type: "untyped" };
const standardFields = new Set(["apiVersion", "kind", "metadata"]);

const nodes = new WeakMap<SchemaNode, TypeNode>();

/** The merge structure below `schema`, memoized per node. */
export function typeNodeOf(schema: SchemaNode): TypeNode {
  const known = nodes.get(schema);
  if (known) return known;
  const made = makeTypeNode(schema);
  nodes.set(schema, made);
  return made;
}

function makeTypeNode(schema: SchemaNode): TypeNode {
  if (schema.intOrString) return scalar;
  if (schema.type === "array") return listNode(schema);
  if (schema.type === "object") return mapNode(schema);
  return schema.type === "" ? untyped : scalar;
}

function listNode(schema: SchemaNode): TypeNode {
  const items = schema.items;
  const keyDefaults: Record<string, unknown> = {};
  for (const key of schema.listMapKeys) {
    const value = items?.properties.get(key)?.default;
    if (value !== undefined) keyDefaults[key] = value;
  }
  const listType = schema.listType === "set" || schema.listType === "map" ? schema.listType : "atomic";
  return {
    type: "list",
    listType,
    keys: schema.listMapKeys,
    keyDefaults,
    item: () => (items ? typeNodeOf(items) : untyped),
  };
}

function mapNode(schema: SchemaNode): TypeNode {
  const atomic = schema.mapType === "atomic";
  const open = schema.preserveUnknown || schema.additionalAllowed === true || schema.embedded;
  if (schema.properties.size === 0 && !schema.additional) {
    // Nothing is known of the content; an unnamed closed object can only be empty.
    return atomic ? { type: "map", atomic, field: () => untyped } : untyped;
  }
  return {
    type: "map",
    atomic,
    field(name) {
      const property = schema.properties.get(name);
      if (property) return typeNodeOf(property);
      if (schema.additional) return typeNodeOf(schema.additional);
      return open ? untyped : undefined;
    },
    declares: (name) => schema.properties.has(name),
  };
}

/** The merge structure of a whole custom resource: the schema with the standard object fields. */
export function resourceTypeNode(schema: SchemaNode): TypeNode {
  const root = mapNode({ ...schema, type: "object" });
  return {
    type: "map",
    atomic: false,
    field(name) {
      if (name === "metadata") return objectMetaType;
      if (name === "apiVersion" || name === "kind") return scalar;
      return root.type === "map" ? root.field(name) : untyped;
    },
    declares: (name) => standardFields.has(name) || schema.properties.has(name),
  };
}
