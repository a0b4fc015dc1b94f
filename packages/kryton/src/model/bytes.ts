/**
 * Strings measured in UTF-8 bytes, as the contract counts them, and times as it prints them.
 */
import { z } from "zod";

/** A string of at most `max` bytes; the document shows the same number as `maxLength`. */
export function boundedText(max: number): z.ZodString {
  return z
    .string()
    .refine((text) => Buffer.byteLength(text, "utf8") <= max, {
      message: `must be at most ${max} bytes`,
    })
    .meta({ maxLength: max });
}

/** A time as the API prints it: RFC 3339, UTC, milliseconds, trailing zeros trimmed. */
export function formatTime(epochMs: number): string {
  return new Date(epochMs)
    .toISOString()
    .replace(/\.(\d*?)0*Z$/, (_, digits: string) => (digits === "" ? "Z" : `.${digits}Z`));
}

/** The never-set time of the original's serializer. */
export const zeroTime = "0001-01-01T00:00:00Z";

/** A time in a response. */
export const timeSchema = z.string().meta({ format: "date-time" });
