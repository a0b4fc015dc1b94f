/**
 * The shapes of all other configuration documents, by kind, each with the Talos release line that
 * knows it first. Names and types are Talos' public configuration reference.
 */
import {
  addressPort,
  args,
  bool,
  byteSize,
  cidr,
  duration,
  int,
  uint,
  ip,
  list,
  mac,
  map,
  mapping,
  object,
  routingTable,
  since,
  text,
  url,
  words,
  type Shape,
} from "./shape.ts";

/** What is known of a kind of document. */
export interface DocumentKind {
  /** First Talos minor that reads it. */
  readonly minor: number;
  /** Whether it must have a name. */
  readonly named: boolean;
  /** Whether it configures a link of its name, of which there may be only one. */
  readonly link: boolean;
  readonly shape: Shape;
}

const common = { apiVersion: text, kind: text };
const plain = (minor: number, fields: Readonly<Record<string, Shape>>): DocumentKind => ({
  minor,
  named: false,
  link: false,
  shape: object({ ...common, ...fields }),
});
const named = (minor: number, fields: Readonly<Record<string, Shape>>): DocumentKind => ({
  ...plain(minor, { name: text, ...fields }),
  named: true,
});

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
const provisioning = object({ diskSelector: selector, grow: bool, minSize: byteSize, maxSize: byteSize });
const encryption = object({
  provider: words("luks2"),
  keys: list(
    object({
      slot: int,
      static: object({ passphrase: text }),
      nodeID: object({}),
      kms: object({ endpoint: text }),
      tpm: object({ options: since(12, object({ pcrs: list(int) })), checkSecurebootStatusOnEnroll: bool }),
      lockToState: since(12, bool),
    }),
  ),
  cipher: text,
  keySize: uint,
  blockSize: uint,
  options: list(text),
  allowDiscards: since(14, bool),
});
const trim = since(14, object({ enabled: bool, interval: duration }));
const scrub = trim;
const xfs = object({ minAllocationGroupSize: text });
const issuingCa = object({ cert: text, key: text });
const resources = mapping;
const env = map(text);
const dhcp = {
  routeMetric: uint,
  ignoreHostname: bool,
  clientIdentifier: words("none", "mac", "duid"),
  duidRaw: text,
};
const probe = { interval: duration, failureThreshold: uint, timeout: duration };

const blockKinds: Readonly<Record<string, DocumentKind>> = {
  VolumeConfig: named(11, {
    provisioning,
    filesystem: since(14, object({ xfs })),
    encryption,
    mount: since(12, object({ secure: bool, disableAccessTime: bool })),
    trim,
    scrub,
  }),
  UserVolumeConfig: named(11, {
    volumeType: words("directory", "disk", "partition"),
    provisioning,
    filesystem: object({
      type: words("ext4", "xfs", "btrfs"),
      projectQuotaSupport: bool,
      xfs: since(14, xfs),
    }),
    encryption,
    mount: since(12, object({ disableAccessTime: bool, secure: bool })),
    trim,
    scrub,
  }),
  RawVolumeConfig: named(11, { provisioning, encryption }),
  ExistingVolumeConfig: named(11, {
    discovery: object({ volumeSelector: selector }),
    mount: object({ readOnly: bool, disableAccessTime: bool, secure: bool }),
    trim,
    scrub,
  }),
  ExternalVolumeConfig: named(13, {
    filesystemType: words("virtiofs"),
    mount: object({ readOnly: bool, disableAccessTime: bool, secure: bool, virtiofs: object({ tag: text }) }),
  }),
  SwapVolumeConfig: named(11, { provisioning, encryption }),
  ZswapConfig: plain(11, { maxPoolPercent: uint, shrinkerEnabled: bool }),
  FilesystemTrimConfig: plain(14, { interval: duration }),
  FilesystemScrubConfig: plain(14, { interval: duration }),
  LVMVolumeGroupConfig: named(14, { provisioning: object({ volumeSelector: selector }) }),
  LVMLogicalVolumeConfig: named(14, {
    type: text,
    mirrors: uint,
    stripes: uint,
    provisioning: object({ volumeGroup: text, minSize: byteSize, maxSize: byteSize }),
  }),
  RAIDArrayConfig: named(14, {
    level: words("raid1"),
    metadata: words("1.0", "1.2"),
    provisioning: object({ volumeSelector: selector }),
  }),
};

const networkKinds: Readonly<Record<string, DocumentKind>> = {
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

const runtimeKinds: Readonly<Record<string, DocumentKind>> = {
  EventSinkConfig: plain(11, { endpoint: text }),
  KmsgLogConfig: named(11, { url: text }),
  WatchdogTimerConfig: plain(11, { device: text, timeout: duration }),
  OOMConfig: plain(12, {
    triggerExpression: text,
    cgroupRankingExpression: text,
    strictCgroupClassOrdering: since(14, bool),
    sampleInterval: duration,
  }),
  EnvironmentConfig: plain(12, { variables: map(text) }),
  ExtensionServiceConfig: named(11, {
    configFiles: list(object({ content: text, mountPath: text })),
    environment: list(text),
  }),
  PCIDriverRebindConfig: { ...named(11, { targetDriver: text }), named: false },
  EtcFileConfig: named(14, { mode: uint, contents: text }),
  KernelModuleConfig: named(14, { parameters: list(text) }),
  SecurityProfileConfig: plain(14, { workloadIsolation: bool }),
  SysctlConfig: plain(14, { params: map(text) }),
  SysfsConfig: plain(14, { params: map(text) }),
  UdevRulesConfig: plain(14, { rules: list(text) }),
  UnattendedInstallConfig: plain(14, {
    reboot: bool,
    installer: object({ image: text }),
    provisioning: object({ diskSelector: selector, wipe: bool }),
  }),
  ContainerConfig: named(14, {
    image: text,
    entrypoint: list(text),
    args: list(text),
    workingDir: text,
    runAs: object({ uid: uint, gid: uint }),
    environment: list(text),
    mounts: list(
      object({
        userVolume: object({ name: text, destination: text, options: list(text) }),
        tmpfs: object({ destination: text, size: text, options: list(text) }),
        hostPath: object({ source: text, destination: text, options: list(text) }),
      }),
    ),
    security: object({ profile: text, capabilities: object({ add: list(text), drop: list(text) }) }),
    network: object({ mode: text }),
    resources: object({ limits: object({ cpu: text, memory: text }) }),
    dependsOn: object({ paths: list(text), networks: list(text), time: bool, containers: list(text) }),
  }),
  RegistryMirrorConfig: named(12, {
    endpoints: list(object({ url: text, overridePath: bool })),
    skipFallback: bool,
  }),
  RegistryAuthConfig: named(12, { username: text, password: text, auth: text, identityToken: text }),
  RegistryTLSConfig: named(12, {
    clientIdentity: object({ cert: text, key: text }),
    ca: text,
    insecureSkipVerify: bool,
  }),
  CRIBaseRuntimeSpecConfig: plain(14, { overrides: mapping }),
  CRICustomizationConfig: named(14, { content: text }),
  ImageCacheConfig: plain(14, { local: object({ enabled: bool }) }),
  TrustedRootsConfig: { ...named(11, { certificates: text }), named: false },
  ImageVerificationConfig: plain(13, {
    rules: list(
      object({
        image: text,
        skip: bool,
        deny: bool,
        keyless: object({ issuer: text, subject: text, subjectRegex: text, rekorURL: text }),
        publicKey: object({ certificate: text }),
      }),
    ),
  }),
  SideroLinkConfig: plain(11, { apiUrl: text, uniqueToken: text }),
  DiscoveryIdentityConfig: plain(14, { clusterID: text, clusterSecret: text }),
  DiscoveryServiceConfig: named(14, { endpoint: url("http", "https", "grpc") }),
};

const kubernetesKinds: Readonly<Record<string, DocumentKind>> = {
  KubeClusterConfig: plain(14, { clusterName: text, endpoint: url("https") }),
  KubeNodeConfig: plain(14, {
    skipNodeRegistration: bool,
    registerWithFQDN: bool,
    nodeIP: object({ validSubnets: list(text) }),
    labels: map(text),
    annotations: map(text),
    taints: map(text),
  }),
  KubeletConfig: plain(14, {
    image: text,
    config: mapping,
    extraArgs: args,
    clusterDNS: list(text),
    defaultRuntimeSeccompProfileEnabled: bool,
  }),
  KubeNetworkConfig: plain(14, {
    dnsDomain: text,
    podSubnets: list(cidr),
    serviceSubnets: list(cidr),
    nodeCIDRMaskSizeIPv4: uint,
    nodeCIDRMaskSizeIPv6: uint,
  }),
  KubeAPIServerCAConfig: plain(14, { issuingCA: issuingCa, acceptedCAs: list(text) }),
  KubeAggregatorCAConfig: plain(14, { issuingCA: issuingCa, acceptedCAs: list(text) }),
  KubeAPIServerConfig: plain(14, {
    image: text,
    extraArgs: args,
    env,
    resources,
    apiPort: uint,
    certExtraSANs: list(text),
    startupProbes: bool,
  }),
  KubeControllerManagerConfig: plain(14, { enabled: bool, image: text, extraArgs: args, env, resources }),
  KubeSchedulerConfig: plain(14, {
    enabled: bool,
    image: text,
    config: mapping,
    extraArgs: args,
    env,
    resources,
  }),
  KubeProxyConfig: plain(14, {
    enabled: bool,
    image: text,
    mode: text,
    config: mapping,
    extraArgs: args,
    resources,
  }),
  KubePrismConfig: plain(14, { port: uint, tlsServerName: text }),
  KubeFlannelCNIConfig: plain(14, {
    backendType: text,
    backendPort: uint,
    backendMTU: uint,
    backendExtraConfig: mapping,
    resources,
    extraArgs: list(text),
    kubeNetworkPoliciesEnabled: bool,
  }),
  KubeCoreDNSConfig: plain(14, { enabled: bool, image: text }),
  KubeServiceAccountConfig: plain(14, {
    issuer: object({ privateKey: text, issuerURL: url("http", "https") }),
    accepted: object({ publicKeys: list(text), issuers: list(url("http", "https")), audiences: list(text) }),
  }),
  KubeEtcdEncryptionConfig: plain(14, { config: mapping }),
  KubeAdmissionControlConfig: named(14, { configuration: mapping }),
  KubeAuditPolicyConfig: plain(14, { configuration: mapping }),
  KubeAuthenticationConfig: plain(14, { configuration: mapping }),
  KubeAuthorizerConfig: named(14, { type: words("Node", "RBAC", "Webhook"), webhook: mapping }),
  KubeCredentialProviderConfig: plain(14, { configuration: mapping }),
  KubeExternalManifestConfig: named(14, { headers: map(text), url: url("http", "https") }),
  KubeInlineManifestConfig: named(14, { manifest: text }),
  KubeStaticPodConfig: named(14, { pod: mapping }),
  KubeTalosAPIAccessConfig: plain(14, { allowedRoles: list(text), allowedKubernetesNamespaces: list(text) }),
};

/** Every kind of document, by name. */
export const documentKinds: Readonly<Record<string, DocumentKind>> = {
  ...blockKinds,
  ...networkKinds,
  ...runtimeKinds,
  ...kubernetesKinds,
};
