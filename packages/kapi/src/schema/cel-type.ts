/**
 * The CEL type a schema describes (apiextensions.k8s.io/v1 `x-kubernetes-validations`), with the sizes the
 * cost estimate needs: what the schema allows, or what a request could hold.
 *
 * Fields CEL cannot name are escaped; fields without a known type are invisible.
 */
import { listOf, mapOf, types, type CelType, type ObjectField } from "../cel/index.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Greatest request body: what bounds a value when its schema does not. */
export const maxRequestSize = 3 * 1024 * 1024;

/** A type with the fewest bytes a value of it takes in JSON. */
export interface SizedType {
  readonly type: CelType;
  readonly minBytes: number;
}

const reserved = new Set([
  "true",
  "false",
  "null",
  "in",
  "as",
  "break",
  "const",
  "continue",
  "else",
  "for",
  "function",
  "if",
  "import",
  "let",
  "loop",
  "package",
  "namespace",
  "return",
  "var",
  "void",
  "while",
]);

/** The other spelling of a field that is a reserved word: `namespace` may be written for `__namespace__`. */
export function reservedName(field: string): string | undefined {
  return reserved.has(field) ? `__${field}__` : undefined;
}

/** The name of a field in CEL, or `undefined` when it has none. */
export function escapeName(name: string): string | undefined {
  if (reserved.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
}

const scalar = (type: CelType, minBytes: number): SizedType => ({ type, minBytes });
const isBounded = (n: number | undefined): n is number => n !== undefined && n >= 0;

/** Longest JSON texts of the formats that are not strings in CEL. */
const maxDurationBytes = 32;
const maxDateBytes = 12;
const maxDateTimeBytes = 27;

function stringType(schema: SchemaNode): SizedType {
  const bounded = (max: number): number =>
    isBounded(schema.maxLength) ? Math.min(schema.maxLength, max) : max;
  switch (schema.format) {
    case "byte":
      return scalar(
        { kind: "bytes", max: isBounded(schema.maxLength) ? schema.maxLength : maxRequestSize - 2 },
        2,
      );
    case "duration":
      return scalar({ kind: "duration", max: bounded(maxDurationBytes) }, 3);
    case "date":
      return scalar({ kind: "timestamp", max: maxDateBytes }, maxDateBytes);
    case "date-time":
      return scalar({ kind: "timestamp", max: maxDateTimeBytes }, 20);
  }
  if (schema.enum) {
    const lengths = schema.enum.map((item) => (typeof item === "string" ? Buffer.byteLength(item) : 0));
    return scalar({ kind: "string", max: lengths.reduce((max, length) => Math.max(max, length), 0) }, 2);
  }
  // A character may take four bytes.
  const max = isBounded(schema.maxLength) ? schema.maxLength * 4 : maxRequestSize - 2;
  return scalar({ kind: "string", max }, 2);
}

function listType(schema: SchemaNode): SizedType | undefined {
  const items = schema.items && sizedTypeOf(schema.items);
  if (!items) return undefined;
  const max = isBounded(schema.maxItems)
    ? schema.maxItems
    : Math.floor((maxRequestSize - 2) / (items.minBytes + 1));
  return scalar(listOf(items.type, max), 2);
}

function objectType(schema: SchemaNode, isResource: boolean): SizedType | undefined {
  if (schema.additional) {
    const value = sizedTypeOf(schema.additional);
    if (!value) return undefined;
    // Two quotes, a colon, a comma and a key of at least one character.
    const max = isBounded(schema.maxProperties)
      ? schema.maxProperties
      : Math.floor((maxRequestSize - 2) / (value.minBytes + 6));
    // The public cost model takes keys for empty; the meter counts their real length.
    return scalar(mapOf({ kind: "string", max: 0 }, value.type, max), 2);
  }
  const fields = new Map<string, ObjectField>();
  let minBytes = 2;
  for (const [name, property] of schema.properties) {
    const sized = sizedTypeOf(property);
    const escaped = escapeName(name);
    if (!sized || escaped === undefined) continue;
    const field = { type: sized.type, jsonName: name };
    fields.set(escaped, field);
    if (reservedName(name) !== undefined) fields.set(name, field);
    if (schema.required.includes(name) && property.default === undefined)
      minBytes += name.length + sized.minBytes + 4;
  }
  if (isResource || schema.embedded) addStandardFields(fields);
  return scalar({ kind: "object", name: "object", fields }, minBytes);
}

const nameField: CelType = { kind: "string", max: 253 * 4 };
const metadataType: CelType = {
  kind: "object",
  name: "object",
  fields: new Map([
    ["name", { type: nameField, jsonName: "name" }],
    ["generateName", { type: nameField, jsonName: "generateName" }],
  ]),
};

function addStandardFields(fields: Map<string, ObjectField>): void {
  const text: CelType = { kind: "string", max: maxRequestSize - 2 };
  fields.set("apiVersion", { type: text, jsonName: "apiVersion" });
  fields.set("kind", { type: text, jsonName: "kind" });
  fields.set("metadata", { type: metadataType, jsonName: "metadata" });
}

function makeType(schema: SchemaNode, isResource: boolean): SizedType | undefined {
  if (schema.intOrString) return scalar({ kind: "dyn", max: maxRequestSize - 2 }, 1);
  switch (schema.type) {
    case "array":
      return listType(schema);
    case "object":
      return objectType(schema, isResource);
    case "string":
      return stringType(schema);
    case "boolean":
      return scalar(types.bool, 4);
    case "integer":
      return scalar(types.int, 1);
    case "number":
      return scalar(types.double, 1);
    default:
      return isResource ? objectType(schema, true) : undefined;
  }
}

const known = new WeakMap<SchemaNode, SizedType | "none">();
const knownResources = new WeakMap<SchemaNode, SizedType | "none">();

/** The type of a schema node, or `undefined` when CEL cannot see it. The same object each time. */
export function sizedTypeOf(schema: SchemaNode, isResource = false): SizedType | undefined {
  const cache = isResource ? knownResources : known;
  let found = cache.get(schema);
  if (!found) {
    found = makeType(schema, isResource) ?? "none";
    cache.set(schema, found);
  }
  return found === "none" ? undefined : found;
}
