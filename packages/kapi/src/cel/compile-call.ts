/**
 * Calls: functions, operators, and the three that evaluate lazily (`&&`, `||`, `?:`).
 */
import { parseGoDuration } from "../schema/formats.ts";
import { compilePattern } from "../schema/pattern.ts";
import type { Expr } from "./ast.ts";
import { compileIndex } from "./compile-access.ts";
import { expectBool, type Compiled, type Context, type Frame, type Run } from "./compiled.ts";
import { dottedName } from "./name.ts";
import { CelError } from "./error.ts";
import { dispatch, type Overload, type Sizes } from "./function.ts";
import { asBool } from "./loop.ts";
import { absorbedErrorCost } from "./meter.ts";
import { itemBound, sizeBound, withItemSize, withSize } from "./size.ts";
import { parseRfc3339 } from "./timestamp.ts";
import { assignable, join, printType, substitute, types, type Bindings, type CelType } from "./type.ts";
import { isList, sizeOf, type CelValue } from "./value.ts";

const isPattern = (text: string): boolean => !("error" in compilePattern(text));

const literalChecks: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["matches", isPattern],
  ["find", isPattern],
  ["findAll", isPattern],
  ["duration", (text: string) => parseGoDuration(text) !== undefined],
  ["timestamp", (text: string) => parseRfc3339(text) !== undefined],
]);

/** Compiles a call. */
export function compileCall(c: Context, expr: Extract<Expr, { kind: "call" }>): Compiled {
  const { at, name, target } = expr;
  switch (name) {
    case "_&&_":
    case "_||_":
      return compileLogical(c, expr);
    case "_?_:_":
      return compileConditional(c, expr);
    case "_[_]":
    case "_[?_]":
      return compileIndex(c, expr);
  }
  if (target) {
    const prefix = dottedName(target);
    const qualified = prefix === undefined ? undefined : `${prefix}.${name}`;
    if (qualified !== undefined && !c.declares(prefix?.split(".")[0] ?? "")) {
      const globals = c.functions.globals(qualified);
      if (globals.length > 0)
        return applyOverloads(
          c,
          at,
          qualified,
          false,
          globals,
          expr.args.map((arg) => c.compile(arg)),
        );
    }
    const members = c.functions.members(name);
    if (members.length === 0) c.fail(at, `undeclared reference to '${name}' (in container '')`);
    // The arguments of a format may be of any mix of types; every other literal is of one type.
    const isFormat = name === "format";
    checkLiterals(c, name, expr.args);
    const args = expr.args.map((arg) =>
      isFormat && arg.kind === "list" ? c.mixedList(arg) : c.compile(arg),
    );
    return applyOverloads(c, at, name, true, members, [c.compile(target), ...args]);
  }
  const globals = c.functions.globals(name);
  if (globals.length === 0) c.fail(at, `undeclared reference to '${name}' (in container '')`);
  checkLiterals(c, name, name === "matches" ? expr.args.slice(1) : expr.args);
  return applyOverloads(
    c,
    at,
    name,
    false,
    globals,
    expr.args.map((arg) => c.compile(arg)),
  );
}

/** Literals that can only fail are refused now: patterns, durations, timestamps. */
function checkLiterals(c: Context, name: string, [arg]: readonly Expr[]): void {
  if (arg?.kind !== "const" || typeof arg.value !== "string") return;
  const isValid = literalChecks.get(name)?.(arg.value) ?? true;
  if (!isValid) c.fail(arg.at, `invalid ${name} argument`);
}

function applyOverloads(
  c: Context,
  at: number,
  name: string,
  isMember: boolean,
  overloads: readonly Overload[],
  args: readonly Compiled[],
): Compiled {
  const found: { readonly overload: Overload; readonly bindings: Bindings }[] = [];
  for (const overload of overloads) {
    if (overload.params.length !== args.length) continue;
    const bindings: Bindings = new Map();
    if (overload.params.every((param, i) => assignable(param, args[i]?.type ?? types.dyn, bindings)))
      found.push({ overload, bindings });
  }
  const [first] = found;
  if (!first) {
    const [receiver, ...rest] = args.map((arg) => printType(arg.type));
    const shown = isMember
      ? `${receiver}.(${rest.join(", ")})`
      : `(${[receiver, ...rest].filter((t) => t !== undefined).join(", ")})`;
    c.fail(at, `found no matching overload for '${name}' applied to '${shown}'`);
  }
  const sizes: Sizes = {
    args: args.map((arg) => sizeBound(arg.type)),
    items: args.map((arg) => itemBound(arg.type)),
  };
  let cost = 0;
  let type: CelType | undefined;
  for (const { overload, bindings } of found) {
    cost = Math.max(cost, overload.cost?.(sizes) ?? 1);
    const result = substitute(overload.result, bindings);
    const sized = withItemSize(
      overload.resultSize ? withSize(result, overload.resultSize(sizes)) : result,
      overload.itemSize?.(sizes),
    );
    type = type ? (join(type, sized) ?? types.dyn) : sized;
  }
  const argCost = args.reduce((total, arg) => total + arg.cost, 0);
  return {
    type: type ?? types.dyn,
    cost: cost + argCost,
    run: runCall(
      found.map(({ overload }) => overload),
      args,
    ),
  };
}

function compileLogical(c: Context, expr: Extract<Expr, { kind: "call" }>): Compiled {
  const [left, right] = expr.args.map((arg) => {
    const compiled = c.compile(arg);
    if (compiled.type.kind !== "bool" && compiled.type.kind !== "dyn")
      c.fail(
        expr.at,
        `found no matching overload for '${expr.name}' applied to '(${printType(compiled.type)})'`,
      );
    return compiled;
  });
  if (!left || !right) throw new Error("logical operator without operands");
  const decisive = expr.name === "_||_";
  const a = left.run;
  const b = right.run;
  return {
    type: types.bool,
    cost: left.cost + right.cost,
    run: (frame) => {
      let first: boolean;
      try {
        first = asBool(a(frame));
      } catch (error) {
        if (!(error instanceof CelError)) throw error;
        frame.meter.spend(absorbedErrorCost);
        if (asBool(b(frame)) === decisive) return decisive;
        throw error;
      }
      return first === decisive ? decisive : asBool(b(frame));
    },
  };
}

function compileConditional(c: Context, expr: Extract<Expr, { kind: "call" }>): Compiled {
  const [condition, yes, no] = expr.args.map((arg) => c.compile(arg));
  if (!condition || !yes || !no) throw new Error("conditional without operands");
  expectBool(c, expr.at, condition);
  const type = join(yes.type, no.type);
  if (!type) {
    c.fail(
      expr.at,
      `found no matching overload for '_?_:_' applied to '(bool, ${printType(yes.type)}, ${printType(no.type)})'`,
    );
  }
  const size = Math.max(sizeBound(yes.type), sizeBound(no.type));
  return {
    type: withSize(type, size),
    cost: condition.cost + Math.max(yes.cost, no.cost),
    run: (frame) => (asBool(condition.run(frame)) ? yes.run(frame) : no.run(frame)),
  };
}

function runCall(candidates: readonly Overload[], args: readonly Compiled[]): Run {
  const [only] = candidates;
  const isCertain =
    candidates.length === 1 && args.every((arg) => arg.type.kind !== "dyn" && arg.type.kind !== "null_type");
  const finish = (frame: Frame, values: readonly CelValue[]): CelValue => {
    const overload = isCertain && only && !values.includes(null) ? only : dispatch(candidates, values);
    frame.meter.spend(chargeOf(overload, values));
    return overload.call(values, frame.meter);
  };
  const [first, second] = args.map((arg) => arg.run);
  if (args.length === 1 && first) return (frame) => finish(frame, [first(frame)]);
  if (args.length === 2 && first && second) return (frame) => finish(frame, [first(frame), second(frame)]);
  const runs = args.map((arg) => arg.run);
  return (frame) =>
    finish(
      frame,
      runs.map((run) => run(frame)),
    );
}

function chargeOf(overload: Overload, values: readonly CelValue[]): number {
  if (overload.charge) return overload.charge(values);
  if (!overload.cost) return 1;
  return Math.max(1, overload.cost({ args: values.map(sizeOf), items: values.map(firstItemSize) }));
}

/** The size of a list's largest item among the first few: what the meter assumes of all. */
function firstItemSize(value: CelValue): number {
  if (!isList(value)) return 1;
  let size = 1;
  for (let i = 0; i < value.length && i < 8; i++) size = Math.max(size, sizeOf(value.at(i)));
  return size;
}
