/**
 * Intervals of keys, normalised once so that nobody else interprets `range_end` conventions.
 *
 * A span is half-open; `end` absent means "to the end of the key space". One key `k` is the span
 * from `k` to `k` followed by a zero byte: no key lies between the two.
 */
import { toBytes, type KeyRange } from "../contract.ts";
import { fault } from "../faults.ts";

/** A normalised interval `[start, end)`. */
export interface Span {
  readonly start: Buffer;
  readonly end: Buffer | undefined;
  /** The interval holds exactly the key `start`. */
  readonly single: boolean;
}

const zero = Buffer.from([0]);

/** The span of one key. */
export function pointSpan(key: Buffer): Span {
  return { start: key, end: Buffer.concat([key, zero]), single: true };
}

/** Normalises a request's range. Fails with `invalid_argument` when the key is empty. */
export function spanOf(range: KeyRange): Span {
  const start = toBytes(range.key);
  if (start.length === 0) throw fault("empty_key", "a key must not be empty");
  if (range.end === undefined) return pointSpan(start);
  const end = toBytes(range.end);
  // The wire cannot tell an absent `range_end` from an empty one: both mean one key.
  if (end.length === 0) return pointSpan(start);
  if (end.length === 1 && end[0] === 0) {
    // "\0" to "\0" is the whole key space; its first key is the lowest possible one, "\0" itself.
    return { start, end: undefined, single: false };
  }
  return { start, end, single: false };
}

/** Whether `key` lies in `span`. */
export function inSpan(span: Span, key: Buffer): boolean {
  if (span.single) return span.start.equals(key);
  return span.start.compare(key) <= 0 && (span.end === undefined || key.compare(span.end) < 0);
}

/** Whether two spans share a possible key. */
export function overlaps(a: Span, b: Span): boolean {
  return (
    (a.end === undefined || b.start.compare(a.end) < 0) && (b.end === undefined || a.start.compare(b.end) < 0)
  );
}
