/**
 * The syntax tree of CEL. Macros are nodes of their own instead of the loops the specification expands them
 * to; operators are calls with the specification's function names (`_+_`, `_[_]`, `@in`).
 */
import type { CelType } from "./type.ts";
import type { CelValue } from "./value.ts";

/** The quantifiers and transformations that loop over a list or map. */
export type LoopMacro =
  | "all"
  | "exists"
  | "existsOne"
  | "map"
  | "filter"
  | "sortBy"
  | "transformList"
  | "transformMap"
  | "transformMapEntry";

/** One node; `at` is its place in the source. */
export type Expr =
  | { readonly kind: "const"; readonly at: number; readonly value: CelValue; readonly type: CelType }
  | { readonly kind: "ident"; readonly at: number; readonly name: string }
  | {
      readonly kind: "select";
      readonly at: number;
      readonly operand: Expr;
      readonly field: string;
      /** `has(operand.field)`. */
      readonly test: boolean;
      /** `operand.?field`. */
      readonly optional: boolean;
    }
  | {
      readonly kind: "call";
      readonly at: number;
      readonly name: string;
      readonly target: Expr | undefined;
      readonly args: readonly Expr[];
    }
  | {
      readonly kind: "list";
      readonly at: number;
      readonly items: readonly { readonly value: Expr; readonly optional: boolean }[];
    }
  | {
      readonly kind: "map";
      readonly at: number;
      readonly entries: readonly { readonly key: Expr; readonly value: Expr; readonly optional: boolean }[];
    }
  | {
      readonly kind: "loop";
      readonly at: number;
      readonly macro: LoopMacro;
      readonly range: Expr;
      /** One variable: the item or key. Two: index and item, or key and value. */
      readonly variables: readonly string[];
      /** Condition before the transformation. */
      readonly filter: Expr | undefined;
      /** The predicate or transformation. */
      readonly step: Expr;
    }
  /** `optMap` and `optFlatMap`. */
  | {
      readonly kind: "optionalMap";
      readonly at: number;
      readonly operand: Expr;
      readonly variable: string;
      readonly step: Expr;
      readonly flat: boolean;
    };

/** The direct children of a node. */
export function childrenOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "const":
    case "ident":
      return [];
    case "select":
      return [expr.operand];
    case "call":
      return expr.target ? [expr.target, ...expr.args] : expr.args;
    case "list":
      return expr.items.map((item) => item.value);
    case "map":
      return expr.entries.flatMap((entry) => [entry.key, entry.value]);
    case "loop":
      return expr.filter ? [expr.range, expr.filter, expr.step] : [expr.range, expr.step];
    case "optionalMap":
      return [expr.operand, expr.step];
  }
}
