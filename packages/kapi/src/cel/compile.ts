/**
 * One walk over the tree that checks types, prices the worst case and makes a closure to run.
 *
 * Pricing follows the public cost model of CEL (cel-go "checker/cost") with the sizes types carry, because
 * definitions written for the Kubernetes API must be judged alike. Running is metered by the same functions
 * over actual sizes, plus a charge for absorbed errors, so that a unit is a bounded piece of time.
 */
import { parseGoDuration } from "../schema/formats.ts";
import { compilePattern } from "../schema/pattern.ts";
import type { Expr, LoopMacro } from "./ast.ts";
import { CelError } from "./error.ts";
import { dispatch, type FunctionTable, type Overload, type Sizes } from "./function.ts";
import { errorAt } from "./lexer.ts";
import { parseRfc3339 } from "./timestamp.ts";
import { asBool, runLoop } from "./loop.ts";
import { absorbedErrorCost, type Meter } from "./meter.ts";
import {
  assignable,
  join,
  listOf,
  mapOf,
  optionalOf,
  printType,
  substitute,
  types,
  type Bindings,
  type CelType,
} from "./type.ts";
import {
  ArrayList,
  CelOptional,
  CelTypeValue,
  EntryMap,
  isList,
  isMap,
  none,
  printValue,
  sizeOf,
  typeNameOf,
  type CelMap,
  type CelValue,
} from "./value.ts";

/** State of one evaluation. */
export interface Frame {
  readonly slots: CelValue[];
  readonly meter: Meter;
}

/** Runs a node. */
export type Run = (frame: Frame) => CelValue;

/** A checked, priced and runnable node. */
export interface Compiled {
  readonly type: CelType;
  /** Greatest cost, in units of the public cost model. */
  readonly cost: number;
  readonly run: Run;
}

/** Size assumed where no schema bounds it: what a request may hold. */
export const unboundedSize = 3 * 1024 * 1024 - 2;

const listCost = 10;
const mapCost = 30;

const scalarKinds = new Set([
  "bool",
  "int",
  "uint",
  "double",
  "timestamp",
  "duration",
  "null_type",
  "type",
  "opaque",
  "object",
]);

/** The greatest size of a value of `type`: 1 for scalars. */
export function sizeBound(type: CelType): number {
  if (scalarKinds.has(type.kind)) return 1;
  if (type.kind === "optional") return sizeBound(type.item);
  return ("max" in type ? type.max : undefined) ?? unboundedSize;
}

const itemBound = (type: CelType): number => (type.kind === "list" ? sizeBound(type.item) : 1);

function withSize(type: CelType, max: number): CelType {
  switch (type.kind) {
    case "string":
    case "bytes":
    case "list":
    case "map":
    case "dyn":
      return { ...type, max };
    default:
      return type;
  }
}

interface Variable {
  readonly type: CelType;
  readonly slot: number;
}

const typeValues = new Map<string, string>([
  ["bool", "bool"],
  ["int", "int"],
  ["uint", "uint"],
  ["double", "double"],
  ["string", "string"],
  ["bytes", "bytes"],
  ["list", "list"],
  ["map", "map"],
  ["null_type", "null_type"],
  ["type", "type"],
  ["google.protobuf.Timestamp", "google.protobuf.Timestamp"],
  ["google.protobuf.Duration", "google.protobuf.Duration"],
  ["optional_type", "optional_type"],
]);

const isPattern = (text: string): boolean => !("error" in compilePattern(text));

const literalChecks: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["matches", isPattern],
  ["find", isPattern],
  ["findAll", isPattern],
  ["duration", (text: string) => parseGoDuration(text) !== undefined],
  ["timestamp", (text: string) => parseRfc3339(text) !== undefined],
]);

/** `a.b.c` as a dotted name, when the node is one. */
function dottedName(expr: Expr): string | undefined {
  if (expr.kind === "ident") return expr.name;
  if (expr.kind !== "select" || expr.test || expr.optional) return undefined;
  const prefix = dottedName(expr.operand);
  return prefix === undefined ? undefined : `${prefix}.${expr.field}`;
}

/** Compiles the nodes of one expression. */
export class Compiler {
  readonly #source: string;
  readonly #functions: FunctionTable;
  readonly #scope = new Map<string, Variable>();
  /** Names of declared variables the expression mentions. */
  readonly used = new Set<string>();
  #slots = 0;

  constructor(source: string, functions: FunctionTable, variables: ReadonlyMap<string, CelType>) {
    this.#source = source;
    this.#functions = functions;
    for (const [name, type] of variables) this.#scope.set(name, { type, slot: this.#slots++ });
  }

  /** Slots a frame needs. */
  get slotCount(): number {
    return this.#slots;
  }

  #fail(at: number, message: string): never {
    throw errorAt(this.#source, at, message);
  }

  compile(expr: Expr): Compiled {
    switch (expr.kind) {
      case "const": {
        const { value, type } = expr;
        return { type, cost: 0, run: () => value };
      }
      case "ident":
        return this.#ident(expr.at, expr.name);
      case "select":
        return this.#select(expr);
      case "call":
        return this.#call(expr);
      case "list":
        return this.#list(expr);
      case "map":
        return this.#map(expr);
      case "loop":
        return this.#loop(expr);
      case "optionalMap":
        return this.#optionalMap(expr);
    }
  }

  #ident(at: number, name: string): Compiled {
    const variable = this.#scope.get(name);
    if (variable) {
      this.used.add(name);
      const { slot, type } = variable;
      return {
        type,
        cost: 1,
        run: (frame) => {
          frame.meter.spend(1);
          return frame.slots[slot] ?? null;
        },
      };
    }
    const typeName = typeValues.get(name);
    if (typeName === undefined) this.#fail(at, `undeclared reference to '${name}' (in container '')`);
    const value = new CelTypeValue(typeName);
    return { type: types.type, cost: 0, run: () => value };
  }

  #select(expr: Extract<Expr, { kind: "select" }>): Compiled {
    const dotted = dottedName(expr);
    if (dotted !== undefined && typeValues.has(dotted) && !this.#scope.has(dotted.split(".")[0] ?? ""))
      return this.#ident(expr.at, dotted);
    const operand = this.compile(expr.operand);
    const { at, field, test } = expr;
    const isChain = expr.optional || operand.type.kind === "optional";
    const base = operand.type.kind === "optional" ? operand.type.item : operand.type;
    const fieldType = this.#fieldType(at, base, field);
    const { run } = operand;
    const cost = operand.cost + (test ? 0 : 1);
    if (test) {
      return {
        type: types.bool,
        cost,
        run: (frame) => {
          frame.meter.spend(1);
          const value = unwrap(run(frame));
          return value !== undefined && lookup(value, field) !== undefined;
        },
      };
    }
    if (isChain) {
      return {
        type: optionalOf(fieldType.kind === "optional" ? fieldType.item : fieldType),
        cost,
        run: (frame) => {
          frame.meter.spend(1);
          const value = unwrap(run(frame));
          const found = value === undefined ? undefined : lookup(value, field);
          return found === undefined ? none : new CelOptional(found);
        },
      };
    }
    return {
      type: fieldType,
      cost,
      run: (frame) => {
        frame.meter.spend(1);
        const found = lookup(run(frame), field);
        if (found === undefined) throw new CelError(`no such key: ${field}`);
        return found;
      },
    };
  }

  #fieldType(at: number, type: CelType, field: string): CelType {
    switch (type.kind) {
      case "dyn":
        return types.dyn;
      case "map":
        return type.value;
      case "object": {
        const found = type.fields.get(field);
        if (!found) this.#fail(at, `undefined field '${field}'`);
        return found.type;
      }
      default:
        return this.#fail(at, `type '${printType(type)}' does not support field selection`);
    }
  }

  #call(expr: Extract<Expr, { kind: "call" }>): Compiled {
    const { at, name, target } = expr;
    switch (name) {
      case "_&&_":
      case "_||_":
        return this.#logical(expr);
      case "_?_:_":
        return this.#conditional(expr);
      case "_[_]":
      case "_[?_]":
        return this.#index(expr);
    }
    if (target) {
      const prefix = dottedName(target);
      const qualified = prefix === undefined ? undefined : `${prefix}.${name}`;
      if (qualified !== undefined && !this.#scope.has(prefix?.split(".")[0] ?? "")) {
        const globals = this.#functions.globals(qualified);
        if (globals.length > 0)
          return this.#apply(
            at,
            qualified,
            false,
            globals,
            expr.args.map((arg) => this.compile(arg)),
          );
      }
      const members = this.#functions.members(name);
      if (members.length === 0) this.#fail(at, `undeclared reference to '${name}' (in container '')`);
      // The arguments of a format may be of any mix of types; every other literal is of one type.
      const isFormat = name === "format";
      this.#checkLiterals(name, expr.args);
      const args = expr.args.map((arg) =>
        isFormat && arg.kind === "list" ? this.#list(arg, true) : this.compile(arg),
      );
      return this.#apply(at, name, true, members, [this.compile(target), ...args]);
    }
    const globals = this.#functions.globals(name);
    if (globals.length === 0) this.#fail(at, `undeclared reference to '${name}' (in container '')`);
    this.#checkLiterals(name, name === "matches" ? expr.args.slice(1) : expr.args);
    return this.#apply(
      at,
      name,
      false,
      globals,
      expr.args.map((arg) => this.compile(arg)),
    );
  }

  /** Literals that can only fail are refused now: patterns, durations, timestamps. */
  #checkLiterals(name: string, [arg]: readonly Expr[]): void {
    if (arg?.kind !== "const" || typeof arg.value !== "string") return;
    const isValid = literalChecks.get(name)?.(arg.value) ?? true;
    if (!isValid) this.#fail(arg.at, `invalid ${name} argument`);
  }

  #apply(
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
      this.#fail(at, `found no matching overload for '${name}' applied to '${shown}'`);
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
      const sized = overload.resultSize ? withSize(result, overload.resultSize(sizes)) : result;
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

  #expectBool(at: number, compiled: Compiled): void {
    if (compiled.type.kind !== "bool" && compiled.type.kind !== "dyn")
      this.#fail(at, `expected type 'bool' but found '${printType(compiled.type)}'`);
  }

  #logical(expr: Extract<Expr, { kind: "call" }>): Compiled {
    const [left, right] = expr.args.map((arg) => {
      const compiled = this.compile(arg);
      if (compiled.type.kind !== "bool" && compiled.type.kind !== "dyn")
        this.#fail(
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

  #conditional(expr: Extract<Expr, { kind: "call" }>): Compiled {
    const [condition, yes, no] = expr.args.map((arg) => this.compile(arg));
    if (!condition || !yes || !no) throw new Error("conditional without operands");
    this.#expectBool(expr.at, condition);
    const type = join(yes.type, no.type);
    if (!type) {
      this.#fail(
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

  #index(expr: Extract<Expr, { kind: "call" }>): Compiled {
    const [operand, key] = expr.args.map((arg) => this.compile(arg));
    if (!operand || !key) throw new Error("index without operands");
    const isChain = expr.name === "_[?_]" || operand.type.kind === "optional";
    const base = operand.type.kind === "optional" ? operand.type.item : operand.type;
    const item = this.#itemType(expr.at, base, key.type);
    const cost = operand.cost + key.cost + 1;
    if (isChain) {
      return {
        type: optionalOf(item),
        cost,
        run: (frame) => {
          frame.meter.spend(1);
          const container = unwrap(operand.run(frame));
          if (container === undefined) return none;
          const found = itemAt(container, key.run(frame));
          return found === undefined ? none : new CelOptional(found);
        },
      };
    }
    return {
      type: item,
      cost,
      run: (frame) => {
        frame.meter.spend(1);
        const container = operand.run(frame);
        const index = key.run(frame);
        const found = itemAt(container, index);
        if (found !== undefined) return found;
        throw new CelError(
          isMap(container)
            ? `no such key: ${typeof index === "string" ? index : printValue(index)}`
            : `index out of bounds: ${printValue(index)}`,
        );
      },
    };
  }

  #itemType(at: number, base: CelType, key: CelType): CelType {
    if (base.kind === "dyn") return types.dyn;
    if (
      base.kind === "list" &&
      (key.kind === "int" || key.kind === "dyn" || key.kind === "uint" || key.kind === "double")
    )
      return base.item;
    if (base.kind === "map" && assignable(base.key, key, new Map())) return base.value;
    return this.#fail(
      at,
      `found no matching overload for '_[_]' applied to '(${printType(base)}, ${printType(key)})'`,
    );
  }

  #list(expr: Extract<Expr, { kind: "list" }>, isMixed = false): Compiled {
    const items = expr.items.map(({ value, optional }) => ({
      ...this.compile(value),
      optional,
      at: value.at,
    }));
    let item: CelType | undefined;
    for (const { type, optional, at } of items) {
      const own = optional ? this.#optionalItem(at, type) : type;
      const joined = item ? (join(item, own) ?? (isMixed ? types.dyn : undefined)) : own;
      if (!joined) this.#fail(at, `expected type '${printType(item ?? own)}' but found '${printType(own)}'`);
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

  #optionalItem(at: number, type: CelType): CelType {
    if (type.kind === "dyn") return type;
    if (type.kind !== "optional")
      this.#fail(at, `expected type 'optional_type(dyn)' but found '${printType(type)}'`);
    return type.item;
  }

  #map(expr: Extract<Expr, { kind: "map" }>): Compiled {
    const entries = expr.entries.map(({ key, value, optional }) => ({
      key: this.compile(key),
      value: this.compile(value),
      optional,
      at: key.at,
    }));
    let keyType: CelType | undefined;
    let valueType: CelType | undefined;
    for (const { key, value, optional, at } of entries) {
      const own = optional ? this.#optionalItem(at, value.type) : value.type;
      const joinedKey = keyType ? join(keyType, key.type) : key.type;
      const joinedValue = valueType ? join(valueType, own) : own;
      if (!joinedKey)
        this.#fail(
          at,
          `expected type '${printType(keyType ?? key.type)}' but found '${printType(key.type)}'`,
        );
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

  /** Compiles `body` with variables in scope. */
  #within<T>(variables: readonly (readonly [string, CelType])[], body: (slots: readonly number[]) => T): T {
    const shadowed = variables.map(([name]) => [name, this.#scope.get(name)] as const);
    const slots = variables.map(([name, type]) => {
      const slot = this.#slots++;
      this.#scope.set(name, { type, slot });
      return slot;
    });
    const used = new Set(this.used);
    const result = body(slots);
    for (const [name, variable] of shadowed) {
      // A loop's own variable is no use of a declared one of the same name.
      if (!used.has(name)) this.used.delete(name);
      if (variable) this.#scope.set(name, variable);
      else this.#scope.delete(name);
    }
    return result;
  }

  #loop(expr: Extract<Expr, { kind: "loop" }>): Compiled {
    const range = this.compile(expr.range);
    const { macro, at } = expr;
    const [first = "", second] = expr.variables;
    const variables = this.#loopVariables(at, range.type, first, second);
    return this.#within(variables, (slots) => {
      const filter = expr.filter && this.compile(expr.filter);
      const step = this.compile(expr.step);
      if (filter) this.#expectBool(expr.filter?.at ?? at, filter);
      if (macro === "all" || macro === "exists" || macro === "existsOne" || macro === "filter")
        this.#expectBool(expr.step.at, step);
      const size = sizeBound(range.type);
      return {
        type: this.#loopType(at, macro, range.type, step.type, size),
        cost:
          range.cost +
          loopOverhead[macro].once +
          size * (loopOverhead[macro].each + step.cost + (filter?.cost ?? 0)),
        run: runLoop(macro, range.run, slots, step.run, filter?.run),
      };
    });
  }

  #loopVariables(
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
        return this.#fail(
          at,
          `expression of type '${printType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        );
    }
  }

  #loopType(at: number, macro: LoopMacro, range: CelType, step: CelType, size: number): CelType {
    const key = range.kind === "map" ? range.key : range.kind === "list" ? types.int : types.dyn;
    switch (macro) {
      case "all":
      case "exists":
      case "existsOne":
        return types.bool;
      case "sortBy":
        if (range.kind !== "list" && range.kind !== "dyn")
          this.#fail(at, `found no matching overload for 'sortBy' applied to '${printType(range)}'`);
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
          this.#fail(at, `expected type 'map' but found '${printType(step)}'`);
        return step.kind === "map" ? mapOf(step.key, step.value, size) : types.dyn;
    }
  }

  #optionalMap(expr: Extract<Expr, { kind: "optionalMap" }>): Compiled {
    const operand = this.compile(expr.operand);
    const { type } = operand;
    if (type.kind !== "optional" && type.kind !== "dyn")
      this.#fail(
        expr.at,
        `found no matching overload for '${expr.flat ? "optFlatMap" : "optMap"}' applied to '${printType(type)}'`,
      );
    const item = type.kind === "optional" ? type.item : types.dyn;
    return this.#within([[expr.variable, item]], ([slot = 0]) => {
      const step = this.compile(expr.step);
      if (expr.flat && step.type.kind !== "optional" && step.type.kind !== "dyn")
        this.#fail(expr.step.at, `expected type 'optional_type' but found '${printType(step.type)}'`);
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
}

/** What the specification's expansion of a macro costs beside its own step. */
const loopOverhead: Readonly<Record<LoopMacro, { readonly once: number; readonly each: number }>> = {
  all: { once: 1, each: 3 },
  exists: { once: 1, each: 4 },
  existsOne: { once: 2, each: 2 },
  map: { once: 11, each: 12 },
  filter: { once: 11, each: 12 },
  sortBy: { once: 20, each: 30 },
  transformList: { once: 11, each: 12 },
  transformMap: { once: 31, each: 3 },
  transformMapEntry: { once: 31, each: 3 },
};

/** The value inside an optional, the value itself otherwise; `undefined` for none. */
function unwrap(value: CelValue): CelValue | undefined {
  return value instanceof CelOptional ? value.value : value;
}

function lookup(value: CelValue, field: string): CelValue | undefined {
  if (typeof value === "object" && value !== null && isMap(value)) return value.get(field);
  throw new CelError(
    value === null ? `no such key: ${field}` : `type '${typeNameOf(value)}' does not support field selection`,
  );
}

function itemAt(container: CelValue, key: CelValue): CelValue | undefined {
  if (isList(container)) {
    const index = typeof key === "bigint" ? Number(key) : typeof key === "number" ? key : undefined;
    if (index === undefined || !Number.isInteger(index)) throw new CelError("no such overload");
    return index >= 0 && index < container.length ? container.at(index) : undefined;
  }
  if (isMap(container)) return container.get(key);
  throw new CelError("no such overload");
}

function runCall(candidates: readonly Overload[], args: readonly Compiled[]): Run {
  const [only] = candidates;
  const isCertain =
    candidates.length === 1 && args.every((arg) => arg.type.kind !== "dyn" && arg.type.kind !== "null_type");
  const runs = args.map((arg) => arg.run);
  return (frame) => {
    const values = runs.map((run) => run(frame));
    const overload = isCertain && only ? only : dispatch(candidates, values);
    frame.meter.spend(chargeOf(overload, values));
    return overload.call(values);
  };
}

function chargeOf(overload: Overload, values: readonly CelValue[]): number {
  if (overload.charge) return overload.charge(values);
  if (!overload.cost) return 1;
  return overload.cost({ args: values.map(sizeOf), items: values.map(firstItemSize) });
}

/** The size of a list's largest item among the first few: what the meter assumes of all. */
function firstItemSize(value: CelValue): number {
  if (!isList(value)) return 1;
  let size = 1;
  for (let i = 0; i < value.length && i < 8; i++) size = Math.max(size, sizeOf(value.at(i)));
  return size;
}
