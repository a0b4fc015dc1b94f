/**
 * Identifiers: UUIDs of version 7 (time-ordered) and the name pieces Kubernetes uses.
 */
import type { Clock } from "./clock.ts";
import { formatUuid, type Random } from "./random.ts";

/** A time-ordered UUID (RFC 9562, version 7): sorts by creation time, still unguessable. */
export function uuidv7(clock: Clock, random: Random): string {
  const raw = Buffer.from(random.bytes(16));
  raw.writeUIntBE(clock.now(), 0, 6);
  return formatUuid(raw, 7);
}

/** The alphabet of `generateName` suffixes: no vowels and no look-alikes, so no words appear. */
export const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789";

/** A random suffix of `length` characters from {@link nameAlphabet}. */
export function nameSuffix(random: Random, length = 5): string {
  let out = "";
  for (let i = 0; i < length; i++) out += nameAlphabet[random.integer(nameAlphabet.length)];
  return out;
}

/** RFC 1123 label: lower-case letters, digits and `-`, starting and ending alphanumeric, at most 63. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text);
}

/** RFC 1123 subdomain: labels joined by dots, at most 253. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text);
}
