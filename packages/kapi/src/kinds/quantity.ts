/**
 * Quantities (`500m`, `2Gi`, `1e3`): parsing, comparison and the canonical text that is stored
 * (k8s.io/apimachinery, pkg/api/resource).
 *
 * Canonical: no fraction, no more than nano precision, the largest decimal suffix that keeps an integer.
 * A whole number with a binary suffix stays as it was written.
 */

const pattern = /^([+-]?)(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?$/;
/** The text Kubernetes answers for a malformed quantity. */
export const quantityError =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const decimal: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const suffixes: ReadonlyMap<number, string> = new Map(
  Object.entries(decimal).map(([suffix, power]) => [power, suffix]),
);
const binary: Readonly<Record<string, bigint>> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };
const binarySuffixes = Object.keys(binary);
/** One, in billionths. */
const unit = 1_000_000_000n;
/** Longest text that is parsed: an exponent beyond this is no quantity anybody means. */
const maxLength = 64;
const maxExponent = 30;

interface Parsed {
  /** In billionths, rounded away from zero. */
  readonly nano: bigint;
  readonly exponent: boolean;
  readonly binarySuffix: string;
  /** The number before the suffix has no fraction. */
  readonly whole: boolean;
}

function parse(text: string): Parsed | undefined {
  const trimmed = text.trim();
  const match = trimmed.length > maxLength ? null : pattern.exec(trimmed);
  if (match === null) return undefined;
  const [, sign = "", number = "", suffix = ""] = match;
  const [integer = "", fraction = ""] = number.split(".");
  const digits = BigInt(`${integer}${fraction}`);
  const shift = Object.hasOwn(binary, suffix) ? binary[suffix] : undefined;
  const exponent = /^[eE][+-]?\d/.test(suffix);
  const power = shift !== undefined ? 0 : exponent ? Number(suffix.slice(1)) : (decimal[suffix] ?? 0);
  if (Math.abs(power) > maxExponent) return undefined;
  const scale = 9 + power - fraction.length;
  const shifted = shift === undefined ? digits : digits << shift;
  let nano = scale >= 0 ? shifted * 10n ** BigInt(scale) : shifted / 10n ** BigInt(-scale);
  if (scale < 0 && shifted % 10n ** BigInt(-scale) !== 0n) nano += 1n;
  return {
    nano: sign === "-" ? -nano : nano,
    exponent,
    binarySuffix: shift === undefined ? "" : suffix,
    whole: !/[1-9]/.test(fraction),
  };
}

/** The value in billionths, or `undefined` when the text is no quantity. */
export function quantityNano(value: unknown): bigint | undefined {
  if (typeof value === "number" || typeof value === "bigint") return parse(String(value))?.nano;
  return typeof value === "string" ? parse(value)?.nano : undefined;
}

/** Canonical text of a quantity given as text or number, or `undefined` when it is none. */
export function canonicalQuantity(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "bigint") return undefined;
  const text = String(value);
  // Most quantities are canonical as they come.
  if (/^[1-9]\d{0,2}(m|k|M|G|Ki|Mi|Gi|Ti)?$/.test(text)) return text;
  const parsed = parse(text);
  if (parsed === undefined) return undefined;
  if (parsed.nano === 0n) return "0";
  if (parsed.binarySuffix !== "" && parsed.whole) {
    const [integer = ""] = text.trim().replace(/^\+/, "").replace(parsed.binarySuffix, "").split(".");
    return `${integer.replace(/^(-?)0+(?=\d)/, "$1")}${parsed.binarySuffix}`;
  }
  return decimalText(parsed.nano, parsed.exponent);
}

/** Text of an amount in billionths: with a binary suffix where the amount is one and `binary` asks for it. */
export function formatQuantity(nano: bigint, binary: boolean): string {
  if (nano === 0n) return "0";
  const whole = nano / unit;
  if (!binary || whole * unit !== nano || whole % 1024n !== 0n) return decimalText(nano, false);
  let amount = whole;
  let suffix = "";
  for (const next of binarySuffixes) {
    if (amount % 1024n !== 0n) break;
    amount /= 1024n;
    suffix = next;
  }
  return `${amount}${suffix}`;
}

function decimalText(nano: bigint, exponent: boolean): string {
  let digits = nano;
  let power = -9;
  while (power < 18 && digits % 1000n === 0n) {
    digits /= 1000n;
    power += 3;
  }
  if (exponent) return power === 0 ? String(digits) : `${digits}e${power}`;
  return `${digits}${suffixes.get(power) ?? ""}`;
}
