/**
 * Checks that the rules of many kinds share, with the texts Kubernetes answers. Each appends to a list of
 * errors; a path is a string such as `spec.ports[0]`.
 */
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { labelErrors } from "../../registry/metadata.ts";
import { labelValueErrors, nameErrors, qualifiedNameErrors } from "../../registry/names.ts";
import { forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import type { FieldError } from "../../resource.ts";
import { quantityError, quantityNano } from "../quantity.ts";
import { child, entries, has, items, number, text, texts } from "../read.ts";

/** Errors found so far. */
export type Errors = FieldError[];

/** A number, when present, is zero or more. */
export function nonNegative(object: unknown, key: string, path: string, errors: Errors): void {
  if (!has(object, key)) return;
  const value = number(object, key);
  if (value < 0) errors.push(invalid(`${path}.${key}`, value, "must be greater than or equal to 0"));
}

/** A port number. */
export function portNumber(value: number, path: string, errors: Errors): void {
  if (value < 1 || value > 65_535)
    errors.push(invalid(path, value, "must be between 1 and 65535, inclusive"));
}

/** Why a text is no port name (IANA service names, RFC 6335). */
export function portNameErrors(name: string): string[] {
  const errors: string[] = [];
  if (name.length > 15) errors.push("must be no more than 15 characters");
  if (!/^[-a-z0-9]+$/.test(name))
    errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!/[a-z]/.test(name)) errors.push("must contain at least one letter (a-z)");
  if (name.includes("--")) errors.push("must not contain consecutive hyphens");
  if (name.startsWith("-") || name.endsWith("-")) errors.push("must not begin or end with a hyphen");
  return errors;
}

/** A port by number or name. */
export function portReference(value: unknown, path: string, errors: Errors): void {
  if (typeof value === "number") portNumber(value, path, errors);
  else if (typeof value === "string")
    for (const why of portNameErrors(value)) errors.push(invalid(path, value, why));
}

/** One of the fixed values, when it is there. */
export function oneOf(value: string, supported: readonly string[], path: string, errors: Errors): void {
  if (value !== "" && !supported.includes(value)) errors.push(notSupported(path, value, supported));
}

/** A name of one of the common forms. */
export function dnsName(
  value: string,
  rule: "label" | "subdomain" | "dns1035" | "path",
  path: string,
  errors: Errors,
): void {
  for (const why of nameErrors(value, rule)) errors.push(invalid(path, value, why));
}

/** A key of labels or annotations. */
export function labelKey(value: string, path: string, errors: Errors): void {
  for (const why of qualifiedNameErrors(value)) errors.push(invalid(path, value, why));
}

const maxKeyLength = 253;

/** Why a text is no key of a ConfigMap or Secret. */
export function configKeyErrors(key: string): string[] {
  const errors: string[] = [];
  if (key.length > maxKeyLength) errors.push(`must be no more than ${maxKeyLength} characters`);
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    errors.push(
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    );
  }
  if (key === ".") errors.push("must not be '.'");
  if (key === "..") errors.push("must not be '..'");
  else if (key.startsWith("..")) errors.push("must not start with '..'");
  return errors;
}

/** A map of labels. */
export function labelMap(value: unknown, path: string, errors: Errors): void {
  errors.push(...labelErrors(value, path));
}

/** Values that labels are compared with. */
export function labelValues(values: readonly string[], path: string, errors: Errors): void {
  for (const [index, value] of values.entries()) {
    for (const why of labelValueErrors(value)) errors.push(invalid(`${path}[${index}]`, value, why));
  }
}

/** A label selector. */
export function labelSelector(selector: JsonObject | undefined, path: string, errors: Errors): void {
  labelMap(child(selector, "matchLabels"), `${path}.matchLabels`, errors);
  for (const [index, expression] of items(selector, "matchExpressions").entries()) {
    const here = `${path}.matchExpressions[${index}]`;
    const operator = text(expression, "operator");
    const values = texts(expression, "values");
    if (operator === "In" || operator === "NotIn") {
      if (values.length === 0) {
        errors.push(required(`${here}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (values.length > 0) {
        errors.push(
          forbidden(`${here}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        );
      }
    } else errors.push(invalid(`${here}.operator`, operator, "not a valid selector operator"));
    labelValues(values, `${here}.values`, errors);
    labelKey(text(expression, "key"), `${here}.key`, errors);
  }
}

/** Whether a selector has no requirement at all. */
export const isEmptySelector = (selector: JsonObject | undefined): boolean =>
  entries(selector, "matchLabels").length === 0 && items(selector, "matchExpressions").length === 0;

/** Whether a label selector matches labels. */
export function selectorMatches(selector: JsonObject | undefined, labels: JsonObject | undefined): boolean {
  const held = labels ?? {};
  for (const [key, value] of entries(selector, "matchLabels")) if (held[key] !== value) return false;
  return items(selector, "matchExpressions").every((expression) => {
    const key = text(expression, "key");
    const value = held[key];
    const listed = typeof value === "string" && texts(expression, "values").includes(value);
    switch (text(expression, "operator")) {
      case "In":
        return listed;
      case "NotIn":
        return !listed;
      case "Exists":
        return Object.hasOwn(held, key);
      default:
        return !Object.hasOwn(held, key);
    }
  });
}

/** A quantity that may not be negative. */
export function nonNegativeQuantity(value: unknown, path: string, errors: Errors): void {
  const nano = quantityNano(value);
  if (nano === undefined) errors.push(invalid(path, value, quantityError));
  else if (nano < 0n) errors.push(invalid(path, value, "must be greater than or equal to 0"));
}

/** A number or a percentage of zero or more. */
export function amountOrPercent(value: unknown, path: string, errors: Errors): void {
  if (typeof value === "number") {
    if (value < 0) errors.push(invalid(path, value, "must be greater than or equal to 0"));
  } else if (typeof value === "string" && !/^[0-9]+%$/.test(value)) {
    errors.push(
      invalid(
        path,
        value,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      ),
    );
  }
}

/** A percentage of at most 100, when it is one. */
export function notMoreThanHundred(value: unknown, path: string, errors: Errors): void {
  if (typeof value === "string" && /^[0-9]+%$/.test(value) && Number(value.slice(0, -1)) > 100) {
    errors.push(invalid(path, value, "must not be greater than 100%"));
  }
}

/** A value may not change once it is there. */
export function immutable(
  object: unknown,
  old: unknown,
  path: readonly string[],
  same: (a: unknown, b: unknown) => boolean,
  errors: Errors,
): void {
  const value = at(object, ...path);
  if (!same(value, at(old, ...path))) errors.push(invalid(path.join("."), value, "field is immutable"));
}

/** Exactly one of the keys of an object is set. */
export function exactlyOne(object: unknown, keys: readonly string[]): string[] {
  return keys.filter((key) => {
    const value = isObject(object) ? object[key] : undefined;
    return value !== undefined && value !== null;
  });
}
