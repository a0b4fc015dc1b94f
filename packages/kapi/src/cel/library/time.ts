/**
 * Reading calendar fields of timestamps and units of durations (cel-spec "Timestamp and duration").
 */
import { CelError } from "../error.ts";
import { fixedCharge, member, type Overload, type OverloadOptions } from "../function.ts";
import type { CelTimestamp } from "../value.ts";

/** Integer division towards negative infinity. */
export function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}

/** The calendar fields of a timestamp in a time zone: UTC, a fixed offset or an IANA name. */
function calendar(value: CelTimestamp, zone: string): Date {
  const ms = Number(floorDiv(value.ns, 1_000_000n));
  if (zone === "" || zone === "UTC" || zone === "Z") return new Date(ms);
  const offset = /^([+-]?)(\d{2}):(\d{2})$/.exec(zone);
  if (offset) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    return new Date(ms + (offset[1] === "-" ? -minutes : minutes) * 60_000);
  }
  try {
    const parts = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    }).formatToParts(new Date(ms));
    const part = (type: string): number => Number(parts.find((p) => p.type === type)?.value ?? 0);
    const milliseconds = ((ms % 1000) + 1000) % 1000;
    return new Date(
      Date.UTC(
        part("year"),
        part("month") - 1,
        part("day"),
        part("hour"),
        part("minute"),
        part("second"),
        milliseconds,
      ),
    );
  } catch {
    throw new CelError(`unknown time zone ${zone.slice(0, 64)}`);
  }
}

const dayOfYear = (date: Date): number =>
  Math.round(
    (Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()) -
      Date.UTC(date.getUTCFullYear(), 0, 1)) /
      86_400_000,
  );

const calendarFields: readonly [string, (date: Date) => number][] = [
  ["getFullYear", (d) => d.getUTCFullYear()],
  ["getMonth", (d) => d.getUTCMonth()],
  ["getDayOfYear", dayOfYear],
  ["getDayOfMonth", (d) => d.getUTCDate() - 1],
  ["getDate", (d) => d.getUTCDate()],
  ["getDayOfWeek", (d) => d.getUTCDay()],
  ["getHours", (d) => d.getUTCHours()],
  ["getMinutes", (d) => d.getUTCMinutes()],
  ["getSeconds", (d) => d.getUTCSeconds()],
  ["getMilliseconds", (d) => d.getUTCMilliseconds()],
];

const durationUnits: readonly [string, bigint][] = [
  ["getHours", 3_600_000_000_000n],
  ["getMinutes", 60_000_000_000n],
  ["getSeconds", 1_000_000_000n],
];

/** Reading a calendar field in a named zone costs far more than other calls. */
const zoneLookup: OverloadOptions = { charge: fixedCharge(3000) };

/** All overloads of times. */
export const timeLibrary: readonly Overload[] = [
  ...calendarFields.flatMap(([name, read]) => [
    member(name, ["timestamp"], "int", (v) => BigInt(read(calendar(v, ""))), { charge: fixedCharge(10) }),
    member(name, ["timestamp", "string"], "int", (v, zone) => BigInt(read(calendar(v, zone))), zoneLookup),
  ]),
  ...durationUnits.map(([name, unit]) => member(name, ["duration"], "int", (v) => v.ns / unit)),
  member("getMilliseconds", ["duration"], "int", (v) => (v.ns / 1_000_000n) % 1000n),
];
