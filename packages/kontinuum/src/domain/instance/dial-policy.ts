/**
 * Which addresses discovery may dial. Whoever may write an Instance chooses the address, and what answers
 * there may later be handed a cluster's secrets: so addresses that lead back into this host or into
 * the cloud's own services are refused, unless the operator named their range.
 */
import net from "node:net";
import type { Cidr } from "../../config/cidr.ts";

const refused = new net.BlockList();
for (const [address, prefix] of [
  ["0.0.0.0", 8], // this network
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link-local, with the cloud metadata services
  ["192.0.0.0", 24], // protocol assignments, with one provider's metadata service
  ["100.100.100.200", 32], // one provider's metadata service
  ["168.63.129.16", 32], // one provider's platform service
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, with broadcast
] as const) {
  refused.addSubnet(address, prefix, "ipv4");
}
for (const [address, prefix] of [
  ["::", 128], // unspecified
  ["::1", 128], // loopback
  ["fe80::", 10], // link-local
  ["fd00:ec2::254", 128], // one provider's metadata service
  ["ff00::", 8], // multicast
  ["64:ff9b::", 96], // translated IPv4: the embedded address is not checked, so none is let through
] as const) {
  refused.addSubnet(address, prefix, "ipv6");
}

/** Whether `address` may be dialled. Only IP addresses may: a name could lead elsewhere at each look-up. */
export function mayDial(address: string, allowed: readonly Cidr[]): boolean {
  const version = net.isIP(address);
  if (version === 0) return false;
  if (allowed.some((range) => range.contains(address))) return true;
  // BlockList checks an IPv4-mapped IPv6 address against the IPv4 rules by itself.
  return !refused.check(address, version === 6 ? "ipv6" : "ipv4");
}
