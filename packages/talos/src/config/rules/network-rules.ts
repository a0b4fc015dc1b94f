/**
 * Validation rules of the network's documents.
 */
import { at, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "../config-document.ts";
import { isAddress, isMasked, isNetwork } from "../ip-text.ts";
import { objects, textOf, texts } from "../machine-config-facts.ts";
import {
  areSubnets,
  between,
  eachOf,
  needs,
  needsAddressName,
  needsExpression,
  needsList,
  notNegative,
  type Finding,
  type Rules,
} from "./rule.ts";

/** Routing tables the kernel keeps for itself. */
const reservedTables = new Set(["", "unspec", "default", "main", "local", "0", "253", "254", "255"]);
/** Priorities of routing rules that the kernel and Talos keep. */
const reservedPriorities = new Set([0, 32_500, 32_766, 32_767]);
/** Bytes of the smallest packet IPv6 allows: KubeSpan's least MTU. */
const kubeSpanMtuMin = 1280;

const unspecified = /^(?:0\.0\.0\.0|::)(?:\/|$)/;

/** 32 bytes in base64 (WireGuard). */
function isWireguardKey(value: unknown): boolean {
  const text = textOf(value);
  return /^[A-Za-z0-9+/]{43}=$/.test(text) && Buffer.from(text, "base64").length === 32;
}

/** Addresses and routes of a document that configures a link. */
export function linkErrors(document: Readonly<Record<string, unknown>>): Finding[] {
  const addresses = objects(document["addresses"]).map(({ address }) => textOf(address));
  const routes = objects(document["routes"]);
  return [
    addresses.includes("") && "an entry of addresses has no address",
    addresses.some((address) => unspecified.test(address)) && "an entry of addresses is no usable address",
    ...["destination", "gateway", "source"].map(
      (key) =>
        routes.some((route) => unspecified.test(textOf(route[key]))) &&
        `an entry of routes has no usable ${key}`,
    ),
  ];
}

function clientIdentifierErrors({ clientIdentifier, duidRaw }: ConfigDocument): Finding[] {
  const isDuid = textOf(clientIdentifier) === "duid";
  const given = textOf(duidRaw) !== "";
  return [
    given && !isDuid && "duidRaw needs clientIdentifier duid",
    isDuid && !given && "duidRaw is required with clientIdentifier duid",
  ];
}

/** The ports of a range, low to high; a text that is none was refused by its shape. */
function portRanges(value: unknown): [number, number][] {
  return texts(value)
    .map((range): [number, number] => {
      const [low = "", high = low] = range.split("-");
      return [Number(low), Number(high)];
    })
    .sort(([a], [b]) => a - b);
}

function portErrors(document: ConfigDocument): Finding[] {
  const ranges = portRanges(at(document, "portSelector", "ports"));
  return [
    needsList(document, "portSelector", "ports"),
    ranges.some(([low, high]) => low > high) && "an entry of portSelector.ports ends before it begins",
    ranges.some(([low], index) => index > 0 && low <= (ranges[index - 1]?.[1] ?? -1)) &&
      "entries of portSelector.ports overlap",
  ];
}

function probeErrors(document: ConfigDocument): Finding[] {
  return [notNegative(document, "interval"), notNegative(document, "timeout")];
}

function nameserverErrors(entry: Readonly<Record<string, unknown>>): Finding[] {
  const protocol = textOf(entry["protocol"]);
  const isEncrypted = protocol === "DoT" || protocol === "DoH";
  const named = textOf(entry["tlsServerName"]) !== "";
  return [
    textOf(entry["address"]) === "" && "address is required",
    isEncrypted && !named && `tlsServerName is required with protocol ${protocol}`,
    !isEncrypted && named && "tlsServerName needs protocol DoT or DoH",
  ];
}

function vethNameError(value: unknown, what: string): Finding {
  const name = textOf(value);
  if (name === "") return `${what} is required`;
  if (Buffer.byteLength(name) > 15) return `${what} must have at most 15 bytes`;
  return (name === "." || name === ".." || /[/:\s\p{C}]/u.test(name)) && `${what} is no name of a link`;
}

function importErrors(document: ConfigDocument): Finding[] {
  const routes = objects(document["importRoutes"]);
  const sources = routes.map(({ bgpInstance }) => textOf(bgpInstance));
  return [
    new Set(sources).size !== sources.length && "entries of importRoutes name the same BGP instance",
    ...eachOf(document, "importRoutes", (route) => [
      textOf(route["bgpInstance"]) === "" && "bgpInstance is required",
      route["bgpInstance"] !== undefined &&
        textOf(route["bgpInstance"]) === textOf(document["name"]) &&
        "a BGP instance cannot import from itself",
      texts(route["prefixes"]).length === 0 && "prefixes is required",
      texts(route["prefixes"]).some((prefix) => isNetwork(prefix) && !isMasked(prefix)) &&
        "an entry of prefixes is not the first address of its network",
    ]),
  ];
}

/** Rules by kind. */
export const networkRules: Rules = {
  HostnameConfig: ({ auto, hostname }) => {
    const name = textOf(hostname);
    const [first = ""] = name.split(".");
    return [
      name === "" && textOf(auto) === "" && "either auto or hostname is required",
      name !== "" && !["", "off"].includes(textOf(auto)) && "auto and hostname exclude each other",
      Buffer.byteLength(name) > 253 && "hostname is longer than 253 characters",
      name !== "" &&
        (first === "" || Buffer.byteLength(first) > 63) &&
        "the first label of hostname must have 1 to 63 characters",
    ];
  },
  BondConfig: (document) => [needsList(document, "links"), needs(document, "bondMode")],
  VLANConfig: (document) => [
    needs(document, "vlanID"),
    between(document, "vlanID", 1, 4094),
    needs(document, "parent"),
  ],
  VRFConfig: ({ table }) => [reservedTables.has(textOf(table)) && "table is reserved"],
  VethConfig: (document) => [
    vethNameError(document["name"], "name"),
    vethNameError(at(document, "peer", "name"), "peer.name"),
    textOf(document["name"]) !== "" &&
      textOf(document["name"]) === textOf(at(document, "peer", "name")) &&
      "peer.name must differ from name",
    ...(isObject(document["peer"]) ? linkErrors(document["peer"]) : []),
  ],
  WireguardConfig: (document) => [
    !isWireguardKey(document["privateKey"]) && "privateKey is no key",
    between(document, "listenPort", 0, 65_535),
    ...eachOf(document, "peers", (peer) => [
      !isWireguardKey(peer["publicKey"]) && "publicKey is no key",
      textOf(peer["presharedKey"]) !== "" &&
        !isWireguardKey(peer["presharedKey"]) &&
        "presharedKey is no key",
      notNegative(peer, "persistentKeepaliveInterval"),
    ]),
  ],
  Layer2VIPConfig: (document, context) => [...needsAddressName(document, context), needs(document, "link")],
  HCloudVIPConfig: (document, context) => [
    ...needsAddressName(document, context),
    needs(document, "link"),
    needs(document, "apiToken"),
  ],
  StaticHostConfig: (document, context) => [
    ...needsAddressName(document, context),
    needsList(document, "hostnames"),
  ],
  DHCPv4Config: clientIdentifierErrors,
  DHCPv6Config: clientIdentifierErrors,
  LinkAliasConfig: (document) => [
    /%(?!d$)|^%/.test(textOf(document["name"])) && "name may hold one %d, at its end",
    needsExpression(document, "link", "selector", "match"),
  ],
  BlackholeRouteConfig: ({ name }) => [
    !isNetwork(textOf(name)) && "name must be an address with prefix length",
  ],
  RoutingRuleConfig: (document) => {
    const name = textOf(document["name"]);
    const mark = Number(document["fwMark"] ?? 0);
    return [
      name !== "" &&
        (!/^\+?\d{1,10}$/.test(name) || Number(name) >= 2 ** 32) &&
        "name must be a priority, a whole number",
      reservedPriorities.has(Number(name)) && "name is a reserved priority",
      ["", "unspec", "0"].includes(textOf(document["table"])) &&
        ["", "unicast"].includes(textOf(document["action"])) &&
        "table is required",
      Number(document["fwMask"] ?? 0) !== 0 && mark === 0 && "fwMask needs fwMark",
    ];
  },
  NetworkRuleConfig: (document) => [
    ...portErrors(document),
    objects(document["ingress"]).some(({ subnet }) => textOf(subnet) === "") &&
      "an entry of ingress has no subnet",
  ],
  KubeSpanConfig: (document) => [
    document["mtu"] !== undefined &&
      document["mtu"] !== null &&
      Number(document["mtu"]) < kubeSpanMtuMin &&
      `mtu must be at least ${kubeSpanMtuMin}`,
    !areSubnets(at(document, "filters", "endpoints")) && "an entry of filters.endpoints is no network",
  ],
  TimeSyncConfig: (document) => [
    notNegative(document, "bootTimeout"),
    isObject(document["ntp"]) && isObject(document["ptp"]) && "ntp and ptp exclude each other",
    at(document, "ntp", "useNTS") === true &&
      texts(at(document, "ntp", "servers")).some(isAddress) &&
      "ntp.servers must be host names with ntp.useNTS",
  ],
  ResolverConfig: (document, { minor }) =>
    minor < 14
      ? []
      : [
          ...eachOf(document, "nameservers", nameserverErrors),
          at(document, "hostDNS", "resolveMemberNames") === true &&
            at(document, "hostDNS", "enabled") !== true &&
            "hostDNS.resolveMemberNames needs hostDNS.enabled",
        ],
  TCPProbeConfig: (document) => [needs(document, "endpoint"), ...probeErrors(document)],
  HTTPProbeConfig: (document) => [needs(document, "url"), ...probeErrors(document)],
  BGPInstanceConfig: (document) => [
    needs(document, "localASN"),
    textOf(document["localASN"]) === "0" && "localASN is required",
    textOf(document["routerID"]).includes(":") && "routerID must be an IPv4 address",
    ...eachOf(document, "neighbors", (neighbor) => [
      notNegative(neighbor, "holdTime"),
      isObject(neighbor["bfd"]) &&
        textOf(document["vrf"]) !== "" &&
        "bfd does not work in a routing domain (vrf)",
      notNegative(neighbor, "bfd", "transmitInterval"),
      notNegative(neighbor, "bfd", "receiveInterval"),
    ]),
    ...importErrors(document),
  ],
};
