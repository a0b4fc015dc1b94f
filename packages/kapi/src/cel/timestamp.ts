/**
 * RFC 3339 timestamps with nanoseconds, as CEL reads and prints them.
 */
import { isDateTime } from "../schema/formats.ts";

/** Nanoseconds since the epoch, or `undefined` when the text is not RFC 3339. */
export function parseRfc3339(text: string): bigint | undefined {
  if (text.length > 64 || !isDateTime(text)) return undefined;
  const parts = /^(.{19})(?:\.(\d+))?(z|[+-]\d{2}:\d{2})$/i.exec(text);
  if (!parts) return undefined;
  const [, base = "", fraction = "", zone = ""] = parts;
  const ms = Date.parse(`${base.toUpperCase()}${zone.toUpperCase()}`);
  if (Number.isNaN(ms)) return undefined;
  return BigInt(ms) * 1_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, "0"));
}

/** The RFC 3339 text in UTC, with as many decimals as needed. */
export function formatRfc3339(ns: bigint): string {
  const fraction = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const seconds = (ns - fraction) / 1_000_000_000n;
  const base = new Date(Number(seconds) * 1000).toISOString().replace(/\.\d+Z$/, "");
  const decimals = fraction === 0n ? "" : `.${String(fraction).padStart(9, "0").replace(/0+$/, "")}`;
  return `${base}${decimals}Z`;
}
