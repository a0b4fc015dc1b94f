/**
 * List and map literals, and the macros that loop.
 */
import type { Expr, LoopMacro } from "./ast.ts";
import { expectBool, type Compiled, type Context } from "./compiled.ts";
import { CelError } from "./error.ts";
import { runLoop } from "./loop.ts";
import { sizeBound } from "./size.ts";
import { join, listOf, mapOf, optionalOf, printType, types, type CelType } from "./type.ts";
import { ArrayList, CelOptional, EntryMap, none, type CelValue } from "./value.ts";

const listCost = 10;
const mapCost = 30;

/** Compiles a list literal; `isMixed` allows items of several types. */
export function compileList(c: Context, expr: Extract<Expr, { kind: "list" }>, isMixed = false): Compiled {
  const items = expr.items.map(({ value, optional }) => ({
    ...c.compile(value),
    optional,
    at: value.at,
  }));
  let item: CelType | undefined;
  for (const { type, optional, at } of items) {
    const own = optional ? optionalItem(c, at, type) : type;
    const joined = item ? (join(item, own) ?? (isMixed ? types.dyn : undefined)) : own;
    if (!joined) c.fail(at, `expected type '${printType(item ?? own)}' but found '${printType(own)}'`);
    item = joined;
  }
  return {
    type: listOf(item ?? types.dyn, items.length),
    cost: items.reduce((total, { cost }) => total + cost, listCost),
    run: (frame) => {
      frame.meter.spend(listCost);
      const values: CelValue[] = [];
      for (const { run, optional } of items) {
        const value = run(frame);
        if (!optional) values.push(value);
        else if (value instanceof CelOptional && value.value !== undefined) values.push(value.value);
      }
      return new ArrayList(values);
    },
  };
}

function optionalItem(c: Context, at: number, type: CelType): CelType {
  if (type.kind === "dyn") return type;
  if (type.kind !== "optional")
    c.fail(at, `expected type 'optional_type(dyn)' but found '${printType(type)}'`);
  return type.item;
}

/** Compiles a map literal. */
export function compileMap(c: Context, expr: Extract<Expr, { kind: "map" }>): Compiled {
  const entries = expr.entries.map(({ key, value, optional }) => ({
    key: c.compile(key),
    value: c.compile(value),
    optional,
    at: key.at,
  }));
  let keyType: CelType | undefined;
  let valueType: CelType | undefined;
  for (const { key, value, optional, at } of entries) {
    const own = optional ? optionalItem(c, at, value.type) : value.type;
    const joinedKey = keyType ? join(keyType, key.type) : key.type;
    const joinedValue = valueType ? join(valueType, own) : own;
    if (!joinedKey)
      c.fail(at, `expected type '${printType(keyType ?? key.type)}' but found '${printType(key.type)}'`);
    keyType = joinedKey;
    valueType = joinedValue ?? types.dyn;
  }
  return {
    type: mapOf(keyType ?? types.dyn, valueType ?? types.dyn, entries.length),
    cost: entries.reduce((total, { key, value }) => total + key.cost + value.cost, mapCost),
    run: (frame) => {
      frame.meter.spend(mapCost);
      const made: [CelValue, CelValue][] = [];
      for (const { key, value, optional } of entries) {
        const k = key.run(frame);
        const v = value.run(frame);
        if (!optional) made.push([k, v]);
        else if (v instanceof CelOptional && v.value !== undefined) made.push([k, v.value]);
      }
      return new EntryMap(made);
    },
  };
}

/** What the specification's expansion of a macro costs beside its own step. */
const loopOverhead: Readonly<Record<LoopMacro, { readonly once: number; readonly each: number }>> = {
  all: { once: 1, each: 3 },
  exists: { once: 1, each: 4 },
  existsOne: { once: 2, each: 1 },
  map: { once: 11, each: 12 },
  filter: { once: 11, each: 12 },
  sortBy: { once: 20, each: 30 },
  transformList: { once: 11, each: 12 },
  transformMap: { once: 31, each: 3 },
  transformMapEntry: { once: 31, each: 3 },
};

/** Compiles a macro that loops over a list or map. */
export function compileLoop(c: Context, expr: Extract<Expr, { kind: "loop" }>): Compiled {
  const range = c.compile(expr.range);
  const { macro, at } = expr;
  const [first = "", second] = expr.variables;
  const variables = loopVariables(c, at, range.type, first, second);
  return c.within(variables, (slots) => {
    const filter = expr.filter && c.compile(expr.filter);
    const step = c.compile(expr.step);
    if (filter) expectBool(c, expr.filter?.at ?? at, filter);
    if (macro === "all" || macro === "exists" || macro === "existsOne" || macro === "filter")
      expectBool(c, expr.step.at, step);
    const size = sizeBound(range.type);
    return {
      type: loopType(c, at, macro, range.type, step.type, size),
      cost:
        range.cost +
        loopOverhead[macro].once +
        size * (loopOverhead[macro].each + step.cost + (filter?.cost ?? 0)),
      run: runLoop(macro, range.run, slots, step.run, filter?.run),
    };
  });
}

function loopVariables(
  c: Context,
  at: number,
  range: CelType,
  first: string,
  second: string | undefined,
): readonly (readonly [string, CelType])[] {
  switch (range.kind) {
    case "list":
      return second === undefined
        ? [[first, range.item]]
        : [
            [first, types.int],
            [second, range.item],
          ];
    case "map":
      return second === undefined
        ? [[first, range.key]]
        : [
            [first, range.key],
            [second, range.value],
          ];
    case "dyn":
      return second === undefined
        ? [[first, types.dyn]]
        : [
            [first, types.dyn],
            [second, types.dyn],
          ];
    default:
      return c.fail(
        at,
        `expression of type '${printType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
      );
  }
}

function loopType(
  c: Context,
  at: number,
  macro: LoopMacro,
  range: CelType,
  step: CelType,
  size: number,
): CelType {
  const key = range.kind === "map" ? range.key : range.kind === "list" ? types.int : types.dyn;
  switch (macro) {
    case "all":
    case "exists":
    case "existsOne":
      return types.bool;
    case "sortBy":
      if (range.kind !== "list" && range.kind !== "dyn")
        c.fail(at, `found no matching overload for 'sortBy' applied to '${printType(range)}'`);
      return range;
    case "filter":
      if (range.kind === "map") return listOf(range.key, size);
      return range.kind === "list" ? range : types.dyn;
    case "map":
    case "transformList":
      return listOf(step, size);
    case "transformMap":
      return mapOf(key, step, size);
    case "transformMapEntry":
      if (step.kind !== "map" && step.kind !== "dyn")
        c.fail(at, `expected type 'map' but found '${printType(step)}'`);
      return step.kind === "map" ? mapOf(step.key, step.value, size) : types.dyn;
  }
}

/** Compiles `optMap` and `optFlatMap`. */
export function compileOptionalMap(c: Context, expr: Extract<Expr, { kind: "optionalMap" }>): Compiled {
  const operand = c.compile(expr.operand);
  const { type } = operand;
  if (type.kind !== "optional" && type.kind !== "dyn")
    c.fail(
      expr.at,
      `found no matching overload for '${expr.flat ? "optFlatMap" : "optMap"}' applied to '${printType(type)}'`,
    );
  const item = type.kind === "optional" ? type.item : types.dyn;
  return c.within([[expr.variable, item]], ([slot = 0]) => {
    const step = c.compile(expr.step);
    if (expr.flat && step.type.kind !== "optional" && step.type.kind !== "dyn")
      c.fail(expr.step.at, `expected type 'optional_type' but found '${printType(step.type)}'`);
    return {
      type: expr.flat ? step.type : optionalOf(step.type),
      cost: operand.cost + step.cost + 3,
      run: (frame) => {
        frame.meter.spend(2);
        const value = operand.run(frame);
        if (!(value instanceof CelOptional)) throw new CelError("no such overload");
        if (value.value === undefined) return none;
        frame.slots[slot] = value.value;
        const result = step.run(frame);
        return expr.flat ? result : new CelOptional(result);
      },
    };
  });
}
