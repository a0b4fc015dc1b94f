/**
 * JSON that loses nothing: integers beyond 2^53 are read as `bigint` and written back digit for digit.
 *
 * The engine's own parser does the work; the slower exact reading runs only for texts that hold a run of
 * sixteen digits. Numbers no double can hold (1e400) and texts nested deeper than {@link maxDepth} are refused,
 * so that everything behind this module may recurse.
 */
import { CodedError, isObject } from "@kontinuum/std";

/** Greatest nesting of arrays and objects in any body or stored value. */
export const maxDepth = 500;

const sixteenDigits = /\d{16}/;

interface ReviverContext {
  readonly source?: string;
}

// The engine passes the source text of primitives to a reviver and knows raw JSON (TC39 "JSON.parse source text
// access"); the library types do not have either yet.
interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context: ReviverContext) => unknown): unknown;
  rawJSON(text: string): unknown;
}
const exact: ExactJson = JSON as unknown as ExactJson;

function revive(_key: string, value: unknown, context: ReviverContext): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context.source ?? "";
  if (/^-?\d+$/.test(source)) return BigInt(source);
  return value;
}

function invalid(message: string): CodedError {
  return new CodedError("invalid_argument", message);
}

/** Reads a JSON text. Fails with `invalid_argument`. */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = sixteenDigits.test(text) ? exact.parse(text, revive) : JSON.parse(text);
  } catch (cause) {
    const why = cause instanceof RangeError ? "nested too deeply" : describe(cause);
    throw new CodedError("invalid_argument", `invalid JSON: ${why}`, { cause });
  }
  return value;
}

function describe(cause: unknown): string {
  // The engine quotes the text around the error, which may hold a secret: keep the position only.
  const position = cause instanceof Error ? /position (\d+)/.exec(cause.message)?.[1] : undefined;
  return position === undefined
    ? "unexpected end or character"
    : `unexpected character at position ${position}`;
}

/** Writes a value as compact JSON. `indent` of two for people. */
export function stringifyJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, undefined, indent);
  } catch (cause) {
    // Only a bigint (or a cycle, which then fails again) makes the plain writer throw a TypeError.
    if (!(cause instanceof TypeError)) throw cause;
    return JSON.stringify(
      value,
      (_key, v: unknown) => (typeof v === "bigint" ? exact.rawJSON(v.toString()) : v),
      indent,
    );
  }
}

/** What {@link measure} counts. */
export interface Measure {
  /** Keys of all objects. */
  readonly keys: number;
  readonly depth: number;
}

/** Counts keys and depth without recursion; fails with `invalid_argument` beyond {@link maxDepth} and on infinite numbers. */
export function measure(value: unknown): Measure {
  let keys = 0;
  let depth = 0;
  let level: unknown[] = [value];
  while (level.length > 0) {
    const next: unknown[] = [];
    for (const item of level) {
      if (Array.isArray(item)) {
        for (const entry of item) {
          if (typeof entry === "object" ? entry !== null : typeof entry === "number") next.push(entry);
        }
      } else if (isObject(item)) {
        for (const key in item) {
          keys++;
          const entry = item[key];
          if (typeof entry === "object" ? entry !== null : typeof entry === "number") next.push(entry);
        }
      } else if (typeof item === "number" && !Number.isFinite(item)) {
        throw invalid("invalid JSON: a number is out of range");
      }
    }
    level = next;
    if (level.length > 0 && ++depth > maxDepth)
      throw invalid(`invalid JSON: nested deeper than ${maxDepth} levels`);
  }
  return { keys, depth };
}

/** A deep copy of a JSON value. */
export function cloneJson<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (!isObject(value)) return value;
  const out: Record<string, unknown> = {};
  for (const key in value) setOwn(out, key, copy(value[key]));
  return out;
}

/** Sets an own property whatever its name, `__proto__` included. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else target[key] = value;
}

/** Equality of JSON values: key order does not matter, `1` equals `1n`. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) {
    return (typeof a === "bigint" && b === Number(a)) || (typeof b === "bigint" && a === Number(b));
  }
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!equalJson(a[i], b[i])) return false;
    return true;
  }
  if (Array.isArray(b) || !isObject(a) || !isObject(b)) return false;
  let count = 0;
  for (const key in a) {
    if (a[key] === undefined) continue;
    count++;
    if (!Object.hasOwn(b, key) || !equalJson(a[key], b[key])) return false;
  }
  for (const key in b) if (b[key] !== undefined) count--;
  return count === 0;
}
