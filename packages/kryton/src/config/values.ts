/**
 * Values of environment variables, read strictly: a bad one is refused with its name, never ignored.
 */
import { CodedError } from "@kontinuum/std";

/** The environment, or what stands in for it. */
export type Environment = Readonly<Record<string, string | undefined>>;

function bad(name: string, problem: string): CodedError {
  return new CodedError("invalid_argument", `${name}: ${problem}`);
}

/** A text; empty counts as unset. */
export function text(env: Environment, name: string, fallback = ""): string {
  const value = env[name];
  return value === undefined || value === "" ? fallback : value;
}

/** A boolean in the forms 1, t, T, true, TRUE, True and the same for false. */
export function flag(env: Environment, name: string, fallback: boolean): boolean {
  const value = env[name];
  if (value === undefined || value === "") return fallback;
  if (["1", "t", "T", "true", "TRUE", "True"].includes(value)) return true;
  if (["0", "f", "F", "false", "FALSE", "False"].includes(value)) return false;
  throw bad(name, `${JSON.stringify(value)} is not a boolean; use true or false`);
}

/** A whole number within bounds. */
export function integer(env: Environment, name: string, fallback: number, min: number, max: number): number {
  const value = env[name];
  if (value === undefined || value === "") return fallback;
  const parsed = /^[+-]?\d+$/.test(value) ? Number(value) : NaN;
  if (!Number.isSafeInteger(parsed) || parsed < min || parsed > max) {
    throw bad(name, `${JSON.stringify(value)} is not a whole number from ${min} to ${max}`);
  }
  return parsed;
}

/** A number of at least 0. */
export function decimal(env: Environment, name: string, fallback: number): number {
  const value = env[name];
  if (value === undefined || value === "") return fallback;
  const parsed = Number(value);
  if (!Number.isFinite(parsed) || parsed < 0)
    throw bad(name, `${JSON.stringify(value)} is not a number of 0 or more`);
  return parsed;
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds of a duration like `30s`, `1m30s`, `1.5h` or `0`; `undefined` when it is not one. */
export function parseDuration(value: string): number | undefined {
  if (value === "0") return 0;
  const sign = value.startsWith("-") ? -1 : 1;
  const body = value.replace(/^[+-]/, "");
  if (!/^(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$/.test(body)) return undefined;
  let total = 0;
  for (const [, amount = "", unit = ""] of body.matchAll(/(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * (unitMs[unit] ?? NaN);
  }
  return sign * total;
}

/** A duration, in milliseconds. */
export function duration(env: Environment, name: string, fallbackMs: number): number {
  const value = env[name];
  if (value === undefined || value === "") return fallbackMs;
  const parsed = parseDuration(value);
  if (parsed === undefined) throw bad(name, `${JSON.stringify(value)} is not a duration like 30s or 1m30s`);
  return parsed;
}

/** A comma-separated list: trimmed, without empty entries and duplicates. */
export function list(env: Environment, name: string): string[] {
  const parts = (env[name] ?? "").split(",").map((part) => part.trim());
  return [...new Set(parts.filter((part) => part !== ""))];
}

/** One of a closed set. */
export function choice<T extends string>(
  env: Environment,
  name: string,
  choices: readonly T[],
  fallback: T,
): T {
  const value = env[name];
  if (value === undefined || value === "") return fallback;
  const found = choices.find((candidate) => candidate === value);
  if (found === undefined) throw bad(name, `${JSON.stringify(value)} is not one of ${choices.join(", ")}`);
  return found;
}
