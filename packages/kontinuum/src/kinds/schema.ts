/**
 * Schemas of our kinds, written once: each is the OpenAPI v3 fragment that goes into the CRD, and carries
 * the TypeScript type of the values it describes.
 *
 * `shapeOf` is the check of an unknown value against such a fragment, so the CRD, the type and the check at the
 * boundary cannot drift apart. It checks what a controller relies on (types, required fields, enums);
 * patterns, lengths and CEL rules are the API server's business. Unknown fields are kept: a newer
 * process may have written them and a full update must not drop them.
 */
import type { shape } from "@kontinuum/controller";
import { isObject, type JsonObject } from "@kontinuum/std";

declare const described: unique symbol;

/** An OpenAPI v3 fragment for values of type `T`. */
export interface Schema<T> {
  readonly json: Readonly<JsonObject>;
  readonly optional?: true;
  readonly [described]?: T;
}

/** The type a schema describes. */
export type Infer<S> = S extends Schema<infer T> ? T : never;

type Shape = Readonly<Record<string, Schema<unknown>>>;
type OptionalKeys<P extends Shape> = {
  [K in keyof P]: P[K] extends { readonly optional: true } ? K : never;
}[keyof P];
type Flat<T> = { [K in keyof T]: T[K] };
type ObjectOf<P extends Shape> = Flat<
  { -readonly [K in Exclude<keyof P, OptionalKeys<P>>]: Infer<P[K]> } & {
    -readonly [K in OptionalKeys<P>]?: Infer<P[K]>;
  }
>;

/** A rule in CEL over `self` (`x-kubernetes-validations`). */
export interface Rule {
  readonly rule: string;
  readonly message: string;
}

/** A string. `extra` holds further keywords (`maxLength`, `pattern`, `format`, `default`). */
export const string = (description: string, extra: JsonObject = {}): Schema<string> => ({
  json: { description, type: "string", ...extra },
});

/** One of a few strings. */
export const oneOf = <const T extends string>(
  description: string,
  values: readonly T[],
  extra: JsonObject = {},
): Schema<T> => ({ json: { description, type: "string", enum: [...values], ...extra } });

/** A whole number of 32 or 64 bits. */
export const integer = (
  description: string,
  format: "int32" | "int64" = "int32",
  extra: JsonObject = {},
): Schema<number> => ({ json: { description, type: "integer", format, ...extra } });

/** True or false. */
export const boolean = (description: string, extra: JsonObject = {}): Schema<boolean> => ({
  json: { description, type: "boolean", ...extra },
});

/** A point in time, RFC 3339. */
export const dateTime = (description: string): Schema<string> => string(description, { format: "date-time" });

/** A list. `extra` holds list keywords (`maxItems`, `x-kubernetes-list-type`). */
export const list = <T>(description: string, items: Schema<T>, extra: JsonObject = {}): Schema<T[]> => ({
  json: { description, type: "array", items: items.json, ...extra },
});

/** A map from any string to one kind of value. */
export const mapOf = <T>(description: string, values: Schema<T>): Schema<Record<string, T>> => ({
  json: { description, type: "object", additionalProperties: values.json },
});

/** Any JSON value; nothing in it is pruned. */
export const anything = (description: string): Schema<unknown> => ({
  json: { description, "x-kubernetes-preserve-unknown-fields": true },
});

/** An object with known fields, all required unless marked with {@link optional}. */
export function object<const P extends Shape>(
  description: string,
  fields: P,
  options: { readonly rules?: readonly Rule[]; readonly extra?: JsonObject } = {},
): Schema<ObjectOf<P>> {
  const required = Object.keys(fields).filter((name) => fields[name]?.optional !== true);
  const properties = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.json]));
  return {
    json: {
      description,
      type: "object",
      properties,
      ...(required.length > 0 ? { required } : {}),
      ...(options.rules ? { "x-kubernetes-validations": options.rules.map((rule) => ({ ...rule })) } : {}),
      ...options.extra,
    },
  };
}

/** Marks a field of {@link object} as one that may be absent. */
export const optional = <T>(schema: Schema<T>): Schema<T> & { readonly optional: true } => ({
  ...schema,
  optional: true,
});

/** The check that a value has the shape of `schema`: what is wrong with it, or `undefined`. */
export function shapeOf<T>(schema: Schema<T>): shape.Shape<T> {
  return (value, path) => problemIn(schema.json, value, path);
}

function problemIn(schema: JsonObject, value: unknown, path: string): string | undefined {
  switch (schema["type"]) {
    case "string":
      if (typeof value !== "string") return `${path} is not a string`;
      if (!Array.isArray(schema["enum"]) || schema["enum"].includes(value)) return undefined;
      return `${path} is not one of ${schema["enum"].join(", ")}`;
    case "integer":
      return Number.isSafeInteger(value) ? undefined : `${path} is not a whole number`;
    case "boolean":
      return typeof value === "boolean" ? undefined : `${path} is not a boolean`;
    case "array":
      if (!Array.isArray(value)) return `${path} is not a list`;
      return first(value, (item, index) => problemIn(asSchema(schema["items"]), item, `${path}[${index}]`));
    case "object":
      return isObject(value) ? problemInFields(schema, value, path) : `${path} is not an object`;
    default:
      return undefined;
  }
}

function problemInFields(schema: JsonObject, value: JsonObject, path: string): string | undefined {
  const required: unknown[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  for (const name of required) {
    if (typeof name === "string" && isAbsent(value[name])) return `${path}.${name} is missing`;
  }
  const properties = asSchema(schema["properties"]);
  return first(Object.entries(value), ([name, child]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : schema["additionalProperties"];
    return isObject(field) && !isAbsent(child) ? problemIn(field, child, `${path}.${name}`) : undefined;
  });
}

// JSON's null counts as absent, as Kubernetes decoders read it.
const isAbsent = (value: unknown): boolean => value === undefined || value === null;

function first<T>(
  items: readonly T[],
  problem: (item: T, index: number) => string | undefined,
): string | undefined {
  for (const [index, item] of items.entries()) {
    const found = problem(item, index);
    if (found !== undefined) return found;
  }
  return undefined;
}

const asSchema = (value: unknown): JsonObject => (isObject(value) ? value : {});
