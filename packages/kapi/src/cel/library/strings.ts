/**
 * Extended strings (cel-go "ext.Strings"): positions and lengths count code points.
 */
import { CelError } from "../error.ts";
import {
  global,
  lookedThrough,
  member,
  searches,
  traversalFactor,
  traverses,
  traversesFirst,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import { ArrayList, itemsOf, sizeOf, type CelList } from "../value.ts";
import { formatText } from "./format-text.ts";

/** Longest string an operation may build: nothing larger could be stored anyway. */
export const maxStringLength = 3 * 1024 * 1024;

const surrogate = /[\ud800-\udfff]/;

/** A text seen as code points; plain texts are indexed as they are. */
class Points {
  readonly #text: string;
  readonly #points: readonly string[] | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#points = surrogate.test(text) ? Array.from(text) : undefined;
  }

  get length(): number {
    return this.#points?.length ?? this.#text.length;
  }

  slice(from: number, to: number): string {
    return this.#points ? this.#points.slice(from, to).join("") : this.#text.slice(from, to);
  }

  /** Code units before a code point, and back. */
  unitsBefore(point: number): number {
    return this.#points ? this.slice(0, point).length : point;
  }

  pointsBefore(unit: number): number {
    return this.#points ? Array.from(this.#text.slice(0, unit)).length : unit;
  }
}

function position(points: Points, index: bigint): number {
  if (index < 0n || index > BigInt(points.length)) throw new CelError(`index out of range: ${index}`);
  return Number(index);
}

function charAt(text: string, index: bigint): string {
  const points = new Points(text);
  const at = position(points, index);
  return points.slice(at, at + 1);
}

function substring(text: string, from: bigint, to?: bigint): string {
  const points = new Points(text);
  const start = position(points, from);
  const end = to === undefined ? points.length : position(points, to);
  if (start > end) throw new CelError(`invalid substring range. start: ${start}, end: ${end}`);
  return points.slice(start, end);
}

function indexOf(text: string, part: string, from = 0n): bigint {
  const points = new Points(text);
  const start = position(points, from);
  const unit = text.indexOf(part, points.unitsBefore(start));
  return unit < 0 ? -1n : BigInt(points.pointsBefore(unit));
}

function lastIndexOf(text: string, part: string, from?: bigint): bigint {
  const points = new Points(text);
  if (part === "") return from ?? BigInt(points.length);
  const limit = from === undefined ? points.length : position(points, from);
  const unit = text.lastIndexOf(part, points.unitsBefore(limit));
  return unit < 0 ? -1n : BigInt(points.pointsBefore(unit));
}

function bounded(text: string): string {
  if (text.length > maxStringLength) throw new CelError("string is too long");
  return text;
}

function replace(text: string, old: string, by: string, limit = -1n): string {
  if (limit === 0n) return text;
  const growth = old === "" ? text.length + 1 : Math.floor(text.length / old.length);
  if (text.length + growth * by.length > maxStringLength) throw new CelError("string is too long");
  if (limit < 0n)
    return old === "" ? [...text].reduce((out, c) => out + c + by, by) : text.replaceAll(old, () => by);
  const parts: string[] = [];
  let rest = text;
  for (let i = 0n; i < limit; i++) {
    if (old === "") {
      const [first = ""] = rest;
      parts.push(i === 0n ? "" : first);
      if (i > 0n) rest = rest.slice(first.length);
      if (i > 0n && first === "") break;
    } else {
      const at = rest.indexOf(old);
      if (at < 0) break;
      parts.push(rest.slice(0, at));
      rest = rest.slice(at + old.length);
    }
    parts.push(by);
  }
  return bounded(parts.join("") + rest);
}

function split(text: string, separator: string, limit = -1n): CelList {
  if (limit === 0n) return new ArrayList([]);
  if (limit === 1n) return new ArrayList([text]);
  const parts = separator === "" ? Array.from(text) : text.split(separator);
  if (limit < 0n || BigInt(parts.length) <= limit) return new ArrayList(parts);
  const count = Number(limit) - 1;
  return new ArrayList([...parts.slice(0, count), parts.slice(count).join(separator)]);
}

function join(list: CelList, separator = ""): string {
  const texts = itemsOf(list).map((item) => {
    if (typeof item !== "string") throw new CelError("no such overload");
    return item;
  });
  const length = texts.reduce((sum, text) => sum + text.length + separator.length, 0);
  if (length > maxStringLength) throw new CelError("string is too long");
  return texts.join(separator);
}

// Unicode white space, as Go's strings.TrimSpace takes it.
const trim = (text: string): string => text.replace(/^[\s\u0085]+/u, "").replace(/[\s\u0085]+$/u, "");

const ascii = (text: string, upper: boolean): string =>
  text.replace(upper ? /[a-z]+/g : /[A-Z]+/g, (run) => (upper ? run.toUpperCase() : run.toLowerCase()));

/** A Go-like quoted text: control characters escaped, everything else as it is. */
function quote(text: string): string {
  return `"${text.replace(/[\\"\x07\b\f\n\r\t\v]/g, (c) => quoted[c] ?? c)}"`;
}

const quoted: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  '"': '\\"',
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

const same: OverloadOptions = { cost: traversesFirst, resultSize: ({ args: [size = 0] }) => size };
const search: OverloadOptions = { cost: searches };
const replacing: OverloadOptions = {
  charge: ([text = null]) => 5 + sizeOf(text) / 2,
  cost: ({ args: [text = 0] }) => Math.max(1, Math.ceil(text * traversalFactor * 2)),
  resultSize: ({ args: [text = 0, old = 0, by = 0] }) =>
    Math.max(text, (text + 1) * Math.max(1, old === 1 ? by : by)),
};
const splitting: OverloadOptions = {
  charge: ([text = null]) => 5 + sizeOf(text) / 2,
  cost: traversesFirst,
  resultSize: ({ args: [text = 0] }) => Math.max(1, text),
  itemSize: ({ args: [text = 0] }) => text,
};
const joining: OverloadOptions = {
  charge: lookedThrough,
  cost: ({ args: [length = 0, separator = 0], items: [item = 1] }) =>
    Math.max(1, Math.ceil(length * (item + separator) * traversalFactor)),
  resultSize: ({ args: [length = 0, separator = 0], items: [item = 1] }) => length * (item + separator),
};

/** All overloads of the extended strings. */
export const stringLibrary: readonly Overload[] = [
  member("charAt", ["string", "int"], "string", charAt, { cost: traversesFirst, resultSize: () => 1 }),
  member("indexOf", ["string", "string"], "int", (text, part) => indexOf(text, part), search),
  member("indexOf", ["string", "string", "int"], "int", indexOf, search),
  member("lastIndexOf", ["string", "string"], "int", (text, part) => lastIndexOf(text, part), search),
  member("lastIndexOf", ["string", "string", "int"], "int", lastIndexOf, search),
  member("lowerAscii", ["string"], "string", (text) => ascii(text, false), same),
  member("upperAscii", ["string"], "string", (text) => ascii(text, true), same),
  member("trim", ["string"], "string", trim, same),
  member("substring", ["string", "int"], "string", (text, from) => substring(text, from), same),
  member("substring", ["string", "int", "int"], "string", substring, same),
  member(
    "replace",
    ["string", "string", "string"],
    "string",
    (text, old, by) => replace(text, old, by),
    replacing,
  ),
  member("replace", ["string", "string", "string", "int"], "string", replace, replacing),
  member("reverse", ["string"], "string", (text) => Array.from(text).reverse().join(""), {
    ...same,
    charge: ([text = null]) => 10 + sizeOf(text),
  }),
  member("split", ["string", "string"], "list(string)", (text, by) => split(text, by), splitting),
  member("split", ["string", "string", "int"], "list(string)", split, splitting),
  member("join", ["list(string)"], "string", (list) => join(list), joining),
  member("join", ["list(string)", "string"], "string", join, joining),
  global("strings.quote", ["string"], "string", quote, {
    cost: traversesFirst,
    resultSize: ({ args: [size = 0] }) => size * 2 + 2,
  }),
  member(
    "format",
    ["string", "list(dyn)"],
    "string",
    (text, args) => bounded(formatText(text, itemsOf(args))),
    {
      cost: traverses,
      charge: (args) => 20 + 12 * lookedThrough(args),
      resultSize: ({ args: [text = 0, count = 0], items: [item = 1] }) => text + count * item,
    },
  ),
];
