/**
 * The name of an Instance made from an address: the same address gives the same name on every path, so
 * that a machine registered twice is one object.
 *
 * The hash is FNV-1a (32 bits, public domain) over a text of the spec, spelled with letters that make no
 * words. The text and the spelling are fixed: objects made by earlier programs carry these names.
 */
import { nameAlphabet } from "@kontinuum/std";

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

function fnv1a(text: string): number {
  let hash = offsetBasis;
  for (const byte of Buffer.from(text, "utf8")) {
    hash = Math.imul(hash ^ byte, prime) >>> 0;
  }
  return hash;
}

/** `instance-<hash>` for a machine reached at `address`. */
export function instanceName(address: string): string {
  const text = `(v1alpha2.InstanceSpec){Interfaces:([]string)[${address}] ProviderRef:(*v1alpha2.ObjectReference)<nil>}`;
  const spelled = Array.from(
    String(fnv1a(text)),
    (digit) => nameAlphabet[digit.charCodeAt(0) % nameAlphabet.length] ?? "",
  );
  return `instance-${spelled.join("")}`;
}
