/**
 * The Kubernetes semantic version functions (semver.org 2.0.0); build metadata does not take part in order.
 */
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

const typeName = "kubernetes.Semver";

/** Longest version text. */
const maxVersionLength = 256;

/** A version. */
class CelSemver extends CelOpaque {
  readonly typeName = typeName;
  readonly numbers: readonly bigint[];
  readonly prerelease: readonly string[];

  constructor(numbers: readonly bigint[], prerelease: readonly string[]) {
    super();
    this.numbers = numbers;
    this.prerelease = prerelease;
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelSemver && compare(this, other) === 0;
  }
}

const pattern =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

function parse(text: string): CelSemver | undefined {
  const parts = text.length > maxVersionLength ? null : pattern.exec(text);
  if (!parts) return undefined;
  const numbers = [parts[1], parts[2], parts[3]].map((part) => BigInt(part ?? "0"));
  const prerelease = parts[4]?.split(".") ?? [];
  const isValid = numbers.every((n) => n < 2n ** 63n) && prerelease.every((part) => !/^0\d+$/.test(part));
  return isValid ? new CelSemver(numbers, prerelease) : undefined;
}

/** A loose version made strict: `v1.2` becomes `1.2.0`, leading zeros go. */
function normalize(text: string): string {
  const parts = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:[-+].*)?)$/s.exec(text.slice(0, maxVersionLength + 1));
  if (!parts) return text;
  const numbers = [parts[1], parts[2], parts[3]].map((part) => String(BigInt(part ?? "0")));
  return numbers.join(".") + (parts[4] ?? "");
}

function comparePrerelease(a: string, b: string): number {
  const [aNumeric, bNumeric] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (aNumeric && bNumeric) return BigInt(a) < BigInt(b) ? -1 : BigInt(a) > BigInt(b) ? 1 : 0;
  if (aNumeric !== bNumeric) return aNumeric ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function compare(a: CelSemver, b: CelSemver): number {
  for (let i = 0; i < 3; i++) {
    const [left, right] = [a.numbers[i] ?? 0n, b.numbers[i] ?? 0n];
    if (left !== right) return left < right ? -1 : 1;
  }
  if (a.prerelease.length === 0 || b.prerelease.length === 0)
    return Math.sign(b.prerelease.length - a.prerelease.length);
  for (let i = 0; i < Math.min(a.prerelease.length, b.prerelease.length); i++) {
    const order = comparePrerelease(a.prerelease[i] ?? "", b.prerelease[i] ?? "");
    if (order !== 0) return order;
  }
  return Math.sign(a.prerelease.length - b.prerelease.length);
}

function version(text: string): CelSemver {
  const parsed = parse(text);
  if (!parsed)
    throw new CelError(
      `semver parse error during conversion from string: ${JSON.stringify(text.slice(0, 64))}`,
    );
  return parsed;
}

function asVersion(value: CelValue): CelSemver {
  if (value instanceof CelSemver) return value;
  throw new CelError("no such overload");
}

const order = (a: CelValue, b: CelValue): number => compare(asVersion(a), asVersion(b));
const parsing: OverloadOptions = {
  cost: traversesFirst,
  charge: ([text = ""]) => 40 + sizeOf(text) * traversalFactor,
};
const numberAt = (name: string, index: number): Overload =>
  member(name, [typeName], "int", (value) => asVersion(value).numbers[index] ?? 0n);

/** All overloads of semantic versions. */
export const semverLibrary: readonly Overload[] = [
  global("semver", ["string"], typeName, version, parsing),
  global(
    "semver",
    ["string", "bool"],
    typeName,
    (text, loose) => version(loose ? normalize(text) : text),
    parsing,
  ),
  global("isSemver", ["string"], "bool", (text) => parse(text) !== undefined, parsing),
  global(
    "isSemver",
    ["string", "bool"],
    "bool",
    (text, loose) => parse(loose ? normalize(text) : text) !== undefined,
    parsing,
  ),
  numberAt("major", 0),
  numberAt("minor", 1),
  numberAt("patch", 2),
  member("compareTo", [typeName, typeName], "int", (a, b) => BigInt(order(a, b))),
  member("isLessThan", [typeName, typeName], "bool", (a, b) => order(a, b) < 0),
  member("isGreaterThan", [typeName, typeName], "bool", (a, b) => order(a, b) > 0),
];
