/**
 * `"…".format([…])` (cel-go "ext.Strings" format): the verbs `%s %d %f %e %b %x %X %o %%` with a precision.
 */
import { CelError } from "../error.ts";
import { formatRfc3339 } from "../timestamp.ts";
import {
  CelDuration,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  isList,
  isMap,
  itemsOf,
  typeNameOf,
  type CelValue,
} from "../value.ts";
import { durationText } from "./convert.ts";

/** Most decimals a precision may ask for. */
const maxPrecision = 100;

function text(value: CelValue): string {
  if (typeof value === "string") return value;
  if (value === null) return "null";
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return doubleText(value);
  if (value instanceof CelUint) return String(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  if (value instanceof CelTimestamp) return formatRfc3339(value.ns);
  if (value instanceof CelDuration) return durationText(value);
  if (value instanceof CelTypeValue) return value.name;
  if (isList(value)) return `[${itemsOf(value).map(text).join(", ")}]`;
  if (isMap(value)) {
    const pairs = value.keys().map((key): [string, string] => [text(key), text(value.get(key) ?? null)]);
    pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${pairs.map(([key, item]) => `${key}: ${item}`).join(", ")}}`;
  }
  throw new CelError(
    `string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given ${typeNameOf(value)}`,
  );
}

function doubleText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  return String(value);
}

function integer(value: CelValue, clause: string): bigint {
  if (typeof value === "bigint") return value;
  if (value instanceof CelUint) return value.value;
  throw new CelError(`${clause} clause can only be used on integers, was given ${typeNameOf(value)}`);
}

function fixed(value: CelValue, precision: number, scientific: boolean): string {
  const number =
    typeof value === "bigint" ? Number(value) : value instanceof CelUint ? Number(value.value) : value;
  if (typeof number !== "number")
    throw new CelError(
      `${scientific ? "scientific" : "fixed-point"} clause can only be used on doubles, was given ${typeNameOf(value)}`,
    );
  if (!Number.isFinite(number)) return doubleText(number);
  if (!scientific) return number.toFixed(precision);
  return number.toExponential(precision).replace(/e([+-])(\d)$/, "e$10$2");
}

function radix(value: CelValue, verb: string): string {
  switch (verb) {
    case "b":
      if (typeof value === "boolean") return value ? "1" : "0";
      return integer(value, "only integers and bools can be formatted as binary").toString(2);
    case "o":
      return integer(value, "octal").toString(8);
    default: {
      const hex =
        typeof value === "string"
          ? Buffer.from(value).toString("hex")
          : value instanceof Uint8Array
            ? Buffer.from(value).toString("hex")
            : integer(value, "hex").toString(16);
      return verb === "X" ? hex.toUpperCase() : hex;
    }
  }
}

/** `template` with its clauses filled from `args`. */
export function formatText(template: string, args: readonly CelValue[]): string {
  let next = 0;
  return template.replace(
    /%(?:\.(\d+))?(.)|%$/gsu,
    (_match, precisionText: string | undefined, verb: string | undefined) => {
      if (verb === "%") return "%";
      if (verb === undefined) throw new CelError("unexpected end of string");
      const value = args[next];
      if (value === undefined) throw new CelError(`index ${next} out of range`);
      next++;
      const precision = Number(precisionText ?? 6);
      if (precision > maxPrecision) throw new CelError(`precision ${precision} is too large`);
      switch (verb) {
        case "s":
          return text(value);
        case "d":
          return typeof value === "number" && !Number.isFinite(value)
            ? doubleText(value)
            : String(integer(value, "decimal"));
        case "f":
        case "e":
          return fixed(value, precision, verb === "e");
        case "b":
        case "o":
        case "x":
        case "X":
          return radix(value, verb);
        default:
          throw new CelError(`could not parse formatting clause: unrecognized formatting clause "${verb}"`);
      }
    },
  );
}
