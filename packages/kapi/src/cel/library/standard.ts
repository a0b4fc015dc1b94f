/**
 * Standard functions and operators (cel-spec "List of Standard Definitions"), with the comparisons across
 * number types that the Kubernetes environments turn on.
 *
 * Logical operators, the conditional and the index operator are part of the evaluator.
 */
import { formatRfc3339, parseRfc3339 } from "../timestamp.ts";
import { CelError } from "../error.ts";
import { parseGoDuration } from "../../schema/formats.ts";
import { printGoFloat } from "../../schema/go-print.ts";
import {
  fixedCharge,
  global,
  member,
  searches,
  traversalFactor,
  traverses,
  traversesFirst,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import {
  ArrayList,
  CelDuration,
  CelTimestamp,
  CelTypeValue,
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

function int(value: bigint): bigint {
  if (value !== BigInt.asIntN(64, value)) throw new CelError("integer overflow");
  return value;
}

function uint(value: bigint): CelUint {
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
  cost: ({ args: [a = 1, b = 1] }) => Math.max(1, Math.ceil(Math.min(a, b) * traversalFactor)),
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

const timestampText = (value: CelTimestamp): string => formatRfc3339(value.ns);

/** Seconds with as many decimals as needed, the JSON form of a duration. */
export function durationText(value: CelDuration): string {
  const sign = value.ns < 0n ? "-" : "";
  const ns = value.ns < 0n ? -value.ns : value.ns;
  const fraction = String(ns % 1_000_000_000n)
    .padStart(9, "0")
    .replace(/0+$/, "");
  return `${sign}${ns / 1_000_000_000n}${fraction === "" ? "" : `.${fraction}`}s`;
}

function parseInteger(text: string): bigint {
  if (!/^[+-]?\d{1,20}$/.test(text))
    throw new CelError(`strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, 64))}: invalid syntax`);
  return int(BigInt(text.replace(/^\+/, "")));
}

function parseDouble(text: string): number {
  if (!/^[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)$/i.test(text.slice(0, 400)))
    throw new CelError(`strconv.ParseFloat: parsing ${JSON.stringify(text.slice(0, 64))}: invalid syntax`);
  const word = text.toLowerCase().replace(/^[+-]/, "");
  if (word.startsWith("inf")) return text.startsWith("-") ? -Infinity : Infinity;
  return Number(text);
}

function truncate(value: number): bigint {
  if (!Number.isFinite(value) || value >= 2 ** 63 || value <= -(2 ** 63))
    throw new CelError("integer overflow");
  return BigInt(Math.trunc(value));
}

function parseBool(text: string): boolean {
  if (["1", "t", "true", "TRUE", "True", "T"].includes(text)) return true;
  if (["0", "f", "false", "FALSE", "False", "F"].includes(text)) return false;
  throw new CelError(`type conversion error from 'string' to 'bool'`);
}

function parseDuration(text: string): CelDuration {
  const ns = parseGoDuration(text);
  if (ns === undefined) throw new CelError(`time: invalid duration ${JSON.stringify(text.slice(0, 64))}`);
  return new CelDuration(ns);
}

function parseTimestamp(text: string): CelTimestamp {
  const ns = parseRfc3339(text);
  if (ns === undefined) throw new CelError(`invalid timestamp ${JSON.stringify(text.slice(0, 64))}`);
  return new CelTimestamp(ns);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new CelError("invalid UTF-8 in bytes, cannot convert to string");
  }
}

const sameSize: OverloadOptions = { cost: traversesFirst, resultSize: ({ args: [a = 0] }) => a };
const shortText: OverloadOptions = { resultSize: () => 40, charge: fixedCharge(20) };
/** The public cost model takes parsing for constant; texts that parse are short, others are refused early. */
const parses: OverloadOptions = { charge: ([text = ""]) => 30 + sizeOf(text) * traversalFactor };

const conversions: readonly Overload[] = [
  global("int", ["int"], "int", (v) => v),
  global("int", ["uint"], "int", (v) => int(v.value)),
  global("int", ["double"], "int", truncate),
  global("int", ["string"], "int", parseInteger, parses),
  global("int", ["timestamp"], "int", (v) => floorDiv(v.ns, 1_000_000_000n)),
  global("int", ["duration"], "int", (v) => v.ns),
  global("uint", ["uint"], "uint", (v) => v),
  global("uint", ["int"], "uint", uint),
  global("uint", ["double"], "uint", (v) => uint(truncate(v))),
  global("uint", ["string"], "uint", (v) => uint(parseInteger(v)), parses),
  global("double", ["double"], "double", (v) => v),
  global("double", ["int"], "double", (v) => Number(v)),
  global("double", ["uint"], "double", (v) => Number(v.value)),
  global("double", ["string"], "double", parseDouble, parses),
  global("string", ["string"], "string", (v) => v, { resultSize: ({ args: [a = 0] }) => a }),
  global("string", ["bool"], "string", (v) => String(v), shortText),
  global("string", ["int"], "string", (v) => String(v), shortText),
  global("string", ["uint"], "string", (v) => String(v.value), shortText),
  global("string", ["double"], "string", (v) => printGoFloat(v), shortText),
  global("string", ["bytes"], "string", decodeUtf8, sameSize),
  global("string", ["timestamp"], "string", timestampText, shortText),
  global("string", ["duration"], "string", durationText, shortText),
  global("bytes", ["bytes"], "bytes", (v) => v, { resultSize: ({ args: [a = 0] }) => a }),
  global("bytes", ["string"], "bytes", (v) => Buffer.from(v, "utf8"), {
    cost: traversesFirst,
    resultSize: ({ args: [a = 0] }) => a * 4,
  }),
  global("bool", ["bool"], "bool", (v) => v),
  global("bool", ["string"], "bool", parseBool),
  global("duration", ["duration"], "duration", (v) => v),
  global("duration", ["string"], "duration", parseDuration, parses),
  global("duration", ["int"], "duration", (v) => new CelDuration(v)),
  global("timestamp", ["timestamp"], "timestamp", (v) => v),
  global("timestamp", ["string"], "timestamp", parseTimestamp, parses),
  global("timestamp", ["int"], "timestamp", (v) => new CelTimestamp(v * 1_000_000_000n)),
  global("dyn", ["A"], "dyn", (v) => v),
  global("type", ["A"], "type", (v) => new CelTypeValue(typeNameOf(v))),
];

function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}

/** The calendar fields of a timestamp in a time zone: UTC, a fixed offset or an IANA name. */
function calendar(value: CelTimestamp, zone: string): Date {
  const ms = Number(floorDiv(value.ns, 1_000_000n));
  if (zone === "" || zone === "UTC" || zone === "Z") return new Date(ms);
  const offset = /^([+-]?)(\d{2}):(\d{2})$/.exec(zone);
  if (offset) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    return new Date(ms + (offset[1] === "-" ? -minutes : minutes) * 60_000);
  }
  try {
    const parts = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    }).formatToParts(new Date(ms));
    const part = (type: string): number => Number(parts.find((p) => p.type === type)?.value ?? 0);
    const milliseconds = ((ms % 1000) + 1000) % 1000;
    return new Date(
      Date.UTC(
        part("year"),
        part("month") - 1,
        part("day"),
        part("hour"),
        part("minute"),
        part("second"),
        milliseconds,
      ),
    );
  } catch {
    throw new CelError(`unknown time zone ${zone.slice(0, 64)}`);
  }
}

const dayOfYear = (date: Date): number =>
  Math.round(
    (Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()) -
      Date.UTC(date.getUTCFullYear(), 0, 1)) /
      86_400_000,
  );

const calendarFields: readonly [string, (date: Date) => number][] = [
  ["getFullYear", (d) => d.getUTCFullYear()],
  ["getMonth", (d) => d.getUTCMonth()],
  ["getDayOfYear", dayOfYear],
  ["getDayOfMonth", (d) => d.getUTCDate() - 1],
  ["getDate", (d) => d.getUTCDate()],
  ["getDayOfWeek", (d) => d.getUTCDay()],
  ["getHours", (d) => d.getUTCHours()],
  ["getMinutes", (d) => d.getUTCMinutes()],
  ["getSeconds", (d) => d.getUTCSeconds()],
  ["getMilliseconds", (d) => d.getUTCMilliseconds()],
];

const durationUnits: readonly [string, bigint][] = [
  ["getHours", 3_600_000_000_000n],
  ["getMinutes", 60_000_000_000n],
  ["getSeconds", 1_000_000_000n],
];

/** Reading a calendar field in a named zone costs far more than other calls. */
const zoneLookup: OverloadOptions = { charge: fixedCharge(3000) };

const times: readonly Overload[] = [
  ...calendarFields.flatMap(([name, read]) => [
    member(name, ["timestamp"], "int", (v) => BigInt(read(calendar(v, ""))), { charge: fixedCharge(10) }),
    member(name, ["timestamp", "string"], "int", (v, zone) => BigInt(read(calendar(v, zone))), zoneLookup),
  ]),
  ...durationUnits.map(([name, unit]) => member(name, ["duration"], "int", (v) => v.ns / unit)),
  member("getMilliseconds", ["duration"], "int", (v) => (v.ns / 1_000_000n) % 1000n),
];

/** All standard overloads. */
export const standardLibrary: readonly Overload[] = [
  ...arithmetic,
  ...comparisons,
  ...equality,
  ...sizes,
  ...texts,
  ...conversions,
  ...times,
];
