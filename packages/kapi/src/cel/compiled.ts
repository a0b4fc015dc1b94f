/**
 * What the parts of the compiler share: a compiled node, and the context a node is compiled in.
 */
import type { Expr } from "./ast.ts";
import type { FunctionTable } from "./function.ts";
import type { Meter } from "./meter.ts";
import { printType, type CelType } from "./type.ts";
import type { CelValue } from "./value.ts";

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

/** What compiling a node needs of the expression around it. */
export interface Context {
  readonly functions: FunctionTable;
  compile(expr: Expr): Compiled;
  /** Compiles a name: a variable or a type. */
  ident(at: number, name: string): Compiled;
  /** True when a variable of this name is in scope. */
  declares(name: string): boolean;
  /** Compiles a list literal whose items may be of several types. */
  mixedList(expr: Extract<Expr, { kind: "list" }>): Compiled;
  /** Refuses the expression. */
  fail(at: number, message: string): never;
  /** Compiles with further variables in scope, whose slots `body` gets. */
  within<T>(variables: readonly (readonly [string, CelType])[], body: (slots: readonly number[]) => T): T;
}

/** Refuses what cannot be a condition. */
export function expectBool(c: Context, at: number, { type }: Compiled): void {
  if (type.kind !== "bool" && type.kind !== "dyn")
    c.fail(at, `expected type 'bool' but found '${printType(type)}'`);
}
