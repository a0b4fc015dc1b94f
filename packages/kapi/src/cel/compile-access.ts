/**
 * Reading members: fields, presence tests, indexes, and their optional forms.
 */
import type { Expr } from "./ast.ts";
import type { Compiled, Context } from "./compiled.ts";
import { dottedName, isTypeName } from "./name.ts";
import { CelError } from "./error.ts";
import { assignable, optionalOf, printType, types, type CelType } from "./type.ts";
import { CelOptional, isList, isMap, none, printValue, typeNameOf, type CelValue } from "./value.ts";

/** Compiles `operand.field`, `operand.?field` and `has(operand.field)`. */
export function compileSelect(c: Context, expr: Extract<Expr, { kind: "select" }>): Compiled {
  const dotted = dottedName(expr);
  // A variable may have a dotted name.
  if (dotted !== undefined && c.declares(dotted)) return c.ident(expr.at, dotted);
  if (dotted !== undefined && isTypeName(dotted) && !c.declares(dotted.split(".")[0] ?? ""))
    return c.ident(expr.at, dotted);
  const operand = c.compile(expr.operand);
  const { at, field, test } = expr;
  const isChain = expr.optional || operand.type.kind === "optional";
  const base = operand.type.kind === "optional" ? operand.type.item : operand.type;
  const found = fieldType(c, at, base, field);
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
      type: optionalOf(found.kind === "optional" ? found.item : found),
      cost,
      run: (frame) => {
        frame.meter.spend(1);
        const value = unwrap(run(frame));
        const member = value === undefined ? undefined : lookup(value, field);
        return member === undefined ? none : new CelOptional(member);
      },
    };
  }
  return {
    type: found,
    cost,
    run: (frame) => {
      frame.meter.spend(1);
      const member = lookup(run(frame), field);
      if (member === undefined) throw new CelError(`no such key: ${field}`);
      return member;
    },
  };
}

function fieldType(c: Context, at: number, type: CelType, field: string): CelType {
  switch (type.kind) {
    case "dyn":
      return types.dyn;
    case "map":
      return type.value;
    case "object": {
      const found = type.fields.get(field);
      if (!found) c.fail(at, `undefined field '${field}'`);
      return found.type;
    }
    default:
      return c.fail(at, `type '${printType(type)}' does not support field selection`);
  }
}

/** Compiles `operand[key]` and `operand[?key]`. */
export function compileIndex(c: Context, expr: Extract<Expr, { kind: "call" }>): Compiled {
  const [operand, key] = expr.args.map((arg) => c.compile(arg));
  if (!operand || !key) throw new Error("index without operands");
  const isChain = expr.name === "_[?_]" || operand.type.kind === "optional";
  const base = operand.type.kind === "optional" ? operand.type.item : operand.type;
  const item = itemType(c, expr.at, base, key.type);
  const cost = operand.cost + key.cost + 1;
  if (isChain) {
    return {
      type: optionalOf(item),
      cost,
      run: (frame) => {
        frame.meter.spend(3);
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
      frame.meter.spend(3);
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

function itemType(c: Context, at: number, base: CelType, key: CelType): CelType {
  if (base.kind === "dyn") return types.dyn;
  if (
    base.kind === "list" &&
    (key.kind === "int" || key.kind === "dyn" || key.kind === "uint" || key.kind === "double")
  )
    return base.item;
  if (base.kind === "map" && assignable(base.key, key, new Map())) return base.value;
  return c.fail(
    at,
    `found no matching overload for '_[_]' applied to '(${printType(base)}, ${printType(key)})'`,
  );
}

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
