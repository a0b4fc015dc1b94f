/**
 * IP addresses and networks as the API writes them, checked and normalised with ipaddr.js.
 */
import ipaddr from "ipaddr.js";

/** The family of an address, or `undefined` when the text is none. Leading zeros are refused. */
export function ipFamily(text: string): "IPv4" | "IPv6" | undefined {
  if (text.includes("%") || /(^|\.)0\d/.test(text)) return undefined;
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return "IPv4";
  return ipaddr.IPv6.isValid(text) ? "IPv6" : undefined;
}

/** The family of a network in CIDR form, or `undefined`. */
export function cidrFamily(text: string): "IPv4" | "IPv6" | undefined {
  const [address = "", length = "", ...rest] = text.split("/");
  const family = ipFamily(address);
  if (family === undefined || rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined;
  return Number(length) <= (family === "IPv4" ? 32 : 128) ? family : undefined;
}

/** Whether a network lies inside another. */
export function cidrContains(outer: string, inner: string): boolean {
  if (cidrFamily(outer) === undefined || cidrFamily(outer) !== cidrFamily(inner)) return false;
  const [network, length] = ipaddr.parseCIDR(outer);
  const [innerNetwork, innerLength] = ipaddr.parseCIDR(inner);
  return innerLength >= length && innerNetwork.match(network, length);
}

/** Why an address may not be an endpoint; `undefined` when it may. */
export function specialAddressError(text: string): string | undefined {
  if (ipFamily(text) === undefined) return undefined;
  switch (ipaddr.parse(text).range()) {
    case "unspecified":
      return "may not be unspecified (0.0.0.0 or ::)";
    case "loopback":
      return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    case "linkLocal":
      return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    case "multicast":
      return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    default:
      return undefined;
  }
}

/** What Kubernetes answers for a text that is no address. */
export const ipError = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/** What Kubernetes answers for a text that is no network. */
export const cidrError = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
