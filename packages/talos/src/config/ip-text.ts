/**
 * Addresses and networks as Go reads them: four decimal parts or IPv6, and nothing older. (`1` and
 * `0x7f000001` are addresses to some, and must not be here.)
 */
import ipaddr from "ipaddr.js";

/** Whether the text is an IP address. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
}

/** Whether the text is an address with a prefix length. */
export function isNetwork(text: string): boolean {
  const [address = "", length = "", ...rest] = text.split("/");
  if (rest.length > 0 || !/^\d{1,3}$/.test(length)) return false;
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return Number(length) <= 32;
  return ipaddr.IPv6.isValid(address) && Number(length) <= 128;
}

/** Whether the text is a network that is written with its first address. */
export function isMasked(network: string): boolean {
  if (!isNetwork(network)) return false;
  const [address = "", length = "0"] = network.split("/");
  const bytes = ipaddr.parse(address).toByteArray();
  return bytes.every((byte, index) => {
    const kept = Math.min(8, Math.max(0, Number(length) - index * 8));
    return byte % 2 ** (8 - kept) === 0;
  });
}
