/**
 * Which addresses discovery may dial. Whoever may write an Instance chooses the address, and what answers
 * there may later be handed a cluster's secrets: so addresses that lead back into this host or into
 * the cloud's own services are refused, unless the operator named their range.
 */
import net from "node:net";
import { isSpecialAddress } from "@kontinuum/std";
import type { Cidr } from "../../config/cidr.ts";

/** Whether `address` may be dialled. Only IP addresses may: a name could lead elsewhere at each look-up. */
export function mayDial(address: string, allowed: readonly Cidr[]): boolean {
  if (net.isIP(address) === 0) return false;
  if (allowed.some((range) => range.contains(address))) return true;
  return !isSpecialAddress(address);
}
