/**
 * Documents of the machine's network. Several of them configure the link they are named after, and
 * a link may be configured once only.
 */
import { plain, named, type DocumentKind } from "./document-kind.ts";
import {
  addressPort,
  bool,
  cidr,
  duration,
  ip,
  list,
  mac,
  map,
  object,
  routingTable,
  since,
  text,
  uint,
  url,
  words,
  type Shape,
} from "./shape.ts";

const linkFields = {
  up: bool,
  mtu: uint,
  addresses: list(object({ address: cidr, routePriority: uint })),
  routes: list(
    object({ destination: cidr, gateway: ip, source: ip, metric: uint, mtu: uint, table: routingTable }),
  ),
  multicast: bool,
};
const link = (minor: number, fields: Readonly<Record<string, Shape>>): DocumentKind => ({
  ...named(minor, { ...fields, ...linkFields }),
  link: true,
});

const selector = object({ match: text });
const dhcp = {
  routeMetric: uint,
  ignoreHostname: bool,
  clientIdentifier: words("none", "mac", "duid"),
  duidRaw: text,
};
const probe = { interval: duration, failureThreshold: uint, timeout: duration };

/** The kinds, by name. */
export const networkKinds: Readonly<Record<string, DocumentKind>> = {
  HostnameConfig: plain(12, { auto: words("stable", "off"), hostname: text }),
  LinkConfig: link(12, {}),
  BondConfig: link(12, {
    hardwareAddr: mac,
    links: list(text),
    bondMode: words(
      "balance-rr",
      "active-backup",
      "balance-xor",
      "broadcast",
      "802.3ad",
      "balance-tlb",
      "balance-alb",
    ),
    miimon: uint,
    updelay: uint,
    downdelay: uint,
    useCarrier: bool,
    xmitHashPolicy: words("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4"),
    arpInterval: uint,
    arpIpTargets: list(ip),
    nsIp6Targets: list(ip),
    arpValidate: words("none", "active", "backup", "all", "filter", "filter-active", "filter-backup"),
    arpAllTargets: words("any", "all"),
    lacpRate: words("slow", "fast"),
    failOverMac: words("none", "active", "follow"),
    adSelect: words("stable", "bandwidth", "count"),
    adActorSysPrio: uint,
    adUserPortKey: uint,
    adLACPActive: words("on", "off"),
    primary: text,
    primaryReselect: words("always", "better", "failure"),
    resendIGMP: uint,
    minLinks: uint,
    lpInterval: uint,
    packetsPerSlave: uint,
    numPeerNotif: uint,
    tlbLogicalLb: uint,
    allSlavesActive: uint,
    peerNotifDelay: uint,
    missedMax: uint,
  }),
  BridgeConfig: link(12, {
    hardwareAddr: mac,
    links: list(text),
    stp: object({ enabled: bool }),
    vlan: object({ filtering: bool }),
  }),
  VLANConfig: link(12, { vlanID: uint, vlanMode: words("802.1q", "802.1ad"), parent: text }),
  VRFConfig: link(13, { hardwareAddr: mac, links: list(text), table: routingTable }),
  DummyLinkConfig: link(12, { hardwareAddr: mac }),
  VethConfig: link(14, { peer: object({ name: text, ...linkFields }) }),
  WireguardConfig: link(12, {
    privateKey: text,
    listenPort: uint,
    firewallMark: uint,
    peers: list(
      object({
        publicKey: text,
        presharedKey: text,
        endpoint: text,
        persistentKeepaliveInterval: duration,
        allowedIPs: list(cidr),
      }),
    ),
  }),
  LinkAliasConfig: named(12, { selector }),
  EthernetConfig: named(11, {
    features: map(bool),
    rings: object({
      rx: uint,
      tx: uint,
      "rx-mini": uint,
      "rx-jumbo": uint,
      "rx-buf-len": uint,
      "cqe-size": uint,
      "tx-push": bool,
      "rx-push": bool,
      "tx-push-buf-len": uint,
      "tcp-data-split": bool,
    }),
    channels: object({ rx: uint, tx: uint, other: uint, combined: uint }),
    wakeOnLan: since(
      12,
      list(words("phy", "unicast", "multicast", "broadcast", "arp", "magic", "magicsecure", "filter")),
    ),
  }),
  DHCPv4Config: named(12, { ...dhcp, ignoreRoutes: since(14, bool) }),
  DHCPv6Config: named(12, dhcp),
  Layer2VIPConfig: named(12, { link: text }),
  HCloudVIPConfig: named(12, { link: text, apiToken: text }),
  ResolverConfig: plain(12, {
    nameservers: list(
      object({
        address: ip,
        protocol: since(14, words("Do53", "DoT", "DoH")),
        tlsServerName: since(14, text),
      }),
    ),
    searchDomains: object({ domains: list(text), disableDefault: bool }),
    hostDNS: since(14, object({ enabled: bool, forwardKubeDNSToHost: bool, resolveMemberNames: bool })),
  }),
  StaticHostConfig: named(12, { hostnames: list(text) }),
  TimeSyncConfig: plain(12, {
    enabled: bool,
    bootTimeout: duration,
    ntp: object({ servers: list(text), useNTS: since(14, bool) }),
    ptp: object({ devices: list(text) }),
  }),
  RoutingRuleConfig: named(13, {
    src: cidr,
    dst: cidr,
    table: routingTable,
    action: words("unicast", "blackhole", "unreachable", "prohibit"),
    iifName: text,
    oifName: text,
    fwMark: uint,
    fwMask: uint,
  }),
  BlackholeRouteConfig: named(12, { metric: uint }),
  BGPInstanceConfig: named(14, {
    vrf: text,
    localASN: uint,
    routerID: text,
    routeSource: text,
    advertise: list(text),
    multipath: bool,
    maxPaths: uint,
    installRoutes: bool,
    importRoutes: list(object({ bgpInstance: text, prefixes: list(cidr) })),
    neighbors: list(
      object({
        address: text,
        link: text,
        peerASN: uint,
        localASN: uint,
        passive: bool,
        holdTime: duration,
        bfd: object({ transmitInterval: duration, receiveInterval: duration, detectMultiplier: uint }),
      }),
    ),
  }),
  NetworkDefaultActionConfig: plain(11, { ingress: words("accept", "block") }),
  NetworkRuleConfig: named(11, {
    portSelector: object({ ports: list(text), protocol: words("tcp", "udp", "icmp", "icmpv6") }),
    ingress: list(object({ subnet: cidr, except: cidr })),
  }),
  KubeSpanConfig: plain(12, {
    enabled: bool,
    advertiseKubernetesNetworks: bool,
    allowDownPeerBypass: bool,
    harvestExtraEndpoints: bool,
    mtu: uint,
    filters: object({ endpoints: list(text), excludeAdvertisedNetworks: list(cidr) }),
  }),
  KubeSpanEndpointsConfig: plain(11, { extraAnnouncedEndpoints: list(addressPort) }),
  TCPProbeConfig: named(13, { ...probe, endpoint: text }),
  HTTPProbeConfig: named(14, { ...probe, url: url("http", "https") }),
};
