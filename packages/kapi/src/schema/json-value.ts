/**
 * The few operations on JSON trees that everything in this package needs and that plain JavaScript gets
 * wrong: equality and copies that keep `bigint` integers, own-key access that a key named `__proto__`
 * cannot disturb, and printing that never rounds.
 *
 * Trees hold `null`, booleans, numbers, bigints (integers beyond 2^53), strings, arrays and plain objects.
 */
import { isObject, type JsonObject } from "@kontinuum/std";

/** The own value of `key`, or `undefined`. */
export function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Sets an own key, also one named `__proto__`. */
export function put(object: JsonObject, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  } else object[key] = value;
}

/** A deep copy. Scalars are shared, arrays and objects are new. */
export function cloneJson<T>(value: T): T;
export function cloneJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => cloneJson(item));
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) put(copy, key, cloneJson(value[key]));
  return copy;
}

/** Deep equality; a bigint equals a number of the same value, key order does not matter. */
export function equalJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left === "bigint" || typeof right === "bigint") {
    const numeric = (v: unknown): v is number | bigint => typeof v === "number" || typeof v === "bigint";
    return numeric(left) && numeric(right) && left == right;
  }
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    for (let i = 0; i < left.length; i++) if (!equalJson(left[i], right[i])) return false;
    return true;
  }
  if (!isObject(left) || !isObject(right)) return false;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  for (const key of keys) {
    if (!Object.hasOwn(right, key) || !equalJson(left[key], right[key])) return false;
  }
  return true;
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

/** True for an integer in either representation. */
export function isInteger(value: unknown): value is number | bigint {
  return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
}

/** True for a number in either representation. */
export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "bigint" || typeof value === "number";
}
