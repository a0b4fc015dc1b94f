/**
 * Conversions between the basic types (cel-spec "Type conversions").
 */
import { parseGoDuration } from "../../schema/formats.ts";
import { printGoFloat } from "../../schema/go-print.ts";
import { CelError } from "../error.ts";
import {
  fixedCharge,
  global,
  traversalFactor,
  traversesFirst,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import { formatRfc3339, parseRfc3339 } from "../timestamp.ts";
import { CelDuration, CelTimestamp, CelTypeValue, sizeOf, typeNameOf } from "../value.ts";
import { int, uint } from "./standard.ts";
import { floorDiv } from "./time.ts";

const timestampText = (value: CelTimestamp): string => formatRfc3339(value.ns);

/** Seconds with as many decimals as needed, the JSON form of a duration. */
export function durationText(value: CelDuration): string {
  const sign = value.ns < 0n ? "-" : "";
  const ns = value.ns < 0n ? -value.ns : value.ns;
  const fraction = String(ns % 1_000_000_000n)
    .padStart(9, "0")
    .replace(/0+$/, "");
  return `${sign}${ns / 1_000_000_000n}${fraction === "" ? "" : `.${fraction}`}s`;
}

function parseInteger(text: string): bigint {
  if (!/^[+-]?\d{1,20}$/.test(text))
    throw new CelError(`strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, 64))}: invalid syntax`);
  return int(BigInt(text.replace(/^\+/, "")));
}

function parseDouble(text: string): number {
  if (!/^[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)$/i.test(text.slice(0, 400)))
    throw new CelError(`strconv.ParseFloat: parsing ${JSON.stringify(text.slice(0, 64))}: invalid syntax`);
  const word = text.toLowerCase().replace(/^[+-]/, "");
  if (word.startsWith("inf")) return text.startsWith("-") ? -Infinity : Infinity;
  return Number(text);
}

function truncate(value: number): bigint {
  if (!Number.isFinite(value) || value >= 2 ** 63 || value <= -(2 ** 63))
    throw new CelError("integer overflow");
  return BigInt(Math.trunc(value));
}

function parseBool(text: string): boolean {
  if (["1", "t", "true", "TRUE", "True", "T"].includes(text)) return true;
  if (["0", "f", "false", "FALSE", "False", "F"].includes(text)) return false;
  throw new CelError(`type conversion error from 'string' to 'bool'`);
}

function parseDuration(text: string): CelDuration {
  const ns = parseGoDuration(text);
  if (ns === undefined) throw new CelError(`time: invalid duration ${JSON.stringify(text.slice(0, 64))}`);
  return new CelDuration(ns);
}

function parseTimestamp(text: string): CelTimestamp {
  const ns = parseRfc3339(text);
  if (ns === undefined) throw new CelError(`invalid timestamp ${JSON.stringify(text.slice(0, 64))}`);
  return new CelTimestamp(ns);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new CelError("invalid UTF-8 in bytes, cannot convert to string");
  }
}

const sameSize: OverloadOptions = { cost: traversesFirst, resultSize: ({ args: [a = 0] }) => a };
const shortText: OverloadOptions = { resultSize: () => 40, charge: fixedCharge(20) };
/** The public cost model takes parsing for constant; texts that parse are short, others are refused early. */
const parses: OverloadOptions = { charge: ([text = ""]) => 30 + sizeOf(text) * traversalFactor };

/** All overloads of conversions. */
export const conversionLibrary: readonly Overload[] = [
  global("int", ["int"], "int", (v) => v),
  global("int", ["uint"], "int", (v) => int(v.value)),
  global("int", ["double"], "int", truncate),
  global("int", ["string"], "int", parseInteger, parses),
  global("int", ["timestamp"], "int", (v) => floorDiv(v.ns, 1_000_000_000n)),
  global("int", ["duration"], "int", (v) => v.ns),
  global("uint", ["uint"], "uint", (v) => v),
  global("uint", ["int"], "uint", uint),
  global("uint", ["double"], "uint", (v) => uint(truncate(v))),
  global("uint", ["string"], "uint", (v) => uint(parseInteger(v)), parses),
  global("double", ["double"], "double", (v) => v),
  global("double", ["int"], "double", (v) => Number(v)),
  global("double", ["uint"], "double", (v) => Number(v.value)),
  global("double", ["string"], "double", parseDouble, parses),
  global("string", ["string"], "string", (v) => v, { resultSize: ({ args: [a = 0] }) => a }),
  global("string", ["bool"], "string", (v) => String(v), shortText),
  global("string", ["int"], "string", (v) => String(v), shortText),
  global("string", ["uint"], "string", (v) => String(v.value), shortText),
  global("string", ["double"], "string", (v) => printGoFloat(v), shortText),
  global("string", ["bytes"], "string", decodeUtf8, sameSize),
  global("string", ["timestamp"], "string", timestampText, shortText),
  global("string", ["duration"], "string", durationText, shortText),
  global("bytes", ["bytes"], "bytes", (v) => v, { resultSize: ({ args: [a = 0] }) => a }),
  global("bytes", ["string"], "bytes", (v) => Buffer.from(v, "utf8"), {
    cost: traversesFirst,
    resultSize: ({ args: [a = 0] }) => a * 4,
  }),
  global("bool", ["bool"], "bool", (v) => v),
  global("bool", ["string"], "bool", parseBool),
  global("duration", ["duration"], "duration", (v) => v),
  global("duration", ["string"], "duration", parseDuration, parses),
  global("duration", ["int"], "duration", (v) => new CelDuration(v)),
  global("timestamp", ["timestamp"], "timestamp", (v) => v),
  global("timestamp", ["string"], "timestamp", parseTimestamp, parses),
  global("timestamp", ["int"], "timestamp", (v) => new CelTimestamp(v * 1_000_000_000n)),
  global("dyn", ["A"], "dyn", (v) => v),
  global("type", ["A"], "type", (v) => new CelTypeValue(typeNameOf(v))),
];
