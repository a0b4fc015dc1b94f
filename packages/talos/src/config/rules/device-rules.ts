/**
 * Validation rules of `machine.network.interfaces`, the network of the main document.
 */
import { at, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "../config-document.ts";
import { isAddress, isNetwork } from "../ip-text.ts";
import { isTrue, objects, textOf, texts } from "../machine-config-facts.ts";
import type { Finding } from "./rule.ts";

type Device = Readonly<Record<string, unknown>>;

const bondModes = [
  "balance-rr",
  "active-backup",
  "balance-xor",
  "broadcast",
  "802.3ad",
  "balance-tlb",
  "balance-alb",
];
/** Words of a bond's settings; empty is the kernel's default. */
const bondWords: Readonly<Record<string, readonly string[]>> = {
  xmitHashPolicy: ["layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"],
  lacpRate: ["slow", "fast"],
  arpValidate: ["none", "active", "backup", "all", "filter", "filter_active", "filter_backup"],
  arpAllTargets: ["any", "all"],
  primaryReselect: ["always", "better", "failure"],
  failOverMac: ["none", "active", "follow"],
  adSelect: ["stable", "bandwidth", "count"],
};

const isAddressOrNetwork = (text: string): boolean =>
  text.includes("/") ? isNetwork(text) : isAddress(text);
const number = (value: unknown): number => Number(value ?? 0);

function bondErrors(bond: Device): Finding[] {
  const mode = textOf(bond["mode"]) || "balance-rr";
  const isLacp = mode === "802.3ad";
  const isAdaptive = mode === "balance-tlb" || mode === "balance-alb";
  const monitor = number(bond["miimon"]);
  const delay = (key: string): Finding => {
    const value = number(bond[key]);
    if (monitor === 0) return value !== 0 && `${key} needs miimon`;
    return value % monitor !== 0 && `${key} must be a multiple of miimon`;
  };
  const only = (key: string, allowed: boolean, where: string): Finding =>
    !allowed && `${key} is for ${where} only`;
  const set = (key: string): boolean => textOf(bond[key]) !== "" && textOf(bond[key]) !== "0";
  return [
    !bondModes.includes(mode) && "mode is no mode of a bond",
    ...Object.entries(bondWords).map(
      ([key, allowed]) =>
        textOf(bond[key]) !== "" &&
        !allowed.includes(textOf(bond[key])) &&
        `${key} must be one of ${allowed.join(", ")}`,
    ),
    texts(bond["interfaces"]).length > 0 &&
      objects(bond["deviceSelectors"]).length > 0 &&
      "interfaces and deviceSelectors exclude each other",
    delay("updelay"),
    delay("downdelay"),
    texts(bond["arpIPTarget"]).length > 0 && "arpIPTarget is not supported",
    set("adActorSystem") && "adActorSystem is not supported",
    set("lacpRate") && only("lacpRate", isLacp, "802.3ad"),
    set("arpValidate") && only("arpValidate", !isLacp && !isAdaptive, "modes without LACP and balancing"),
    set("primary") && only("primary", mode === "active-backup" || isAdaptive, "active-backup and balancing"),
    number(bond["arpInterval"]) > 0 &&
      only("arpInterval", !isLacp && !isAdaptive, "modes without LACP and balancing"),
    number(bond["packetsPerSlave"]) > 1 && only("packetsPerSlave", mode === "balance-rr", "balance-rr"),
    number(bond["tlbDynamicLb"]) > 0 && only("tlbDynamicLb", isAdaptive, "balance-tlb and balance-alb"),
    number(bond["adActorSysPrio"]) > 0 && only("adActorSysPrio", isLacp, "802.3ad"),
    number(bond["adUserPortKey"]) > 0 && only("adUserPortKey", isLacp, "802.3ad"),
  ];
}

const isKey = (value: unknown): boolean =>
  /^[A-Za-z0-9+/\r\n]{43,}=*$/.test(textOf(value)) && Buffer.from(textOf(value), "base64").length === 32;

function wireguardErrors(wireguard: Device): Finding[] {
  const peers = objects(wireguard["peers"]);
  return [
    !isKey(wireguard["privateKey"]) && "wireguard.privateKey is no key",
    peers.some(({ publicKey }) => !isKey(publicKey)) && "wireguard: a peer's publicKey is no key",
    peers.some(({ endpoint }) => textOf(endpoint) !== "" && !/:\d{1,5}$/.test(textOf(endpoint))) &&
      "wireguard: a peer's endpoint is no address with port",
  ];
}

function addressErrors(device: Device, place: string): Finding[] {
  const addresses = texts(device["addresses"]);
  const cidr = textOf(device["cidr"]);
  return [
    addresses.length > 0 && cidr !== "" && `${place}cidr and addresses exclude each other`,
    cidr !== "" && !isAddressOrNetwork(cidr) && `${place}cidr is no address`,
    !addresses.every(isAddressOrNetwork) && `${place}addresses: an entry is no address`,
  ];
}

function routeErrors(device: Device): Finding[] {
  return objects(device["routes"]).flatMap((route, index): Finding[] => {
    const [network, gateway, source] = [route["network"], route["gateway"], route["source"]].map(textOf);
    return [
      !!network && !isNetwork(network) && `routes.${index}.network is no network`,
      !!gateway && !isAddress(gateway) && `routes.${index}.gateway is no address`,
      !!source && !isAddress(source) && `routes.${index}.source is no address`,
      !network && !gateway && `routes.${index} has neither network nor gateway`,
    ];
  });
}

function deviceErrors(device: Device, members: ReadonlyMap<string, string>): Finding[] {
  if (isTrue(device["ignore"])) return [];
  const name = textOf(device["interface"]);
  const { deviceSelector: selector, bond, wireguard, vip } = device;
  const isMember = members.has(name);
  const addressed =
    isTrue(device["dhcp"]) ||
    textOf(device["cidr"]) !== "" ||
    texts(device["addresses"]).length > 0 ||
    isObject(vip);
  return [
    (name !== "") === isObject(selector) && "exactly one of interface and deviceSelector is required",
    isObject(selector) &&
      Object.values(selector).every((value) => value === null || value === "") &&
      "deviceSelector is empty",
    ...(isObject(bond) ? bondErrors(bond).map((error) => error !== false && `bond.${error}`) : []),
    ...(isObject(wireguard) ? wireguardErrors(wireguard) : []),
    ...objects(device["vlans"]).flatMap((vlan, index) => addressErrors(vlan, `vlans.${index}.`)),
    isMember && addressed && "a link that belongs to a bond or bridge takes no addresses",
    ...addressErrors(device, ""),
    isObject(vip) && !isAddress(textOf(vip["ip"])) && "vip.ip is no address",
    ...routeErrors(device),
  ];
}

/** Errors of all interfaces of the main document. */
export function interfaceErrors(main: ConfigDocument): string[] {
  const devices = objects(at(main, "machine", "network", "interfaces"));
  const members = new Map<string, string>();
  const errors: string[] = [];
  for (const device of devices) {
    const name = textOf(device["interface"]);
    const bond = isObject(device["bond"]) ? texts(device["bond"]["interfaces"]) : [];
    const bridge = isObject(device["bridge"]) ? texts(device["bridge"]["interfaces"]) : undefined;
    if (isObject(device["bond"]) && bridge)
      errors.push(`machine.network.interfaces: ${name}: bond and bridge exclude each other`);
    for (const member of bridge ?? bond) {
      const other = members.get(member);
      if (other !== undefined && other !== name)
        errors.push(`machine.network.interfaces: ${member} belongs to both ${other} and ${name}`);
      members.set(member, name);
    }
  }
  for (const [index, device] of devices.entries()) {
    for (const error of deviceErrors(device, members))
      if (error !== false) errors.push(`machine.network.interfaces.${index}: ${error}`);
  }
  return errors;
}
