/**
 * Times and durations between their protobuf form and their JSON form (Kubernetes API conventions, "Time").
 *
 * A time's JSON form is RFC 3339 in UTC with whole seconds, or with exactly six decimals for a micro time.
 * The zero time of Go (0001-01-01T00:00:00Z) stands for "no time" and is `null`.
 */

/** Seconds from Go's zero time to the Unix epoch. */
const zeroSeconds = -62_135_596_800;
const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** A point in time: seconds since the epoch and the nanoseconds on top. */
export interface Instant {
  readonly seconds: number;
  readonly nanos: number;
}

const days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const daysIn = (year: number, month: number): number =>
  month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : (days[month - 1] ?? 0);

let lastText = "";
let lastInstant: Instant | undefined;

/** Parses RFC 3339; `undefined` when it is not. The times of one object are mostly the same: it is read once. */
export function parseTime(text: string): Instant | undefined {
  if (text !== lastText) {
    lastInstant = readTime(text);
    lastText = text;
  }
  return lastInstant;
}

function readTime(text: string): Instant | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const offset = (Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0)) * (match[8] === "-" ? -60 : 60);
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offset;
  return { seconds, nanos: Number((match[7] ?? "").padEnd(9, "0").slice(0, 9)) };
}

/** JSON form of a time; `null` for the zero time. */
export function formatTime({ seconds, nanos }: Instant, micro: boolean): string | null {
  if (seconds === zeroSeconds && nanos === 0) return null;
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return null;
  const text = date.toISOString().slice(0, -5);
  return micro ? `${text}.${String(Math.floor(nanos / 1000)).padStart(6, "0")}Z` : `${text}Z`;
}

/** JSON form of the time that any RFC 3339 text stands for, or `undefined` when it is none. */
export function canonicalTime(text: string, micro: boolean): string | null | undefined {
  // The usual case is canonical already.
  if (!micro && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && parseTime(text) !== undefined) {
    return text.startsWith("0001-01-01T00:00:00") ? null : text;
  }
  const instant = parseTime(text);
  return instant === undefined ? undefined : formatTime(instant, micro);
}

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** Nanoseconds of a Go duration (`1h2m3.5s`), or `undefined`. */
export function parseDuration(text: string): bigint | undefined {
  if (text === "0" || text === "+0" || text === "-0") return 0n;
  const match = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.exec(text);
  if (match === null) return undefined;
  let total = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of text.matchAll(
    /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g,
  )) {
    const scale = units[unit] ?? 0n;
    total += BigInt(whole === "" ? 0 : whole) * scale;
    if (fraction !== "") total += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  return match[1] === "-" ? -total : total;
}

/** Go's text for a duration in nanoseconds. */
export function formatDuration(nanoseconds: bigint): string {
  if (nanoseconds === 0n) return "0s";
  const sign = nanoseconds < 0n ? "-" : "";
  const total = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  const decimal = (value: bigint, digits: number): string => {
    const scale = 10n ** BigInt(digits);
    const fraction = (value % scale).toString().padStart(digits, "0").replace(/0+$/, "");
    return fraction === "" ? String(value / scale) : `${value / scale}.${fraction}`;
  };
  if (total < 1_000n) return `${sign}${total}ns`;
  if (total < 1_000_000n) return `${sign}${decimal(total, 3)}µs`;
  if (total < 1_000_000_000n) return `${sign}${decimal(total, 6)}ms`;
  const minutes = total / 60_000_000_000n;
  const seconds = `${decimal(total % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  const hours = minutes / 60n;
  return hours === 0n ? `${sign}${minutes}m${seconds}` : `${sign}${hours}h${minutes % 60n}m${seconds}`;
}
