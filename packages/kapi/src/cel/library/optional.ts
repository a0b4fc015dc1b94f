/**
 * Optional values (cel-go "OptionalTypes"); `optMap` and `optFlatMap` are macros of the parser.
 */
import { CelError } from "../error.ts";
import { global, member, type Overload } from "../function.ts";
import {
  ArrayList,
  CelDuration,
  CelOptional,
  CelUint,
  isList,
  isMap,
  itemsOf,
  none,
  type CelList,
  type CelValue,
} from "../value.ts";

function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === 0n || value === 0 || value === "") return true;
  if (value instanceof CelUint) return value.value === 0n;
  if (value instanceof CelDuration) return value.ns === 0n;
  if (value instanceof Uint8Array) return value.length === 0;
  if (typeof value !== "object") return false;
  return isList(value) ? value.length === 0 : isMap(value) && value.size === 0;
}

function valueOf(optional: CelOptional): CelValue {
  if (optional.value === undefined) throw new CelError("optional.none() dereference");
  return optional.value;
}

function present(list: CelList): CelList {
  const values = itemsOf(list).flatMap((item) => {
    if (!(item instanceof CelOptional)) throw new CelError("no such overload");
    return item.value === undefined ? [] : [item.value];
  });
  return new ArrayList(values);
}

/** All overloads of optionals. */
export const optionalLibrary: readonly Overload[] = [
  global("optional.of", ["A"], "optional(A)", (value) => new CelOptional(value)),
  global("optional.ofNonZeroValue", ["A"], "optional(A)", (value) =>
    isZero(value) ? none : new CelOptional(value),
  ),
  global("optional.none", [], "optional(A)", () => none),
  global("optional.unwrap", ["list(optional(A))"], "list(A)", present),
  member("unwrapOpt", ["list(optional(A))"], "list(A)", present),
  member("hasValue", ["optional(A)"], "bool", (optional) => optional.value !== undefined),
  member("value", ["optional(A)"], "A", valueOf),
  member("or", ["optional(A)", "optional(A)"], "optional(A)", (a, b) => (a.value === undefined ? b : a)),
  member("orValue", ["optional(A)", "A"], "A", (optional, other) => optional.value ?? other),
];
