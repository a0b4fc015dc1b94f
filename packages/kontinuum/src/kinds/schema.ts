/**
 * Schemas of our kinds, written once: each is the OpenAPI v3 fragment that goes into the CRD, and carries
 * the TypeScript type of the values it describes.
 *
 * `conform` checks an unknown value against such a fragment, so the CRD, the type and the check at the
 * boundary cannot drift apart. It checks what a controller relies on (types, required fields, enums);
 * patterns, lengths and CEL rules are the API server's business. Unknown fields are kept: a newer
 * process may have written them and a full update must not drop them.
 */
import { CodedError, isObject, type JsonObject } from "@kontinuum/std";

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

/**
 * The value, once it was found to have the shape of `schema`. Fails with `invalid_argument`, naming the
 * first path that does not fit.
 */
export function conform<T>(schema: Schema<T>, value: unknown, path: string): T {
  checkShape(schema.json, value, path);
  return value as T;
}

function checkShape(schema: JsonObject, value: unknown, path: string): void {
  const wrong = (wanted: string): never => {
    throw new CodedError("invalid_argument", `${path} must be ${wanted}`);
  };
  switch (schema["type"]) {
    case "string":
      if (typeof value !== "string") wrong("a string");
      if (Array.isArray(schema["enum"]) && !schema["enum"].includes(value)) {
        wrong(`one of ${schema["enum"].join(", ")}`);
      }
      return;
    case "integer":
      if (!Number.isSafeInteger(value)) wrong("a whole number");
      return;
    case "boolean":
      if (typeof value !== "boolean") wrong("true or false");
      return;
    case "array":
      if (!Array.isArray(value)) return wrong("a list");
      value.forEach((item, index) => checkShape(asSchema(schema["items"]), item, `${path}[${index}]`));
      return;
    case "object":
      if (!isObject(value)) return wrong("an object");
      checkFields(schema, value, path);
      return;
    default:
      return;
  }
}

function checkFields(schema: JsonObject, value: JsonObject, path: string): void {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  for (const name of required) {
    if (value[name] === undefined || value[name] === null) {
      throw new CodedError("invalid_argument", `${path}.${name} is required`);
    }
  }
  const properties = asSchema(schema["properties"]);
  const others = schema["additionalProperties"];
  for (const [name, child] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : others;
    if (isObject(known) && child !== undefined && child !== null) checkShape(known, child, `${path}.${name}`);
  }
}

const asSchema = (value: unknown): JsonObject => (isObject(value) ? value : {});
