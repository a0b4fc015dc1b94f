/**
 * The Kubernetes IP and CIDR functions. Strict as upstream: no leading zeros, no zones, no IPv4-mapped IPv6.
 */
import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import { CelError } from "../error.ts";
import {
  global,
  member,
  traversalFactor,
  traversesFirst,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import { CelOpaque, sizeOf, type CelValue } from "../value.ts";

const ipType = "net.IP";
const cidrType = "net.CIDR";

/** Longest text of an address or range. */
const maxAddressLength = 64;

/** An address as a number. */
class CelIp extends CelOpaque {
  readonly typeName = ipType;
  readonly family: 4 | 6;
  readonly bits: bigint;

  constructor(family: 4 | 6, bits: bigint) {
    super();
    this.family = family;
    this.bits = bits;
  }

  get width(): number {
    return this.family === 4 ? 32 : 128;
  }

  /** The canonical text: dotted, or RFC 5952. */
  get text(): string {
    if (this.family === 4) return [24n, 16n, 8n, 0n].map((shift) => (this.bits >> shift) & 255n).join(".");
    const bytes = Array.from({ length: 16 }, (_, i) => Number((this.bits >> BigInt(120 - 8 * i)) & 255n));
    return new ipaddr.IPv6(bytes).toRFC5952String();
  }

  /** True when the first `length` bits equal those of `other`. */
  sharesPrefix(other: CelIp, length: number): boolean {
    if (this.family !== other.family) return false;
    const shift = BigInt(this.width - length);
    return this.bits >> shift === other.bits >> shift;
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelIp && other.family === this.family && other.bits === this.bits;
  }
}

/** A range. */
class CelCidr extends CelOpaque {
  readonly typeName = cidrType;
  readonly address: CelIp;
  readonly length: number;

  constructor(address: CelIp, length: number) {
    super();
    this.address = address;
    this.length = length;
  }

  get text(): string {
    return `${this.address.text}/${this.length}`;
  }

  masked(): CelCidr {
    const shift = BigInt(this.address.width - this.length);
    return new CelCidr(new CelIp(this.address.family, (this.address.bits >> shift) << shift), this.length);
  }

  contains(address: CelIp, length = address.width): boolean {
    return length >= this.length && this.address.sharesPrefix(address, this.length);
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelCidr && other.length === this.length && other.address.equals(this.address);
  }
}

function parseIp(text: string): CelIp | undefined {
  if (text.length > maxAddressLength) return undefined;
  if (isIPv4(text))
    return new CelIp(
      4,
      text.split(".").reduce((bits, part) => (bits << 8n) | BigInt(part), 0n),
    );
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const bits = ipaddr.IPv6.parse(text)
    .toByteArray()
    .reduce((total, byte) => (total << 8n) | BigInt(byte), 0n);
  // IPv4-mapped addresses are refused, as upstream.
  return bits >> 32n === 0xffffn ? undefined : new CelIp(6, bits);
}

function parseCidr(text: string): CelCidr | undefined {
  const slash = text.indexOf("/");
  const length = text.slice(slash + 1);
  if (slash < 0 || !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined;
  const address = parseIp(text.slice(0, slash));
  return address && Number(length) <= address.width ? new CelCidr(address, Number(length)) : undefined;
}

function ip(text: string): CelIp {
  const parsed = parseIp(text);
  if (!parsed)
    throw new CelError(
      `IP Address ${JSON.stringify(text.slice(0, maxAddressLength))} parse error during conversion from string: ParseAddr: unable to parse IP`,
    );
  return parsed;
}

function cidr(text: string): CelCidr {
  const parsed = parseCidr(text);
  if (!parsed)
    throw new CelError(
      `network address parse error during conversion from string: netip.ParsePrefix(${JSON.stringify(text.slice(0, maxAddressLength))})`,
    );
  return parsed;
}

function asIp(value: CelValue): CelIp {
  if (value instanceof CelIp) return value;
  throw new CelError("no such overload");
}

function asCidr(value: CelValue): CelCidr {
  if (value instanceof CelCidr) return value;
  throw new CelError("no such overload");
}

/** True when the top `length` bits of the address are `prefix`. */
const startsWith = (address: CelIp, prefix: bigint, length: number): boolean =>
  address.bits >> BigInt(address.width - length) === prefix;

const isLoopback = (a: CelIp): boolean => (a.family === 4 ? startsWith(a, 127n, 8) : a.bits === 1n);
const isMulticast = (a: CelIp): boolean =>
  a.family === 4 ? startsWith(a, 0xen, 4) : startsWith(a, 0xffn, 8);
const isLinkLocalMulticast = (a: CelIp): boolean =>
  a.family === 4 ? startsWith(a, 0xe00000n, 24) : startsWith(a, 0xffn, 8) && ((a.bits >> 112n) & 0xfn) === 2n;
const isLinkLocalUnicast = (a: CelIp): boolean =>
  a.family === 4 ? startsWith(a, 0xa9fen, 16) : startsWith(a, 0x3fan, 10);
const isBroadcast = (a: CelIp): boolean => a.family === 4 && a.bits === 0xffffffffn;
const isGlobalUnicast = (a: CelIp): boolean =>
  a.bits !== 0n && !isBroadcast(a) && !isLoopback(a) && !isMulticast(a) && !isLinkLocalUnicast(a);

const parsing: OverloadOptions = {
  cost: traversesFirst,
  charge: ([text = ""]) => 40 + sizeOf(text) * traversalFactor,
};
const short: OverloadOptions = { resultSize: () => maxAddressLength };
const test = (name: string, holds: (address: CelIp) => boolean): Overload =>
  member(name, [ipType], "bool", (value) => holds(asIp(value)));

/** All overloads of addresses and ranges. */
export const addressLibrary: readonly Overload[] = [
  global("ip", ["string"], ipType, ip, parsing),
  global("isIP", ["string"], "bool", (text) => parseIp(text) !== undefined, parsing),
  global("ip.isCanonical", ["string"], "bool", (text) => ip(text).text === text, parsing),
  global("string", [ipType], "string", (value) => asIp(value).text, short),
  member("family", [ipType], "int", (value) => BigInt(asIp(value).family)),
  test("isUnspecified", (address) => address.bits === 0n),
  test("isLoopback", isLoopback),
  test("isLinkLocalMulticast", isLinkLocalMulticast),
  test("isLinkLocalUnicast", isLinkLocalUnicast),
  test("isGlobalUnicast", isGlobalUnicast),
  global("cidr", ["string"], cidrType, cidr, parsing),
  global("isCIDR", ["string"], "bool", (text) => parseCidr(text) !== undefined, parsing),
  global("string", [cidrType], "string", (value) => asCidr(value).text, short),
  member("containsIP", [cidrType, ipType], "bool", (range, address) => asCidr(range).contains(asIp(address))),
  member("containsIP", [cidrType, "string"], "bool", (range, text) => asCidr(range).contains(ip(text))),
  member("containsCIDR", [cidrType, cidrType], "bool", (range, inner) => {
    const { address, length } = asCidr(inner);
    return asCidr(range).contains(address, length);
  }),
  member("containsCIDR", [cidrType, "string"], "bool", (range, text) => {
    const { address, length } = cidr(text);
    return asCidr(range).contains(address, length);
  }),
  member("ip", [cidrType], ipType, (range) => asCidr(range).address),
  member("masked", [cidrType], cidrType, (range) => asCidr(range).masked()),
  member("prefixLength", [cidrType], "int", (range) => BigInt(asCidr(range).length)),
];
