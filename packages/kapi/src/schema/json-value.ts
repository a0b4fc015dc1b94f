/**
 * Questions asked of JSON trees beside what `json/` offers: own-key access, integers in either
 * representation, printing in a fixed key order and for people.
 *
 * Trees hold `null`, booleans, numbers, bigints (integers beyond 2^53), strings, arrays and plain objects.
 */
import { isObject, type JsonObject } from "@kontinuum/std";

export { cloneJson, equalJson, setOwn as put } from "../json/json.ts";

/** The own value of `key`, or `undefined`. */
export function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Compact JSON. With `sorted`, keys come in code-point order, so equal trees print alike. */
export function printJson(value: unknown, sorted = false): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => printJson(item, sorted)).join(",")}]`;
  if (isObject(value)) {
    const keys = Object.keys(value);
    if (sorted) keys.sort();
    const pairs: string[] = [];
    for (const key of keys) {
      const item = value[key];
      if (item !== undefined) pairs.push(`${JSON.stringify(key)}:${printJson(item, sorted)}`);
    }
    return `{${pairs.join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** A value for a message: a string as it is, anything else as JSON. Never throws, as `String` does for `{"toString":1}`. */
export function plainText(value: unknown): string {
  return typeof value === "string" ? value : printJson(value);
}

/** A JSON value's kind as Go's decoder names it: `array`, `bool`, `null`, `number`, `object` or `string`. */
export function jsonKind(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return isNumber(value) ? "number" : typeof value;
}

/** True for an integer in either representation. */
export function isInteger(value: unknown): value is number | bigint {
  return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
}

/** True for a number in either representation. */
export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "bigint" || typeof value === "number";
}
