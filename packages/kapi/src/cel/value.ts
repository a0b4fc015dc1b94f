/**
 * CEL values at run time.
 *
 * int is `bigint`, double is `number`, so that the two never mix up; everything else that JavaScript lacks
 * has a class here. Lists and maps are interfaces, because values from JSON are wrapped lazily by their
 * schema (`json-value.ts`).
 */
import { CelError } from "./error.ts";

/** uint. */
export class CelUint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

/** google.protobuf.Timestamp, in nanoseconds since the epoch. */
export class CelTimestamp {
  readonly ns: bigint;

  constructor(ns: bigint) {
    if (ns < minTimestamp || ns > maxTimestamp) throw new CelError("timestamp overflow");
    this.ns = ns;
  }
}

const second = 1_000_000_000n;
const minTimestamp = -62_135_596_800n * second;
const maxTimestamp = 253_402_300_800n * second - 1n;

/** google.protobuf.Duration, in nanoseconds. */
export class CelDuration {
  readonly ns: bigint;

  constructor(ns: bigint) {
    if (ns !== BigInt.asIntN(64, ns)) throw new CelError("duration overflow");
    this.ns = ns;
  }
}

/** The value of a type, as `type(x)` returns it. */
export class CelTypeValue {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** An optional value. */
export class CelOptional {
  /** `undefined` is none. */
  readonly value: CelValue | undefined;

  constructor(value?: CelValue) {
    this.value = value;
  }
}

/** The empty optional. */
export const none = new CelOptional();

/** An opaque value of a library type: IP, CIDR, URL, quantity, semantic version, format. */
export abstract class CelOpaque {
  abstract readonly typeName: string;
  abstract equals(other: CelOpaque): boolean;
}

/** A list. */
export interface CelList {
  readonly isList: true;
  readonly length: number;
  /** The item at an index inside the bounds. */
  at(index: number): CelValue;
  /** How two lists compare: `set` ignores order, `map` compares by keys. Absent: item by item. */
  readonly identity?: ListIdentity;
}

/** Identity of the items of an associative list. */
export interface ListIdentity {
  readonly kind: "set" | "map";
  /** A text equal for items that are the same item. */
  keyOf(item: CelValue): string;
}

/** A map or object. Keys of objects are their field names. */
export interface CelMap {
  readonly isMap: true;
  readonly size: number;
  /** The value of a key, or `undefined`. */
  get(key: CelValue): CelValue | undefined;
  keys(): readonly CelValue[];
  /** Type name of an object; absent for maps. */
  readonly objectType?: string;
}

/** Any value. */
export type CelValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | CelUint
  | CelTimestamp
  | CelDuration
  | CelTypeValue
  | CelOptional
  | CelOpaque
  | CelList
  | CelMap;

/** A list of given items. */
export class ArrayList implements CelList {
  readonly isList = true;
  readonly #items: readonly CelValue[];
  readonly identity?: ListIdentity;

  constructor(items: readonly CelValue[], identity?: ListIdentity) {
    this.#items = items;
    if (identity) this.identity = identity;
  }

  get length(): number {
    return this.#items.length;
  }

  at(index: number): CelValue {
    const item = this.#items[index];
    if (item === undefined) throw new CelError(`index out of bounds: ${index}`);
    return item;
  }
}

/** A text that identifies a map key; int, uint and integral double of one value are the same key. */
export function keyText(key: CelValue): string {
  switch (typeof key) {
    case "string":
      return `s${key}`;
    case "bigint":
      return `n${key}`;
    case "boolean":
      return `b${key}`;
    case "number":
      if (Number.isInteger(key)) return `n${BigInt(key)}`;
      break;
    default:
      if (key instanceof CelUint) return `n${key.value}`;
  }
  throw new CelError(`unsupported key type: ${typeNameOf(key)}`);
}

/** A map of given entries. */
export class EntryMap implements CelMap {
  readonly isMap = true;
  readonly #entries: ReadonlyMap<string, readonly [CelValue, CelValue]>;

  constructor(entries: Iterable<readonly [CelValue, CelValue]>) {
    const map = new Map<string, readonly [CelValue, CelValue]>();
    for (const entry of entries) {
      const text = keyText(entry[0]);
      if (map.has(text)) throw new CelError(`Failed with repeated key ${printValue(entry[0])}`);
      map.set(text, entry);
    }
    this.#entries = map;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key === "number" && !Number.isInteger(key)) return undefined;
    return this.#entries.get(keyText(key))?.[1];
  }

  keys(): readonly CelValue[] {
    return [...this.#entries.values()].map(([key]) => key);
  }
}

/** True for a list. */
export function isList(value: CelValue): value is CelList {
  return typeof value === "object" && value !== null && "isList" in value;
}

/** True for a map or object. */
export function isMap(value: CelValue): value is CelMap {
  return typeof value === "object" && value !== null && "isMap" in value;
}

/** The items of a list as an array. */
export function itemsOf(list: CelList): CelValue[] {
  const items: CelValue[] = [];
  for (let i = 0; i < list.length; i++) items.push(list.at(i));
  return items;
}

/** The name of a value's type, as `type()` shows it. */
export function typeNameOf(value: CelValue): string {
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "bigint":
      return "int";
    case "number":
      return "double";
    case "string":
      return "string";
  }
  if (value === null) return "null_type";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof CelUint) return "uint";
  if (value instanceof CelTimestamp) return "google.protobuf.Timestamp";
  if (value instanceof CelDuration) return "google.protobuf.Duration";
  if (value instanceof CelTypeValue) return "type";
  if (value instanceof CelOptional) return "optional_type";
  if (value instanceof CelOpaque) return value.typeName;
  if (isList(value)) return "list";
  return value.objectType ?? "map";
}

/** A value for error messages. */
export function printValue(value: CelValue): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof CelUint) return `${value.value}u`;
  if (typeof value === "object" && value !== null) return typeNameOf(value);
  return String(value);
}

const numeric = (value: CelValue): bigint | number | undefined =>
  typeof value === "bigint" || typeof value === "number"
    ? value
    : value instanceof CelUint
      ? value.value
      : undefined;

/** Equality of the language: numbers across types, lists and maps by content, different types are unequal. */
export function equalValues(a: CelValue, b: CelValue): boolean {
  if (a === b) return typeof a !== "number" || !Number.isNaN(a);
  if (a === null || b === null || typeof a === "string" || typeof a === "boolean") return false;
  const left = numeric(a);
  if (left !== undefined) {
    const right = numeric(b);
    return right !== undefined && left <= right && left >= right;
  }
  if (typeof a !== "object" || typeof b !== "object") return false;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (a instanceof CelTimestamp) return b instanceof CelTimestamp && a.ns === b.ns;
  if (a instanceof CelDuration) return b instanceof CelDuration && a.ns === b.ns;
  if (a instanceof CelTypeValue) return b instanceof CelTypeValue && a.name === b.name;
  if (a instanceof CelOpaque) return b instanceof CelOpaque && a.typeName === b.typeName && a.equals(b);
  if (a instanceof CelOptional) return b instanceof CelOptional && equalOptionals(a, b);
  if (isList(a)) return isList(b) && equalLists(a, b);
  return isMap(a) && isMap(b) && equalMaps(a, b);
}

function equalOptionals(a: CelOptional, b: CelOptional): boolean {
  if (a.value === undefined || b.value === undefined) return a.value === b.value;
  return equalValues(a.value, b.value);
}

function equalLists(a: CelList, b: CelList): boolean {
  if (a.length !== b.length) return false;
  const identity = a.identity ?? b.identity;
  if (!identity) {
    for (let i = 0; i < a.length; i++) if (!equalValues(a.at(i), b.at(i))) return false;
    return true;
  }
  const byKey = new Map(itemsOf(b).map((item) => [identity.keyOf(item), item]));
  return itemsOf(a).every((item) => {
    const other = byKey.get(identity.keyOf(item));
    return other !== undefined && equalValues(item, other);
  });
}

function equalMaps(a: CelMap, b: CelMap): boolean {
  if (a.size !== b.size) return false;
  for (const key of a.keys()) {
    const left = a.get(key);
    const right = b.get(key);
    if (left === undefined || right === undefined || !equalValues(left, right)) return false;
  }
  return true;
}

/** Code points of a text without building an array. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00) {
      const next = text.charCodeAt(i + 1);
      if (next >= 0xdc00 && next < 0xe000) {
        count--;
        i++;
      }
    }
  }
  return count;
}

/** How much of a value an operation that looks at all of it looks at: characters, bytes, items. */
export function sizeOf(value: CelValue): number {
  if (typeof value === "string") return value.length;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== "object" || value === null) return 1;
  if (isList(value)) return value.length;
  return isMap(value) ? value.size : 1;
}

/** The number of scalars in a value, counted up to `limit`: what a deep comparison costs. */
export function deepSizeOf(value: CelValue, limit: number): number {
  if (typeof value === "string") return 1 + value.length / 10;
  if (typeof value !== "object" || value === null) return 1;
  let total = 1;
  if (isList(value)) {
    for (let i = 0; i < value.length && total < limit; i++) total += deepSizeOf(value.at(i), limit - total);
  } else if (isMap(value)) {
    for (const key of value.keys()) {
      if (total >= limit) break;
      total += 1 + deepSizeOf(value.get(key) ?? null, limit - total);
    }
  } else if (value instanceof Uint8Array) total += value.length / 10;
  return total;
}
