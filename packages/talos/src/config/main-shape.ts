/**
 * The shape of the main document (`v1alpha1`): every key a node accepts, deprecated ones included,
 * because the node accepts those too. Names and types are Talos' public configuration reference.
 */
import {
  args,
  base64,
  bool,
  cidr,
  duration,
  int,
  ip,
  list,
  map,
  mapping,
  object,
  since,
  sizeCondition,
  text,
  uint,
  words,
  type Shape,
} from "./shape.ts";

const pair = object({ crt: base64, key: base64 });
const certificate = object({ crt: base64 });
const env = map(text);

const route = object({ network: text, gateway: text, source: text, metric: uint, mtu: uint });
const vip = object({ ip, equinixMetal: object({ apiToken: text }), hcloud: object({ apiToken: text }) });
const dhcpOptions = object({ routeMetric: uint, ipv4: bool, ipv6: bool, duidv6: text });
const deviceSelector = object({
  busPath: text,
  hardwareAddr: text,
  permanentAddr: text,
  pciID: text,
  driver: text,
  physical: bool,
});

const bond = object({
  interfaces: list(text),
  deviceSelectors: list(deviceSelector),
  arpIPTarget: list(text),
  mode: text,
  xmitHashPolicy: text,
  lacpRate: text,
  adActorSystem: text,
  arpValidate: text,
  arpAllTargets: text,
  primary: text,
  primaryReselect: text,
  failOverMac: text,
  adSelect: text,
  miimon: uint,
  updelay: uint,
  downdelay: uint,
  arpInterval: uint,
  resendIgmp: uint,
  minLinks: uint,
  lpInterval: uint,
  packetsPerSlave: uint,
  numPeerNotif: uint,
  tlbDynamicLb: uint,
  allSlavesActive: uint,
  useCarrier: bool,
  adActorSysPrio: uint,
  adUserPortKey: uint,
  peerNotifyDelay: uint,
});

const device = object({
  interface: text,
  deviceSelector,
  addresses: list(text),
  cidr: text,
  routes: list(route),
  bond,
  bridge: object({
    interfaces: list(text),
    stp: object({ enabled: bool }),
    vlan: object({ vlanFiltering: bool }),
  }),
  bridgePort: object({ master: text }),
  vlans: list(
    object({
      addresses: list(text),
      cidr: text,
      routes: list(route),
      dhcp: bool,
      vlanId: uint,
      mtu: uint,
      vip,
      dhcpOptions,
    }),
  ),
  mtu: int,
  dhcp: bool,
  ignore: bool,
  dummy: bool,
  dhcpOptions,
  wireguard: object({
    privateKey: text,
    listenPort: int,
    firewallMark: int,
    peers: list(
      object({
        publicKey: text,
        endpoint: text,
        persistentKeepaliveInterval: duration,
        allowedIPs: list(cidr),
      }),
    ),
  }),
  vip,
});

const network = object({
  hostname: text,
  interfaces: list(device),
  nameservers: list(text),
  searchDomains: list(text),
  extraHostEntries: list(object({ ip, aliases: list(text) })),
  kubespan: object({
    enabled: bool,
    advertiseKubernetesNetworks: bool,
    allowDownPeerBypass: bool,
    harvestExtraEndpoints: bool,
    mtu: uint,
    filters: object({ endpoints: list(text), excludeAdvertisedNetworks: list(cidr) }),
  }),
  disableSearchDomain: bool,
});

const kubelet = object({
  image: text,
  clusterDNS: list(text),
  extraArgs: args,
  extraMounts: list(
    object({
      destination: text,
      type: text,
      source: text,
      options: list(text),
      uidMappings: list(object({ containerID: uint, hostID: uint, size: uint })),
      gidMappings: list(object({ containerID: uint, hostID: uint, size: uint })),
    }),
  ),
  extraConfig: mapping,
  credentialProviderConfig: mapping,
  defaultRuntimeSeccompProfileEnabled: bool,
  registerWithFQDN: bool,
  nodeIP: object({ validSubnets: list(text) }),
  skipNodeRegistration: bool,
  disableManifestsDirectory: bool,
});

const install = object({
  disk: text,
  diskSelector: object({
    size: sizeCondition,
    name: text,
    model: text,
    serial: text,
    modalias: text,
    uuid: text,
    wwid: text,
    type: text,
    busPath: text,
  }),
  extraKernelArgs: list(text),
  image: text,
  extensions: list(object({ image: text })),
  bootloader: bool,
  wipe: bool,
  legacyBIOSSupport: bool,
  grubUseUKICmdline: since(12, bool),
});

const encryption = object({
  provider: text,
  keys: list(
    object({
      slot: int,
      static: object({ passphrase: text }),
      nodeID: object({}),
      kms: object({ endpoint: text }),
      tpm: object({ checkSecurebootStatusOnEnroll: bool, options: since(12, object({ pcrs: list(int) })) }),
    }),
  ),
  cipher: text,
  keySize: uint,
  blockSize: uint,
  options: list(text),
});

const machine = object({
  type: text,
  token: text,
  ca: pair,
  acceptedCAs: list(certificate),
  certSANs: list(text),
  controlPlane: object({
    controllerManager: object({ disabled: bool }),
    scheduler: object({ disabled: bool }),
  }),
  kubelet,
  pods: list(mapping),
  network,
  disks: list(object({ device: text, partitions: list(object({ size: text, mountpoint: text })) })),
  install,
  files: list(object({ content: text, permissions: int, path: text, op: text })),
  env,
  time: object({ disabled: bool, servers: list(text), bootTimeout: duration }),
  sysctls: map(text),
  sysfs: map(text),
  registries: object({
    mirrors: map(object({ endpoints: list(text), overridePath: bool, skipFallback: bool })),
    config: map(
      object({
        tls: object({ clientIdentity: pair, ca: base64, insecureSkipVerify: bool }),
        auth: object({ username: text, password: text, auth: text, identityToken: text }),
      }),
    ),
  }),
  systemDiskEncryption: object({ state: encryption, ephemeral: encryption }),
  features: object({
    rbac: bool,
    stableHostname: bool,
    kubernetesTalosAPIAccess: object({
      enabled: bool,
      allowedRoles: list(text),
      allowedKubernetesNamespaces: list(text),
    }),
    apidCheckExtKeyUsage: bool,
    diskQuotaSupport: bool,
    kubePrism: object({ enabled: bool, port: int }),
    hostDNS: object({ enabled: bool, forwardKubeDNSToHost: bool, resolveMemberNames: bool }),
    imageCache: object({ localEnabled: bool }),
    nodeAddressSortAlgorithm: text,
  }),
  udev: object({ rules: list(text) }),
  logging: object({
    destinations: list(object({ endpoint: text, format: text, extraTags: map(text) })),
  }),
  kernel: object({ modules: list(object({ name: text, parameters: list(text) })) }),
  seccompProfiles: list(object({ name: text, value: mapping })),
  baseRuntimeSpecOverrides: mapping,
  nodeLabels: map(text),
  nodeAnnotations: map(text),
  nodeTaints: map(text),
});

const extraVolumes = list(object({ hostPath: text, mountPath: text, readonly: bool, name: text }));
const resources = object({ requests: mapping, limits: mapping });

const cluster = object({
  id: text,
  secret: text,
  controlPlane: object({ endpoint: text, localAPIServerPort: int }),
  clusterName: text,
  network: object({
    cni: object({
      name: text,
      urls: list(text),
      flannel: object({ extraArgs: list(text), kubeNetworkPoliciesEnabled: since(12, bool) }),
    }),
    dnsDomain: text,
    podSubnets: list(text),
    serviceSubnets: list(text),
  }),
  token: text,
  aescbcEncryptionSecret: text,
  secretboxEncryptionSecret: text,
  ca: pair,
  acceptedCAs: list(certificate),
  aggregatorCA: pair,
  serviceAccount: object({ key: base64 }),
  apiServer: object({
    image: text,
    extraArgs: args,
    extraVolumes,
    env,
    certSANs: list(text),
    disablePodSecurityPolicy: bool,
    admissionControl: list(object({ name: text, configuration: mapping })),
    auditPolicy: mapping,
    resources,
    authorizationConfig: list(
      object({ type: words("Node", "RBAC", "Webhook"), name: text, webhook: mapping }),
    ),
  }),
  controllerManager: object({ image: text, extraArgs: args, extraVolumes, env, resources }),
  proxy: object({ disabled: bool, image: text, mode: text, extraArgs: args }),
  scheduler: object({ image: text, extraArgs: args, extraVolumes, env, resources, config: mapping }),
  discovery: object({
    enabled: bool,
    registries: object({
      kubernetes: object({ disabled: bool }),
      service: object({ disabled: bool, endpoint: text }),
    }),
  }),
  etcd: object({
    image: text,
    ca: pair,
    extraArgs: args,
    subnet: text,
    advertisedSubnets: list(text),
    listenSubnets: list(text),
  }),
  coreDNS: object({ disabled: bool, image: text }),
  externalCloudProvider: object({ enabled: bool, manifests: list(text) }),
  extraManifests: list(text),
  extraManifestHeaders: map(text),
  inlineManifests: list(object({ name: text, contents: text })),
  adminKubeconfig: object({ certLifetime: duration }),
  allowSchedulingOnMasters: bool,
  allowSchedulingOnControlPlanes: bool,
});

/** The main document. */
export const mainShape: Shape = object({ version: text, debug: bool, persist: bool, machine, cluster });
