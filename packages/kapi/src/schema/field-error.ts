/**
 * Builders for field errors with the exact texts of the Kubernetes API (field error conventions): what a
 * client greps for in a 422 answer. A path is a string such as `spec.ports[0].name`.
 */
import type { FieldError } from "../resource.ts";
import { isNumber, printJson } from "./json-value.ts";

/** `path.name`, or `name` at the root. */
export function child(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** `path[key]`, as used for list indexes and map keys. */
export function indexed(path: string, key: string | number): string {
  return `${path}[${key}]`;
}

/** A rejected value the way Kubernetes prints it: numbers and booleans plain, strings quoted, the rest as JSON. */
export function printBadValue(value: unknown): string {
  if (value === null || value === undefined) return '"null"';
  if (isNumber(value) || typeof value === "boolean") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  return printJson(value);
}

const withDetail = (head: string, detail: string): string => (detail === "" ? head : `${head}: ${detail}`);

/** `Required value`, with an optional detail. */
export function required(field: string, detail = ""): FieldError {
  return { reason: "FieldValueRequired", field, message: withDetail("Required value", detail) };
}

/** `Invalid value: <value>: <detail>`. */
export function invalid(field: string, value: unknown, detail: string): FieldError {
  return {
    reason: "FieldValueInvalid",
    field,
    message: withDetail(`Invalid value: ${printBadValue(value)}`, detail),
  };
}

/** A value of the wrong type; prints like {@link invalid}. */
export function typeInvalid(field: string, value: unknown, detail: string): FieldError {
  return { ...invalid(field, value, detail), reason: "FieldValueTypeInvalid" };
}

/** Most supported values a message lists. */
const maxShownValues = 100;

/** `Unsupported value: <value>: supported values: …`. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const shown = supported.slice(0, maxShownValues).map((s) => JSON.stringify(s));
  const list = [...shown, ...(supported.length > maxShownValues ? ["…"] : [])].join(", ");
  return {
    reason: "FieldValueNotSupported",
    field,
    message: withDetail(
      `Unsupported value: ${printBadValue(value)}`,
      list === "" ? "" : `supported values: ${list}`,
    ),
  };
}

/** `Duplicate value: <value>`. */
export function duplicate(field: string, value: unknown): FieldError {
  return { reason: "FieldValueDuplicate", field, message: `Duplicate value: ${printBadValue(value)}` };
}

/** `Forbidden: <detail>`. */
export function forbidden(field: string, detail: string): FieldError {
  return { reason: "FieldValueForbidden", field, message: withDetail("Forbidden", detail) };
}

/** `Too long: may not be more than N bytes`. */
export function tooLong(field: string, max: number): FieldError {
  return {
    reason: "FieldValueTooLong",
    field,
    message: `Too long: may not be more than ${max} byte${max === 1 ? "" : "s"}`,
  };
}

/** `Too many: N: must have at most M items`. */
export function tooMany(field: string, actual: number, max: number): FieldError {
  return {
    reason: "FieldValueTooMany",
    field,
    message: `Too many: ${actual}: must have at most ${max} item${max === 1 ? "" : "s"}`,
  };
}
