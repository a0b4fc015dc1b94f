/**
 * Checks a cron schedule and a time zone (robfig/cron standard syntax, which CronJobs document): five fields,
 * or a descriptor such as `@hourly` or `@every 5m`.
 */
import { parseDuration } from "../../codec/time.ts";

interface FieldRange {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const ranges: readonly FieldRange[] = [
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  { name: "month", min: 1, max: 12, names: months },
  { name: "day of week", min: 0, max: 6, names: weekdays },
];
const descriptors: ReadonlySet<string> = new Set([
  "@yearly",
  "@annually",
  "@monthly",
  "@weekly",
  "@daily",
  "@midnight",
  "@hourly",
]);

/** Why a schedule is none; `undefined` when it is one. */
export function scheduleError(schedule: string): string | undefined {
  const text = schedule.trim();
  if (text.startsWith("@")) {
    if (descriptors.has(text)) return undefined;
    if (text.startsWith("@every ")) {
      return parseDuration(text.slice("@every ".length)) === undefined
        ? `failed to parse duration ${schedule}: invalid duration`
        : undefined;
    }
    return `unrecognized descriptor: ${schedule}`;
  }
  const fields = text.split(/\s+/).filter((field) => field !== "");
  if (fields.length !== ranges.length) {
    return `expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`;
  }
  for (const [index, range] of ranges.entries()) {
    const why = fieldError(fields[index] ?? "", range);
    if (why !== undefined) return why;
  }
  return undefined;
}

function fieldError(field: string, range: FieldRange): string | undefined {
  for (const part of field.split(",")) {
    const why = partError(part, range);
    if (why !== undefined) return why;
  }
  return undefined;
}

function partError(part: string, range: FieldRange): string | undefined {
  const [span = "", step, ...rest] = part.split("/");
  if (rest.length > 0) return `too many slashes: ${part}`;
  if (step !== undefined) {
    if (!/^\d+$/.test(step))
      return `failed to parse int from ${step}: strconv.Atoi: parsing ${JSON.stringify(step)}: invalid syntax`;
    if (Number(step) === 0) return `step of range should be a positive number: ${part}`;
  }
  if (span === "*" || span === "?") return undefined;
  const bounds = span.split("-");
  if (bounds.length > 2) return `too many hyphens: ${part}`;
  const values = bounds.map((bound) => valueOf(bound, range));
  for (const [index, value] of values.entries()) {
    const bound = bounds[index] ?? "";
    if (value === undefined) {
      return `failed to parse int from ${bound}: strconv.Atoi: parsing ${JSON.stringify(bound)}: invalid syntax`;
    }
    if (value < range.min) return `beginning of range (${value}) below minimum (${range.min}): ${part}`;
    if (value > range.max) return `end of range (${value}) above maximum (${range.max}): ${part}`;
  }
  const [from = 0, to = from] = values as number[];
  return from > to ? `beginning of range (${from}) beyond end of range (${to}): ${part}` : undefined;
}

function valueOf(text: string, range: FieldRange): number | undefined {
  const named = range.names?.indexOf(text.toLowerCase()) ?? -1;
  if (named >= 0) return named + range.min;
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Whether a name is a time zone of the IANA database. */
export function isTimeZone(name: string): boolean {
  if (name === "" || name.toLowerCase() === "local") return false;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return !/^[+-]/.test(name);
  } catch {
    return false;
  }
}
