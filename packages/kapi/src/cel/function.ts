/**
 * Functions of the language: overloads declared by their types, dispatched by what the arguments are at run
 * time, with a cost that both the static estimate and the run-time meter use.
 *
 * A cost is a monotonic function of argument sizes (characters, bytes, items), in the cost units of
 * the Kubernetes API: the estimate calls it with the greatest sizes a schema allows, the meter with the
 * actual ones.
 */
import { CelError } from "./error.ts";
import type { Meter } from "./meter.ts";
import { parseType, type CelType } from "./type.ts";
import {
  CelDuration,
  CelOpaque,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  deepSizeOf,
  isList,
  isMap,
  type CelList,
  type CelMap,
  type CelValue,
} from "./value.ts";

/** Cost of looking at one character, byte or item (the public cost model). */
export const traversalFactor = 0.1;

/** Weight of one character of a regular expression. */
export const regexFactor = 0.25;

/** Sizes of the arguments, receiver first, and of the items of those that are lists. */
export interface Sizes {
  readonly args: readonly number[];
  readonly items: readonly number[];
}

/** A cost or size as a monotonic function of argument sizes. */
export type Cost = (sizes: Sizes) => number;

/** What the meter charges for actual arguments. */
export type Charge = (args: readonly CelValue[]) => number;

/** One overload. */
export interface Overload {
  readonly name: string;
  readonly isMember: boolean;
  readonly params: readonly CelType[];
  readonly result: CelType;
  readonly call: (args: readonly CelValue[], meter: Meter) => CelValue;
  /** Cost beyond that of the arguments; default 1. */
  readonly cost?: Cost;
  /** What the meter charges when sizes alone do not show the work; default `cost` of the actual sizes. */
  readonly charge?: Charge;
  /** Greatest size of the result. */
  readonly resultSize?: Cost;
  /** Greatest size of an item of the list that is the result. */
  readonly itemSize?: Cost;
}

/** TypeScript type of a declared CEL type. */
type ValueOf<T extends string> = T extends "string"
  ? string
  : T extends "int"
    ? bigint
    : T extends "double"
      ? number
      : T extends "bool"
        ? boolean
        : T extends "bytes"
          ? Uint8Array
          : T extends "uint"
            ? CelUint
            : T extends "timestamp"
              ? CelTimestamp
              : T extends "duration"
                ? CelDuration
                : T extends `list(${string}`
                  ? CelList
                  : T extends `map(${string}`
                    ? CelMap
                    : T extends `optional(${string}`
                      ? CelOptional
                      : CelValue;

type Values<P extends readonly string[]> = { readonly [I in keyof P]: ValueOf<P[I]> };

/** What a declaration may add. */
export type OverloadOptions = Pick<Overload, "cost" | "charge" | "resultSize" | "itemSize">;

function declare<const P extends readonly string[]>(
  name: string,
  isMember: boolean,
  params: P,
  result: string,
  implementation: (...args: Values<P>) => CelValue,
  options: OverloadOptions,
): Overload {
  return {
    name,
    isMember,
    params: params.map(parseType),
    result: parseType(result),
    // The dispatcher calls an overload only with arguments that match its parameters.
    call: (args) => implementation(...(args as unknown as Values<P>)),
    ...options,
  };
}

/** Declares `name(args…)`. */
export function global<const P extends readonly string[]>(
  name: string,
  params: P,
  result: string,
  implementation: (...args: Values<P>) => CelValue,
  options: OverloadOptions = {},
): Overload {
  return declare(name, false, params, result, implementation, options);
}

/** Declares `receiver.name(args…)`; the receiver is the first parameter. */
export function member<const P extends readonly string[]>(
  name: string,
  params: P,
  result: string,
  implementation: (...args: Values<P>) => CelValue,
  options: OverloadOptions = {},
): Overload {
  return declare(name, true, params, result, implementation, options);
}

/** Declares a function whose work only shows while it runs: it gets the meter and spends by itself. */
export function metered<const P extends readonly string[]>(
  form: "global" | "member",
  name: string,
  params: P,
  result: string,
  implementation: (meter: Meter, ...args: Values<P>) => CelValue,
  options: OverloadOptions = {},
): Overload {
  return {
    ...declare(name, form === "member", params, result, () => null, { charge: () => 1, ...options }),
    // As above: the dispatcher has checked the arguments.
    call: (args, meter) => implementation(meter, ...(args as unknown as Values<P>)),
  };
}

/** True when `value` is of `type` as far as a value shows it: the items of lists and maps are not looked at. */
export function hasType(type: CelType, value: CelValue): boolean {
  switch (type.kind) {
    case "dyn":
    case "param":
      return true;
    case "null_type":
      return value === null;
    case "bool":
      return typeof value === "boolean";
    case "int":
      return typeof value === "bigint";
    case "uint":
      return value instanceof CelUint;
    case "double":
      return typeof value === "number";
    case "string":
      return typeof value === "string";
    case "bytes":
      return value instanceof Uint8Array;
    case "timestamp":
      return value instanceof CelTimestamp;
    case "duration":
      return value instanceof CelDuration;
    case "type":
      return value instanceof CelTypeValue;
    case "optional":
      return value instanceof CelOptional;
    case "opaque":
      return value instanceof CelOpaque && value.typeName === type.name;
    case "list":
      return isList(value);
    case "map":
    case "object":
      return isMap(value);
  }
}

/** Overloads by name. */
export class FunctionTable {
  readonly #globals = new Map<string, Overload[]>();
  readonly #members = new Map<string, Overload[]>();

  constructor(overloads: Iterable<Overload>) {
    for (const overload of overloads) {
      const table = overload.isMember ? this.#members : this.#globals;
      const known = table.get(overload.name);
      if (known) known.push(overload);
      else table.set(overload.name, [overload]);
    }
  }

  /** Overloads called `name(…)`. */
  globals(name: string): readonly Overload[] {
    return this.#globals.get(name) ?? [];
  }

  /** Overloads called `receiver.name(…)`. */
  members(name: string): readonly Overload[] {
    return this.#members.get(name) ?? [];
  }

  /** Names that exist as functions of either form. */
  has(name: string): boolean {
    return this.#globals.has(name) || this.#members.has(name);
  }
}

/** The overload that fits the values, or an evaluation error. */
export function dispatch(candidates: readonly Overload[], args: readonly CelValue[]): Overload {
  for (const overload of candidates) {
    if (overload.params.length !== args.length) continue;
    let fits = true;
    for (let i = 0; i < args.length && fits; i++) {
      const param = overload.params[i];
      const arg = args[i];
      fits = param !== undefined && arg !== undefined && hasType(param, arg);
    }
    if (fits) return overload;
  }
  throw new CelError("no such overload");
}

/** Cost of looking at all arguments once. */
export const traverses: Cost = ({ args }) =>
  Math.ceil(args.reduce((sum, size) => sum + size, 0) * traversalFactor);

/** Cost of looking at the receiver once. */
export const traversesFirst: Cost = ({ args: [first = 1] }) => Math.ceil(first * traversalFactor);

/** Cost of looking for the second argument in the first. */
export const searches: Cost = ({ args: [text = 0, part = 0] }) =>
  Math.ceil(text * traversalFactor) * Math.ceil(part * traversalFactor);

/** Cost of matching the first argument with the regular expression that is the second. */
export const matchesRegex: Cost = ({ args: [text = 0, pattern = 0] }) =>
  Math.max(1, Math.ceil((text + 1) * traversalFactor) * Math.ceil(pattern * regexFactor));

/** Most units charged at once for looking at all of a value: more than any budget. */
const deepLimit = 10_000_000;

/** What looking at every scalar inside all arguments costs at run time. */
export const lookedThrough: Charge = (args) =>
  args.reduce<number>((total, arg) => total + deepSizeOf(arg, deepLimit), 1);

/** A fixed run-time price, for functions that parse or build something of bounded size. */
export const fixedCharge =
  (units: number): Charge =>
  () =>
    units;

/** Cost of comparing every item of the list that is the first argument. */
export const comparesItems: Cost = ({ args: [length = 0], items: [item = 1] }) =>
  Math.max(1, length * (1 + Math.ceil(item * traversalFactor)));
