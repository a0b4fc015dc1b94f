/**
 * Dotted names: of types, and of functions in a namespace.
 */
import type { Expr } from "./ast.ts";

/** Names that stand for types; namespaces of the same form as `a.b` are told apart by them. */
const typeValues = new Set([
  "bool",
  "int",
  "uint",
  "double",
  "string",
  "bytes",
  "list",
  "map",
  "null_type",
  "type",
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "optional_type",
]);

/** True for a name that stands for a type. */
export function isTypeName(name: string): boolean {
  return typeValues.has(name);
}

/** `a.b.c` as a dotted name, when the node is one. */
export function dottedName(expr: Expr): string | undefined {
  if (expr.kind === "ident") return expr.name;
  if (expr.kind !== "select" || expr.test || expr.optional) return undefined;
  const prefix = dottedName(expr.operand);
  return prefix === undefined ? undefined : `${prefix}.${expr.field}`;
}
