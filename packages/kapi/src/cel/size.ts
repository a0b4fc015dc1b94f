/**
 * The sizes that types carry, as the cost estimate uses them.
 */
import type { CelType } from "./type.ts";

/** Size assumed where no schema bounds it: what a request may hold. */
export const unboundedSize = 3 * 1024 * 1024 - 2;

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

/** The greatest size of an item of a list. */
export const itemBound = (type: CelType): number => (type.kind === "list" ? sizeBound(type.item) : 1);

/** A list type whose items have another size. */
export const withItemSize = (type: CelType, max: number | undefined): CelType =>
  type.kind === "list" && max !== undefined ? { ...type, item: withSize(type.item, max) } : type;

/** `type` with another size. */
export function withSize(type: CelType, max: number): CelType {
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
