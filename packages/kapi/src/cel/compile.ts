/**
 * One walk over the tree that checks types, prices the worst case and makes a closure to run.
 *
 * Pricing follows the public cost model of CEL (cel-go "checker/cost") with the sizes types carry, because
 * definitions written for the Kubernetes API must be judged alike. Running is metered by the same functions
 * over actual sizes, plus a charge for absorbed errors, so that a unit is a bounded piece of time.
 */
import type { Expr } from "./ast.ts";
import { compileSelect } from "./compile-access.ts";
import { compileCall } from "./compile-call.ts";
import { compileList, compileLoop, compileMap, compileOptionalMap } from "./compile-collection.ts";
import type { Compiled, Context } from "./compiled.ts";
import type { FunctionTable } from "./function.ts";
import { errorAt } from "./lexer.ts";
import { isTypeName } from "./name.ts";
import { types, type CelType } from "./type.ts";
import { CelTypeValue } from "./value.ts";

interface Variable {
  readonly type: CelType;
  readonly slot: number;
}

/** Compiles the nodes of one expression. */
export class Compiler implements Context {
  readonly #source: string;
  readonly functions: FunctionTable;
  readonly #scope = new Map<string, Variable>();
  /** Names of declared variables the expression mentions. */
  readonly used = new Set<string>();
  #slots = 0;

  constructor(source: string, functions: FunctionTable, variables: ReadonlyMap<string, CelType>) {
    this.#source = source;
    this.functions = functions;
    for (const [name, type] of variables) this.#scope.set(name, { type, slot: this.#slots++ });
  }

  /** Slots a frame needs. */
  get slotCount(): number {
    return this.#slots;
  }

  fail(at: number, message: string): never {
    throw errorAt(this.#source, at, message);
  }

  mixedList(expr: Extract<Expr, { kind: "list" }>): Compiled {
    return compileList(this, expr, true);
  }

  declares(name: string): boolean {
    return this.#scope.has(name);
  }

  compile(expr: Expr): Compiled {
    switch (expr.kind) {
      case "const": {
        const { value, type } = expr;
        return { type, cost: 0, run: () => value };
      }
      case "ident":
        return this.ident(expr.at, expr.name);
      case "select":
        return compileSelect(this, expr);
      case "call":
        return compileCall(this, expr);
      case "list":
        return compileList(this, expr);
      case "map":
        return compileMap(this, expr);
      case "loop":
        return compileLoop(this, expr);
      case "optionalMap":
        return compileOptionalMap(this, expr);
    }
  }

  ident(at: number, name: string): Compiled {
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
    if (!isTypeName(name)) this.fail(at, `undeclared reference to '${name}' (in container '')`);
    const value = new CelTypeValue(name);
    return { type: types.type, cost: 0, run: () => value };
  }

  within<T>(variables: readonly (readonly [string, CelType])[], body: (slots: readonly number[]) => T): T {
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
}
