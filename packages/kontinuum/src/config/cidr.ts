/**
 * Address ranges in CIDR notation, IPv4 and IPv6.
 */
import net from "node:net";
import { CodedError } from "@kontinuum/std";

/** A range of addresses. */
export interface Cidr {
  readonly text: string;
  contains(address: string): boolean;
}

/** Parses a comma-separated list that came from `source`. Fails with `invalid_argument`. */
export function parseCidrs(source: string, text: string): readonly Cidr[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => parseCidr(source, part));
}

function parseCidr(source: string, text: string): Cidr {
  const [address = "", bits = "", ...rest] = text.split("/");
  const family = net.isIP(address);
  const prefix = /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (family === 0 || rest.length > 0 || !(prefix <= (family === 6 ? 128 : 32))) {
    throw new CodedError(
      "invalid_argument",
      `${source}: ${JSON.stringify(text)} is not a range such as 10.0.0.0/8`,
    );
  }
  const list = new net.BlockList();
  const type = family === 6 ? "ipv6" : "ipv4";
  list.addSubnet(address, prefix, type);
  return {
    text,
    contains: (candidate) => {
      const version = net.isIP(candidate);
      return version !== 0 && list.check(candidate, version === 6 ? "ipv6" : "ipv4");
    },
  };
}
