/**
 * The Kubernetes quantity functions.
 */
import { quantityNano } from "../../kinds/quantity.ts";
import { CelError } from "../error.ts";
import {
  global,
  member,
  traversalFactor,
  traversesFirst,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import { CelOpaque, sizeOf, type CelValue } from "../value.ts";

const typeName = "kubernetes.Quantity";
const billion = 1_000_000_000n;

/** A quantity in billionths. */
class CelQuantity extends CelOpaque {
  readonly typeName = typeName;
  readonly nano: bigint;

  constructor(nano: bigint) {
    super();
    this.nano = nano;
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelQuantity && other.nano === this.nano;
  }
}

function parse(text: string): bigint | undefined {
  return text.trim() === text ? quantityNano(text) : undefined;
}

function nanoOf(value: CelValue): bigint {
  if (value instanceof CelQuantity) return value.nano;
  if (typeof value === "bigint") return value * billion;
  throw new CelError("no such overload");
}

const order = (a: CelValue, b: CelValue): bigint => {
  const [left, right] = [nanoOf(a), nanoOf(b)];
  return left < right ? -1n : left > right ? 1n : 0n;
};

const isInteger = (value: CelValue): boolean => {
  const nano = nanoOf(value);
  const whole = nano / billion;
  return nano % billion === 0n && whole === BigInt.asIntN(64, whole);
};

const parsing: OverloadOptions = {
  cost: traversesFirst,
  charge: ([text = ""]) => 40 + sizeOf(text) * traversalFactor,
};

/** All overloads of quantities. */
export const quantityLibrary: readonly Overload[] = [
  global(
    "quantity",
    ["string"],
    typeName,
    (text) => {
      const nano = parse(text);
      if (nano === undefined)
        throw new CelError(
          "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        );
      return new CelQuantity(nano);
    },
    parsing,
  ),
  global("isQuantity", ["string"], "bool", (text) => parse(text) !== undefined, parsing),
  member("sign", [typeName], "int", (value) => {
    const nano = nanoOf(value);
    return nano < 0n ? -1n : nano > 0n ? 1n : 0n;
  }),
  member("isInteger", [typeName], "bool", isInteger),
  member("asInteger", [typeName], "int", (value) => {
    if (!isInteger(value)) throw new CelError("cannot convert value to integer");
    return nanoOf(value) / billion;
  }),
  member("asApproximateFloat", [typeName], "double", (value) => Number(nanoOf(value)) / 1e9),
  ...[typeName, "int"].flatMap((other) => [
    member("add", [typeName, other], typeName, (a, b) => new CelQuantity(nanoOf(a) + nanoOf(b))),
    member("sub", [typeName, other], typeName, (a, b) => new CelQuantity(nanoOf(a) - nanoOf(b))),
  ]),
  member("compareTo", [typeName, typeName], "int", order),
  member("isLessThan", [typeName, typeName], "bool", (a, b) => order(a, b) < 0n),
  member("isGreaterThan", [typeName, typeName], "bool", (a, b) => order(a, b) > 0n),
];
