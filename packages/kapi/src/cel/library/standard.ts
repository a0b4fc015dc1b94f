/**
 * Standard functions and operators (cel-spec "List of Standard Definitions"), with the comparisons across
 * number types that the Kubernetes environments turn on.
 *
 * Logical operators, the conditional and the index operator are part of the evaluator.
 */
import { CelError } from "../error.ts";
import {
  fixedCharge,
  global,
  member,
  searches,
  traversalFactor,
  traverses,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import {
  ArrayList,
  CelDuration,
  CelTimestamp,
  CelUint,
  codePoints,
  deepSizeOf,
  equalValues,
  itemsOf,
  sizeOf,
  typeNameOf,
  type CelList,
  type CelValue,
} from "../value.ts";

/** `value` as an int; an error when it does not fit 64 bits. */
export function int(value: bigint): bigint {
  if (value !== BigInt.asIntN(64, value)) throw new CelError("integer overflow");
  return value;
}

/** `value` as a uint; an error when it does not fit. */
export function uint(value: bigint): CelUint {
  if (value < 0n || value >= 2n ** 64n) throw new CelError("unsigned integer overflow");
  return new CelUint(value);
}

function nonZero(value: bigint, what: string): bigint {
  if (value === 0n) throw new CelError(what);
  return value;
}

const sum: OverloadOptions = { resultSize: ({ args: [a = 0, b = 0] }) => a + b };
const copying: OverloadOptions = { ...sum, cost: traverses };

const arithmetic: readonly Overload[] = [
  global("_+_", ["int", "int"], "int", (a, b) => int(a + b)),
  global("_+_", ["uint", "uint"], "uint", (a, b) => uint(a.value + b.value)),
  global("_+_", ["double", "double"], "double", (a, b) => a + b),
  global("_+_", ["string", "string"], "string", (a, b) => a + b, copying),
  global("_+_", ["bytes", "bytes"], "bytes", (a, b) => Buffer.concat([a, b]), copying),
  global("_+_", ["list(A)", "list(A)"], "list(A)", concatenate, {
    ...sum,
    charge: ([a = null, b = null]) => 5 + sizeOf(a) + sizeOf(b),
  }),
  global("_+_", ["timestamp", "duration"], "timestamp", (a, b) => new CelTimestamp(a.ns + b.ns)),
  global("_+_", ["duration", "timestamp"], "timestamp", (a, b) => new CelTimestamp(a.ns + b.ns)),
  global("_+_", ["duration", "duration"], "duration", (a, b) => new CelDuration(a.ns + b.ns)),
  global("_-_", ["int", "int"], "int", (a, b) => int(a - b)),
  global("_-_", ["uint", "uint"], "uint", (a, b) => uint(a.value - b.value)),
  global("_-_", ["double", "double"], "double", (a, b) => a - b),
  global("_-_", ["timestamp", "timestamp"], "duration", (a, b) => new CelDuration(a.ns - b.ns)),
  global("_-_", ["timestamp", "duration"], "timestamp", (a, b) => new CelTimestamp(a.ns - b.ns)),
  global("_-_", ["duration", "duration"], "duration", (a, b) => new CelDuration(a.ns - b.ns)),
  global("_*_", ["int", "int"], "int", (a, b) => int(a * b)),
  global("_*_", ["uint", "uint"], "uint", (a, b) => uint(a.value * b.value)),
  global("_*_", ["double", "double"], "double", (a, b) => a * b),
  global("_/_", ["int", "int"], "int", (a, b) => int(a / nonZero(b, "division by zero"))),
  global("_/_", ["uint", "uint"], "uint", (a, b) => uint(a.value / nonZero(b.value, "division by zero"))),
  global("_/_", ["double", "double"], "double", (a, b) => a / b),
  global("_%_", ["int", "int"], "int", (a, b) => int(a % nonZero(b, "modulus by zero"))),
  global("_%_", ["uint", "uint"], "uint", (a, b) => uint(a.value % nonZero(b.value, "modulus by zero"))),
  global("-_", ["int"], "int", (a) => int(-a)),
  global("-_", ["double"], "double", (a) => -a),
  global("!_", ["bool"], "bool", (a) => !a),
];

/** Joins lists. Associative lists from a schema keep one item per identity, the later one wins for `map` lists. */
function concatenate(a: CelList, b: CelList): CelValue {
  const identity = a.identity ?? b.identity;
  if (!identity) return new ArrayList([...itemsOf(a), ...itemsOf(b)]);
  const merged = new Map<string, CelValue>();
  for (const item of [...itemsOf(a), ...itemsOf(b)]) {
    const key = identity.keyOf(item);
    if (identity.kind === "map" || !merged.has(key)) merged.set(key, item);
  }
  return new ArrayList([...merged.values()], identity);
}

const compares: OverloadOptions = {
  cost: ({ args: [a = 1, b = 1] }) => Math.ceil(Math.min(a, b) * traversalFactor),
};

/** Order of two values: negative, zero, positive; `undefined` when a NaN is involved. */
type Order = (a: CelValue, b: CelValue) => number | undefined;

const orderOf = (a: bigint | number | string, b: bigint | number | string): number | undefined =>
  a < b ? -1 : a > b ? 1 : a <= b ? 0 : undefined;

const numberOf = (value: CelValue): bigint | number => {
  if (value instanceof CelUint) return value.value;
  return typeof value === "bigint" || typeof value === "number" ? value : Number.NaN;
};

/** A UTF-16 unit shifted so that units sort as the code points they begin: surrogates above everything else. */
const sortable = (unit: number): number =>
  unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;

/** Order by code points. */
function codePointOrder(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (left !== right) return sortable(left) - sortable(right);
  }
  return a.length - b.length;
}

const orders: readonly [string, string, Order][] = [
  ...["int", "uint", "double"].flatMap((left) =>
    ["int", "uint", "double"].map((right): [string, string, Order] => [
      left,
      right,
      (a, b) => orderOf(numberOf(a), numberOf(b)),
    ]),
  ),
  ["string", "string", (a, b) => codePointOrder(String(a), String(b))],
  ["bool", "bool", (a, b) => Number(a) - Number(b)],
  [
    "bytes",
    "bytes",
    (a, b) => (a instanceof Uint8Array && b instanceof Uint8Array ? Buffer.compare(a, b) : 0),
  ],
  [
    "timestamp",
    "timestamp",
    (a, b) => (a instanceof CelTimestamp && b instanceof CelTimestamp ? orderOf(a.ns, b.ns) : 0),
  ],
  [
    "duration",
    "duration",
    (a, b) => (a instanceof CelDuration && b instanceof CelDuration ? orderOf(a.ns, b.ns) : 0),
  ],
];

const relations: readonly [string, (order: number) => boolean][] = [
  ["_<_", (order) => order < 0],
  ["_<=_", (order) => order <= 0],
  ["_>_", (order) => order > 0],
  ["_>=_", (order) => order >= 0],
];

const comparisons: readonly Overload[] = relations.flatMap(([name, holds]) =>
  orders.map(([left, right, order]) =>
    global(
      name,
      [left, right],
      "bool",
      (a, b) => {
        const found = order(a, b);
        return found !== undefined && holds(found);
      },
      left === "string" || left === "bytes" ? compares : {},
    ),
  ),
);

/** How any two orderable values compare, for sorting and extremes; an error when they do not. */
export function compareValues(a: CelValue, b: CelValue): number {
  if (typeof a === "string" && typeof b === "string") return codePointOrder(a, b);
  if (typeof a === "bigint" && typeof b === "bigint") return a < b ? -1 : a > b ? 1 : 0;
  const found = orders.find(([left, right]) => left === orderName(a) && right === orderName(b))?.[2](a, b);
  if (found === undefined) throw new CelError("no such overload");
  return found;
}

function orderName(value: CelValue): string {
  if (value instanceof CelTimestamp) return "timestamp";
  return value instanceof CelDuration ? "duration" : typeNameOf(value);
}

/** Most units charged at once for a deep comparison; a budget is far smaller. */
const deepLimit = 10_000_000;

const comparesDeep: OverloadOptions = {
  ...compares,
  charge: ([a = null, b = null]) => 1.5 * Math.min(deepSizeOf(a, deepLimit), deepSizeOf(b, deepLimit)),
};

const equality: readonly Overload[] = [
  global("_==_", ["A", "A"], "bool", (a, b) => equalValues(a, b), comparesDeep),
  global("_!=_", ["A", "A"], "bool", (a, b) => !equalValues(a, b), comparesDeep),
  global(
    "@in",
    ["A", "list(A)"],
    "bool",
    (item, list) => {
      for (let i = 0; i < list.length; i++) if (equalValues(item, list.at(i))) return true;
      return false;
    },
    {
      cost: ({ args: [, length = 1] }) => Math.max(1, length),
      charge: ([item = null, list = null]) =>
        typeof item === "object" && item !== null ? deepSizeOf(list, deepLimit) : sizeOf(list),
    },
  ),
  global("@in", ["A", "map(A, B)"], "bool", (key, map) => map.get(key) !== undefined, {
    charge: fixedCharge(4),
  }),
];

/** Counting code points looks at all of a text. */
const counting: OverloadOptions = {
  charge: ([value = null]) => (typeof value === "string" ? 2 + value.length / 10 : 4),
};

const sizes: readonly Overload[] = (["string", "bytes", "list(A)", "map(A, B)"] as const).flatMap((type) => [
  global("size", [type], "int", sizeOfAny, counting),
  member("size", [type], "int", sizeOfAny, counting),
]);

function sizeOfAny(value: CelValue): bigint {
  if (typeof value === "string") return BigInt(codePoints(value));
  if (value instanceof Uint8Array) return BigInt(value.length);
  if (typeof value === "object" && value !== null) {
    if ("isList" in value) return BigInt(value.length);
    if ("isMap" in value) return BigInt(value.size);
  }
  throw new CelError("no such overload");
}

const texts: readonly Overload[] = [
  member("contains", ["string", "string"], "bool", (text, part) => text.includes(part), { cost: searches }),
  member("startsWith", ["string", "string"], "bool", (text, part) => text.startsWith(part), {
    cost: ({ args: [, part = 1] }) => Math.max(1, Math.ceil(part * traversalFactor)),
  }),
  member("endsWith", ["string", "string"], "bool", (text, part) => text.endsWith(part), {
    cost: ({ args: [, part = 1] }) => Math.max(1, Math.ceil(part * traversalFactor)),
  }),
];

/** All standard overloads. */
export const standardLibrary: readonly Overload[] = [
  ...arithmetic,
  ...comparisons,
  ...equality,
  ...sizes,
  ...texts,
];
