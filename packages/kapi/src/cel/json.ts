/**
 * Plain JSON to CEL and back, without a schema: integers become int, other numbers double.
 */
import { isObject } from "@kontinuum/std";
import { put } from "../schema/json-value.ts";
import { CelError } from "./error.ts";
import { durationText } from "./library/convert.ts";
import { formatRfc3339 } from "./timestamp.ts";
import {
  CelDuration,
  CelOptional,
  CelTimestamp,
  CelUint,
  isList,
  isMap,
  itemsOf,
  typeNameOf,
  type CelList,
  type CelMap,
  type CelValue,
} from "./value.ts";

/** A JSON object as a map; entries are converted when asked for. */
class JsonMap implements CelMap {
  readonly isMap = true;
  readonly #object: { readonly [key: string]: unknown };
  /** Entries looked at: a container is wrapped once, so what it has listed is kept. */
  readonly #made = new Map<string, CelValue>();
  #keys: readonly string[] | undefined;

  constructor(object: { readonly [key: string]: unknown }) {
    this.#object = object;
  }

  get size(): number {
    return this.keys().length;
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key !== "string") return undefined;
    const made = this.#made.get(key);
    if (made !== undefined) return made;
    if (!Object.hasOwn(this.#object, key)) return undefined;
    const value = fromJson(this.#object[key]);
    this.#made.set(key, value);
    return value;
  }

  keys(): readonly CelValue[] {
    return (this.#keys ??= Object.keys(this.#object));
  }
}

/** A JSON array as a list. */
class JsonList implements CelList {
  readonly isList = true;
  readonly #items: readonly unknown[];
  readonly #made: CelValue[] = [];

  constructor(items: readonly unknown[]) {
    this.#items = items;
  }

  get length(): number {
    return this.#items.length;
  }

  at(index: number): CelValue {
    let item = this.#made[index];
    if (item === undefined) {
      item = fromJson(this.#items[index]);
      this.#made[index] = item;
    }
    return item;
  }
}

/** A JSON value as a CEL value; `undefined` is null. */
export function fromJson(value: unknown): CelValue {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "bigint":
      return value;
    case "number":
      return Number.isSafeInteger(value) ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return new JsonList(value);
  return isObject(value) ? new JsonMap(value) : null;
}

/**
 * A CEL value as JSON. Integers within 2^53 become numbers, others stay `bigint`; bytes become base64.
 *
 * @throws CelError for values JSON has no form for.
 */
export function toJson(value: CelValue): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : value;
    case "number":
      if (!Number.isFinite(value)) throw new CelError("a double that is not finite has no JSON form");
      return value;
  }
  if (value === null) return null;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof CelUint) return toJson(value.value);
  if (value instanceof CelTimestamp) return formatRfc3339(value.ns);
  if (value instanceof CelDuration) return durationText(value);
  if (value instanceof CelOptional) return value.value === undefined ? null : toJson(value.value);
  if (isList(value)) return itemsOf(value).map(toJson);
  if (!isMap(value)) throw new CelError(`${typeNameOf(value)} has no JSON form`);
  const out: Record<string, unknown> = {};
  for (const key of value.keys())
    put(out, typeof key === "string" ? key : String(toJson(key)), toJson(value.get(key) ?? null));
  return out;
}
