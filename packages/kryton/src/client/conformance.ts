/**
 * Whether a value is what a schema of the document says: types, required fields, enumerations,
 * references. Fields the schema does not know are allowed, so that newer servers can be talked to.
 */
import { isObject } from "@kontinuum/std";

const maxDepth = 32;

/** Where and how `value` differs from `schema`, or `undefined` when it conforms. */
export function mismatch(
  value: unknown,
  schema: unknown,
  named: Readonly<Record<string, unknown>>,
  path = "",
  depth = 0,
): string | undefined {
  if (!isObject(schema)) return undefined;
  if (depth > maxDepth) return `${path} is nested too deeply`;
  const where = path === "" ? "the answer" : path;
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const name = reference.split("/").at(-1) ?? "";
    return mismatch(value, named[name], named, path, depth + 1);
  }
  const alternatives = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(alternatives)) {
    const fits = alternatives.some(
      (option: unknown) => mismatch(value, option, named, path, depth + 1) === undefined,
    );
    return fits ? undefined : `${where} is none of its alternatives`;
  }
  const choices = schema["enum"];
  if (Array.isArray(choices) && !choices.includes(value)) return `${where} is ${JSON.stringify(value)}`;
  if ("const" in schema && schema["const"] !== value) return `${where} is ${JSON.stringify(value)}`;
  switch (schema["type"]) {
    case "string":
      return typeof value === "string" ? undefined : `${where} is not a string`;
    case "boolean":
      return typeof value === "boolean" ? undefined : `${where} is not a boolean`;
    case "number":
      return typeof value === "number" ? undefined : `${where} is not a number`;
    case "integer":
      return Number.isInteger(value) ? undefined : `${where} is not a whole number`;
    case "array":
      if (!Array.isArray(value)) return `${where} is not a list`;
      return first(value, (item, index) =>
        mismatch(item, schema["items"], named, `${path}[${index}]`, depth + 1),
      );
    case "object":
      return objectMismatch(value, schema, named, path, depth);
    default:
      return undefined;
  }
}

function objectMismatch(
  value: unknown,
  schema: Record<string, unknown>,
  named: Readonly<Record<string, unknown>>,
  path: string,
  depth: number,
): string | undefined {
  const where = path === "" ? "the answer" : path;
  if (!isObject(value)) return `${where} is not an object`;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  for (const name of required) {
    if (typeof name === "string" && !Object.hasOwn(value, name)) return `${where} has no ${name}`;
  }
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const extra = isObject(schema["additionalProperties"]) ? schema["additionalProperties"] : undefined;
  return first(Object.entries(value), ([name, item]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : extra;
    return mismatch(item, known, named, path === "" ? name : `${path}.${name}`, depth + 1);
  });
}

function first<T>(
  items: readonly T[],
  check: (item: T, index: number) => string | undefined,
): string | undefined {
  for (const [index, item] of items.entries()) {
    const problem = check(item, index);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
