/**
 * String formats that custom resource schemas check (apiextensions.k8s.io/v1 `format`). Unknown formats are
 * ignored, as upstream. Every expression here is ours and linear; none comes from a user.
 */
import { isIPv4, isIPv6 } from "node:net";

type Check = (text: string) => boolean;

const matches =
  (expression: RegExp): Check =>
  (text) =>
    expression.test(text);

const uuid = (version: string): Check =>
  matches(new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$`, "i"));

/** True for a calendar date `YYYY-MM-DD` that exists. */
export function isDate(text: string): boolean {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (!parts) return false;
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}

/** True for an RFC 3339 date and time with a zone. */
export function isDateTime(text: string): boolean {
  const parts = /^([^t]{10})t(\d{2}):(\d{2}):(\d{2})(\.\d+)?(z|[+-]\d{2}:\d{2})$/i.exec(text);
  if (!parts || !isDate(parts[1] ?? "")) return false;
  return Number(parts[2]) < 24 && Number(parts[3]) < 60 && Number(parts[4]) <= 60;
}

const durationUnits: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 6e10,
  h: 3.6e12,
};

const longUnits =
  /^(nanos?|nanoseconds?|micros?|microseconds?|millis?|milliseconds?|secs?|seconds?|mins?|minutes?|hrs?|hours?|d|days?|w|wks?|weeks?)$/;

/**
 * Nanoseconds of a Go duration (`1h30m`, `-1.5s`, `0`), or `undefined` when the text is none or overflows 64 bits.
 */
export function parseGoDuration(text: string): bigint | undefined {
  const sign = text.startsWith("-") ? -1n : 1n;
  const body = text.startsWith("-") || text.startsWith("+") ? text.slice(1) : text;
  if (body === "0") return 0n;
  if (body === "" || body.length > 200) return undefined;
  let total = 0n;
  const part = /(\d*)(?:\.(\d*))?([a-zµμ]+)/y;
  while (part.lastIndex < body.length) {
    const found = part.exec(body);
    if (!found) return undefined;
    const [, whole = "", fraction = "", unitName = ""] = found;
    const unit = durationUnits[unitName];
    if (unit === undefined || (whole === "" && fraction === "")) return undefined;
    total += BigInt(whole || "0") * BigInt(unit);
    if (fraction !== "") total += (BigInt(fraction) * BigInt(unit)) / 10n ** BigInt(fraction.length);
  }
  total *= sign;
  return total === BigInt.asIntN(64, total) ? total : undefined;
}

function isDuration(text: string): boolean {
  if (parseGoDuration(text) !== undefined) return true;
  const parts = text.match(/\d+(?:\.\d+)?\s*[A-Za-zµ]+/g) ?? [];
  return (
    parts.length > 0 &&
    parts.every((part) => {
      const unit = part.replace(/^[\d.\s]+/, "").toLowerCase();
      return Object.hasOwn(durationUnits, unit) || longUnits.test(unit);
    })
  );
}

function isHostname(text: string): boolean {
  if (text.length === 0 || text.length > 255) return false;
  const labels = text.split(".");
  return labels.every((label) =>
    /^[\p{L}\p{S}\p{N}]([\p{L}\p{S}\p{N}-]{0,61}[\p{L}\p{S}\p{N}])?$/u.test(label),
  );
}

/** True for an IP address in canonical octet form (no leading zeros, no zone). */
export function isIp(text: string): boolean {
  return isIPv4(text) || (isIPv6(text) && !text.includes("%"));
}

/** True for `address/prefix`. */
export function isCidr(text: string): boolean {
  const slash = text.lastIndexOf("/");
  if (slash < 0) return false;
  const address = text.slice(0, slash);
  const bits = text.slice(slash + 1);
  if (!/^(0|[1-9]\d{0,2})$/.test(bits)) return false;
  if (isIPv4(address)) return Number(bits) <= 32;
  return isIp(address) && Number(bits) <= 128;
}

/** True for what Go's `url.ParseRequestURI` takes: an absolute URI or an absolute path. */
export function isUri(text: string): boolean {
  if (text === "" || /[\u0000-\u0020\u007f]/.test(text)) return false;
  if (/%(?![0-9a-fA-F]{2})/.test(text)) return false;
  if (text.startsWith("/")) return true;
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*:/.exec(text);
  if (!scheme) return false;
  const rest = text.slice(scheme[0].length);
  if (!rest.startsWith("//")) return true;
  const authority = /^\/\/([^/?#]*)/.exec(rest)?.[1] ?? "";
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  return /^(\[[0-9a-fA-F:.%]+\]|[^[\]:<>"\\^`{|}]*)(:\d*)?$/.test(host);
}

/** True for standard base64 with padding, as Go's decoder takes it. */
export function isBase64(text: string): boolean {
  return text.length > 0 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

function checksum(digits: readonly number[], weight: (index: number) => number): number {
  return digits.reduce((sum, digit, i) => sum + digit * weight(i), 0);
}

function isIsbn10(text: string): boolean {
  const bare = text.replace(/[\s-]/g, "");
  if (!/^\d{9}[\dX]$/.test(bare)) return false;
  return (
    checksum(
      [...bare].map((c) => (c === "X" ? 10 : Number(c))),
      (i) => 10 - i,
    ) %
      11 ===
    0
  );
}

function isIsbn13(text: string): boolean {
  const bare = text.replace(/[\s-]/g, "");
  return /^\d{13}$/.test(bare) && checksum([...bare].map(Number), (i) => (i % 2 === 0 ? 1 : 3)) % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const bare = text.replace(/[\s-]/g, "");
  if (!/^\d{13,19}$/.test(bare)) return false;
  const sum = [...bare].reverse().reduce((total, c, i) => {
    const digit = Number(c) * (i % 2 === 0 ? 1 : 2);
    return total + (digit > 9 ? digit - 9 : digit);
  }, 0);
  return sum % 10 === 0;
}

const octet = "(0|[1-9]\\d?|1\\d\\d|2[0-4]\\d|25[0-5])";
const always: Check = () => true;

const checks = new Map<string, Check>([
  ["bsonobjectid", matches(/^[0-9a-fA-F]{24}$/)],
  ["uri", isUri],
  ["email", matches(/^[^\s@<>()[\],;:\\"]{1,64}@[^\s@<>()[\],;:\\"]{1,255}$/)],
  ["hostname", isHostname],
  ["ipv4", isIPv4],
  ["ipv6", (text) => isIPv6(text) && !text.includes("%")],
  ["cidr", isCidr],
  [
    "mac",
    matches(
      /^([0-9a-f]{2}([:-])([0-9a-f]{2}\2){4}([0-9a-f]{2}\2[0-9a-f]{2}\2)?[0-9a-f]{2}|([0-9a-f]{4}\.){2}([0-9a-f]{4}\.)?[0-9a-f]{4})$/i,
    ),
  ],
  ["uuid", uuid("[0-9a-f]")],
  ["uuid3", uuid("3")],
  ["uuid4", uuid("4")],
  ["uuid5", uuid("5")],
  ["isbn", (text) => isIsbn10(text) || isIsbn13(text)],
  ["isbn10", isIsbn10],
  ["isbn13", isIsbn13],
  ["creditcard", isCreditCard],
  ["ssn", matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ["hexcolor", matches(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ["rgbcolor", matches(new RegExp(`^rgb\\(\\s*${octet}\\s*,\\s*${octet}\\s*,\\s*${octet}\\s*\\)$`))],
  ["byte", isBase64],
  ["password", always],
  ["date", isDate],
  ["duration", isDuration],
  ["date-time", isDateTime],
  ["datetime", isDateTime],
]);

/** The check of a string format, or `undefined` for an unknown one. Dashes do not matter, as upstream. */
export function stringFormat(format: string): Check | undefined {
  return checks.get(format) ?? checks.get(format.replaceAll("-", ""));
}
