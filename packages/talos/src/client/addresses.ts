/**
 * Addresses as Talos puts them on the wire (4 or 16 raw bytes, a zone as text behind them) and as
 * people write them; and which of a node's addresses is worth dialling.
 */
import ipaddr from "ipaddr.js";
import { isAddress } from "../config/ip-text.ts";

/** The text of raw address bytes, or `undefined` when they are none. */
export function addressText(bytes: Uint8Array): string | undefined {
  if (bytes.length === 4) return ipaddr.fromByteArray([...bytes]).toString();
  if (bytes.length < 16 || bytes.length > 16 + 64) return undefined;
  const text = ipaddr.fromByteArray([...bytes.subarray(0, 16)]).toString();
  const zone = Buffer.from(bytes.subarray(16)).toString("utf8");
  return zone ? `${text}%${zone}` : text;
}

/** The raw bytes of an address text without zone, or `undefined` when it is none. */
export function addressBytes(text: string): Uint8Array | undefined {
  if (!isAddress(text)) return undefined;
  return Uint8Array.from(ipaddr.parse(text).toByteArray());
}

/** `aa:bb:cc:dd:ee:ff`, or an empty text for no address. */
export function hardwareAddressText(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/** Not for dialling: loopback, link-local, multicast and unspecified addresses. */
export function isDialable(address: string): boolean {
  if (!isAddress(address) || address.includes("%")) return false;
  const range = ipaddr.parse(address).range();
  return !["loopback", "linkLocal", "multicast", "unspecified", "broadcast"].includes(range);
}

/**
 * The address to dial a discovered node on: the first that {@link isDialable}, in the order of
 * links and addresses the node gave; `undefined` when it has none.
 */
export function dialAddressOf(
  interfaces: readonly { readonly addresses: readonly string[] }[],
): string | undefined {
  for (const { addresses } of interfaces) {
    for (const cidr of addresses) {
      const address = cidr.split("/")[0] ?? "";
      if (isDialable(address)) return address;
    }
  }
  return undefined;
}
