/**
 * Lists: the Kubernetes list functions, the extended lists and sets of cel-go.
 */
import { CelError } from "../error.ts";
import {
  comparesItems,
  global,
  lookedThrough,
  member,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import {
  ArrayList,
  CelDuration,
  CelOptional,
  CelUint,
  deepSizeOf,
  equalValues,
  isList,
  itemsOf,
  none,
  sizeOf,
  type CelList,
  type CelValue,
} from "../value.ts";
import { compareValues } from "./standard.ts";

/** Longest list an operation may build. */
export const maxListLength = 1_000_000;

/** Most units charged at once: more than any budget. */
const maxDeep = 10_000_000;

/** Deepest flattening. */
const maxFlattenDepth = 100;

function isSorted(list: CelList): boolean {
  for (let i = 1; i < list.length; i++) if (compareValues(list.at(i - 1), list.at(i)) > 0) return false;
  return true;
}

function extreme(list: CelList, sign: 1 | -1, name: string): CelValue {
  if (list.length === 0) throw new CelError(`${name} called on empty list`);
  return itemsOf(list).reduce((best, item) => (compareValues(item, best) * sign < 0 ? item : best));
}

function sum(list: CelList, zero: CelValue): CelValue {
  return itemsOf(list).reduce<CelValue>((total, item) => {
    if (typeof item === "number") return (typeof total === "number" ? total : 0) + item;
    if (typeof item === "bigint") {
      const next = (typeof total === "bigint" ? total : 0n) + item;
      if (next !== BigInt.asIntN(64, next)) throw new CelError("integer overflow");
      return next;
    }
    if (item instanceof CelUint) {
      const next = (total instanceof CelUint ? total.value : 0n) + item.value;
      if (next >= 2n ** 64n) throw new CelError("unsigned integer overflow");
      return new CelUint(next);
    }
    if (item instanceof CelDuration)
      return new CelDuration((total instanceof CelDuration ? total.ns : 0n) + item.ns);
    throw new CelError("no such overload");
  }, zero);
}

function indexOf(list: CelList, item: CelValue, fromEnd: boolean): bigint {
  const items = itemsOf(list);
  const same = (other: CelValue): boolean => equalValues(item, other);
  return BigInt(fromEnd ? items.findLastIndex(same) : items.findIndex(same));
}

function slice(list: CelList, from: bigint, to: bigint): CelList {
  if (from < 0n || to < 0n)
    throw new CelError(`cannot slice(${from}, ${to}), negative indexes not supported`);
  if (from > to)
    throw new CelError(`cannot slice(${from}, ${to}), start index must be less than or equal to end index`);
  if (to > BigInt(list.length))
    throw new CelError(`cannot slice(${from}, ${to}), list is length ${list.length}`);
  return new ArrayList(itemsOf(list).slice(Number(from), Number(to)));
}

function flatten(list: CelList, depth: bigint): CelList {
  if (depth < 0n) throw new CelError("level must be non-negative");
  const out: CelValue[] = [];
  const walk = (items: CelList, left: number): void => {
    for (const item of itemsOf(items)) {
      if (left > 0 && isList(item)) walk(item, left - 1);
      else out.push(item);
      if (out.length > maxListLength) throw new CelError("list is too long");
    }
  };
  walk(list, Math.min(Number(depth), maxFlattenDepth));
  return new ArrayList(out);
}

function distinct(list: CelList): CelList {
  const scalars = new Set<unknown>();
  const others: CelValue[] = [];
  const out: CelValue[] = [];
  for (const item of itemsOf(list)) {
    if (typeof item === "string" || typeof item === "bigint" || typeof item === "boolean") {
      if (scalars.has(item)) continue;
      scalars.add(item);
    } else {
      if (others.some((other) => equalValues(other, item))) continue;
      others.push(item);
    }
    out.push(item);
  }
  return new ArrayList(out);
}

function range(end: bigint): CelList {
  if (end > BigInt(maxListLength)) throw new CelError("list is too long");
  return new ArrayList(Array.from({ length: Math.max(0, Number(end)) }, (_, i) => BigInt(i)));
}

/** Scalars are found in a table, anything else is compared with all that came before. */
function distinctWork(value: CelValue): number {
  if (typeof value !== "object" || value === null || !isList(value) || value.length === 0) return 1;
  const isScalar = typeof value.at(0) !== "object";
  return isScalar ? value.length : value.length * deepSizeOf(value, maxListLength);
}

function optionalItem(list: CelList, index: number): CelValue {
  return index >= 0 && index < list.length ? new CelOptional(list.at(index)) : none;
}

const includes = (list: CelList, item: CelValue): boolean => {
  for (let i = 0; i < list.length; i++) if (equalValues(list.at(i), item)) return true;
  return false;
};
const containsAll = (list: CelList, wanted: CelList): boolean =>
  itemsOf(wanted).every((item) => includes(list, item));

const items: OverloadOptions = { cost: comparesItems, charge: (args) => 1.5 * lookedThrough(args) };
const product: OverloadOptions = {
  cost: ({ args: [a = 0, b = 0] }) => Math.max(1, a * b),
  charge: ([a = null, b = null]) => deepSizeOf(a, maxDeep) * Math.max(1, sizeOf(b)) + deepSizeOf(b, maxDeep),
};
const sameLength: OverloadOptions = {
  cost: ({ args: [length = 0] }) => Math.max(1, length),
  resultSize: ({ args: [length = 0] }) => length,
};
const sorting: OverloadOptions = {
  cost: ({ args: [length = 0], items: [item = 1] }) =>
    Math.max(1, length * Math.log2(length + 2) * (1 + item / 10)),
  charge: ([list = null]) => deepSizeOf(list, maxDeep) * 3 * Math.log2(sizeOf(list) + 2),
  resultSize: ({ args: [length = 0] }) => length,
};

const sums: readonly (readonly [string, CelValue])[] = [
  ["int", 0n],
  ["uint", new CelUint(0n)],
  ["double", 0],
  ["duration", new CelDuration(0n)],
];

/** `list` sorted by `keys`, which correspond item by item; stable. */
export function sortByKeys(list: readonly CelValue[], keys: readonly CelValue[]): CelList {
  const order = keys.map((key, i) => ({ key, i }));
  order.sort((a, b) => compareValues(a.key, b.key) || a.i - b.i);
  return new ArrayList(order.map(({ i }) => list[i] ?? null));
}

/** All overloads of lists and sets. */
export const listLibrary: readonly Overload[] = [
  member("isSorted", ["list(A)"], "bool", isSorted, items),
  ...sums.map(([type, zero]) => member("sum", [`list(${type})`], type, (list) => sum(list, zero), items)),
  member("min", ["list(A)"], "A", (list) => extreme(list, 1, "min"), items),
  member("max", ["list(A)"], "A", (list) => extreme(list, -1, "max"), items),
  member("indexOf", ["list(A)", "A"], "int", (list, item) => indexOf(list, item, false), items),
  member("lastIndexOf", ["list(A)", "A"], "int", (list, item) => indexOf(list, item, true), items),
  member("slice", ["list(A)", "int", "int"], "list(A)", slice, sameLength),
  member("flatten", ["list(list(A))"], "list(A)", (list) => flatten(list, 1n), {
    cost: ({ args: [length = 0], items: [item = 1] }) => Math.max(1, length * item),
    charge: ([list = null]) => 2 * deepSizeOf(list, maxDeep),
    resultSize: ({ args: [length = 0], items: [item = 1] }) => length * item,
  }),
  member("flatten", ["list(dyn)", "int"], "list(dyn)", flatten, {
    cost: ({ args: [length = 0], items: [item = 1] }) => Math.max(1, length * item),
    charge: ([list = null]) => 2 * deepSizeOf(list, maxDeep),
    resultSize: ({ args: [length = 0], items: [item = 1] }) => length * item,
  }),
  member("distinct", ["list(A)"], "list(A)", distinct, {
    cost: ({ args: [length = 0] }) => Math.max(1, length * length),
    charge: ([list = null]) => distinctWork(list),
    resultSize: ({ args: [length = 0] }) => length,
  }),
  member("reverse", ["list(A)"], "list(A)", (list) => new ArrayList(itemsOf(list).reverse()), sameLength),
  member("sort", ["list(A)"], "list(A)", (list) => sortByKeys(itemsOf(list), itemsOf(list)), sorting),
  member("first", ["list(A)"], "optional(A)", (list) => optionalItem(list, 0)),
  member("last", ["list(A)"], "optional(A)", (list) => optionalItem(list, list.length - 1)),
  global("lists.range", ["int"], "list(int)", range, {
    cost: () => 10,
    charge: ([end = 0n]) => (typeof end === "bigint" && end > 0n ? Number(end) : 1),
  }),
  global("sets.contains", ["list(A)", "list(A)"], "bool", containsAll, product),
  global(
    "sets.equivalent",
    ["list(A)", "list(A)"],
    "bool",
    (a, b) => containsAll(a, b) && containsAll(b, a),
    {
      ...product,
      charge: ([a = null, b = null]) => 2 * (product.charge?.([a, b]) ?? 1),
    },
  ),
  global(
    "sets.intersects",
    ["list(A)", "list(A)"],
    "bool",
    (a, b) => itemsOf(a).some((item) => includes(b, item)),
    product,
  ),
];
