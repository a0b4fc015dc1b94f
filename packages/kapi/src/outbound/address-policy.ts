/**
 * Which addresses the server itself may connect to on somebody's behalf.
 *
 * A webhook's URL is written by a tenant: without this rule it would reach the server's own loopback listeners,
 * cloud metadata services and neighbours on the link.
 */
import ipaddr from "ipaddr.js";
import { CodedError } from "@kontinuum/std";

/** Ranges nobody gets to without being allowed. */
const refusedRanges: ReadonlySet<string> = new Set([
  "unspecified",
  "loopback",
  "linkLocal",
  "multicast",
  "broadcast",
  "reserved",
  "carrierGradeNat",
]);

/** Metadata services outside the link-local range. */
const metadataAddresses: ReadonlySet<string> = new Set(["fd00:ec2::254", "100.100.100.200", "192.0.0.192"]);

/** Decides about an address. */
export interface AddressPolicy {
  allows(address: string): boolean;
}

/** The default policy, with ranges in CIDR form that are allowed all the same. Fails with `invalid_argument`. */
export function addressPolicy(allowed: readonly string[]): AddressPolicy {
  const ranges = allowed.map((text) => {
    try {
      return text.includes("/") ? ipaddr.parseCIDR(text) : wholeAddress(text);
    } catch (cause) {
      throw new CodedError(
        "invalid_argument",
        `${JSON.stringify(text)} is no address range: write 10.0.0.0/8 or an address`,
        { cause },
      );
    }
  });
  return {
    allows(text) {
      if (!ipaddr.isValid(text)) return false;
      // An IPv4 address in IPv6 clothes is the IPv4 address.
      const address = ipaddr.process(text);
      for (const [base, bits] of ranges) {
        if (base.kind() === address.kind() && address.match(base, bits)) return true;
      }
      if (metadataAddresses.has(address.toString())) return false;
      return !refusedRanges.has(address.range());
    },
  };
}

function wholeAddress(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const address = ipaddr.parse(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}
