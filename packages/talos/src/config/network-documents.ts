/**
 * Machine network in its two forms: documents of their own from contract 1.12 on, `machine.network`
 * before. Host DNS is the cluster generators' business.
 */
import type { JsonObject } from "@kontinuum/std";
import type { ConfigDocument } from "./config-document.ts";
import type {
  LinkOptions,
  MachineConfigOptions,
  NetworkOptions,
  RouteOptions,
} from "./machine-config-options.ts";

/** A document of `apiVersion: v1alpha1`. */
export function document(kind: string, fields: object): ConfigDocument {
  return { apiVersion: "v1alpha1", kind, ...fields };
}

/** Host name document: the given name, or a stable one of the node's own. */
export function hostnameDocument(hostname: string | undefined): ConfigDocument {
  return document("HostnameConfig", hostname === undefined ? { auto: "stable" } : { hostname });
}

/** Documents of links, VIP and time. Nameservers are in {@link resolverFields}. */
export function networkDocuments(
  type: MachineConfigOptions["type"],
  network: NetworkOptions,
): ConfigDocument[] {
  const links = (network.links ?? []).flatMap(linkDocuments);
  const { vip } = network;
  return [
    ...links,
    ...(vip && type === "controlplane"
      ? [document("Layer2VIPConfig", { name: vip.address, link: vip.link })]
      : []),
    ...(network.timeServers
      ? [document("TimeSyncConfig", { ntp: { servers: [...network.timeServers] } })]
      : []),
  ];
}

/** Fields of a ResolverConfig for the nameservers; empty when none are given. */
export function resolverFields(network: NetworkOptions): JsonObject {
  const nameservers = network.nameservers ?? [];
  return nameservers.length === 0 ? {} : { nameservers: nameservers.map((address) => ({ address })) };
}

function linkDocuments(link: LinkOptions): ConfigDocument[] {
  const { name } = link;
  const common = {
    up: true,
    ...(link.mtu === undefined ? {} : { mtu: link.mtu }),
    ...(link.addresses ? { addresses: link.addresses.map((address) => ({ address })) } : {}),
    ...(link.routes ? { routes: link.routes.map((route) => ({ ...route })) } : {}),
  };
  const dhcp = link.dhcp ? [document("DHCPv4Config", { name })] : [];
  switch (link.kind) {
    case "bond":
      return [
        document("BondConfig", {
          name,
          links: [...link.links],
          bondMode: link.mode,
          ...(link.miimon === undefined ? {} : { miimon: link.miimon }),
          ...(link.hashPolicy === undefined ? {} : { xmitHashPolicy: link.hashPolicy }),
          ...(link.lacpRate === undefined ? {} : { lacpRate: link.lacpRate }),
          ...common,
        }),
        ...dhcp,
      ];
    case "vlan":
      return [document("VLANConfig", { name, vlanID: link.vlanId, parent: link.parent, ...common }), ...dhcp];
    default:
      return [document("LinkConfig", { name, ...common }), ...dhcp];
  }
}

/** `machine.network` of contracts up to 1.11; VLANs stand under their parent. */
export function legacyNetwork(options: MachineConfigOptions): JsonObject {
  const network = options.network ?? {};
  const vip = options.type === "controlplane" ? network.vip : undefined;
  const interfaces = legacyInterfaces(network.links ?? [], vip);
  return {
    ...(options.hostname === undefined ? {} : { hostname: options.hostname }),
    ...(interfaces.length === 0 ? {} : { interfaces }),
    ...(network.nameservers ? { nameservers: [...network.nameservers] } : {}),
  };
}

function legacyInterfaces(links: readonly LinkOptions[], vip: NetworkOptions["vip"]): JsonObject[] {
  const found = new Map<string, JsonObject>();
  const device = (name: string): JsonObject => {
    const known = found.get(name) ?? { interface: name };
    found.set(name, known);
    return known;
  };
  const vipOf = (name: string): JsonObject => (vip?.link === name ? { vip: { ip: vip.address } } : {});
  for (const link of links) {
    if (link.kind === "vlan") continue;
    Object.assign(device(link.name), legacyLink(link), vipOf(link.name));
  }
  for (const link of links) {
    if (link.kind !== "vlan") continue;
    const parent = device(link.parent);
    const vlans = Array.isArray(parent["vlans"]) ? parent["vlans"] : [];
    vlans.push({ vlanId: link.vlanId, ...legacyLink(link), ...vipOf(link.name) });
    parent["vlans"] = vlans;
  }
  const named = links.some(({ name }) => name === vip?.link);
  if (vip && !named) Object.assign(device(vip.link), { dhcp: true }, vipOf(vip.link));
  return [...found.values()];
}

function legacyLink(link: LinkOptions): JsonObject {
  return {
    ...(link.addresses ? { addresses: [...link.addresses] } : {}),
    ...(link.routes ? { routes: link.routes.map(legacyRoute) } : {}),
    ...(link.mtu === undefined ? {} : { mtu: link.mtu }),
    ...(link.dhcp === undefined ? {} : { dhcp: link.dhcp }),
    ...(link.kind === "bond"
      ? {
          bond: {
            interfaces: [...link.links],
            mode: link.mode,
            ...(link.hashPolicy === undefined ? {} : { xmitHashPolicy: link.hashPolicy }),
            ...(link.lacpRate === undefined ? {} : { lacpRate: link.lacpRate }),
            ...(link.miimon === undefined ? {} : { miimon: link.miimon }),
          },
        }
      : {}),
  };
}

function legacyRoute({ destination, gateway, metric }: RouteOptions): JsonObject {
  const everything = gateway.includes(":") ? "::/0" : "0.0.0.0/0";
  return { network: destination ?? everything, gateway, ...(metric === undefined ? {} : { metric }) };
}
