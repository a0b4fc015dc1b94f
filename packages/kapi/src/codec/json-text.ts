/**
 * JSON text inside protobuf bytes, with integers beyond 2^53 kept as `bigint` in both directions.
 */
import { CodedError } from "@kontinuum/std";

const decoder = new TextDecoder("utf-8");

/** Parses JSON bytes. Throws `invalid_argument`. */
export function parseJsonBytes(bytes: Uint8Array): unknown {
  const text = decoder.decode(bytes);
  try {
    const value: unknown = JSON.parse(text);
    // A second pass only where the text holds a number that may have been rounded.
    return /\d{16}/.test(text) ? JSON.parse(text, exactIntegers) : value;
  } catch (error) {
    throw new CodedError("invalid_argument", "protobuf: embedded JSON cannot be parsed", { cause: error });
  }
}

function exactIntegers(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined) return value;
  if (Number.isSafeInteger(value) || !/^-?\d+$/.test(source)) return value;
  return BigInt(source);
}

const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

/** Compact JSON text of a value that may hold `bigint`. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, exactText);
}

const exactText = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? rawJson(String(value)) : value;
