/**
 * Documents of the running system: logs, registries, extensions, trust, discovery, installation.
 * What they hold for other programs (containerd's settings, OCI specifications) is not looked into.
 */
import { plain, named, type DocumentKind } from "./document-kind.ts";
import { bool, duration, list, map, mapping, object, since, text, uint, url } from "./shape.ts";

const selector = object({ match: text });

/** The kinds, by name. */
export const runtimeKinds: Readonly<Record<string, DocumentKind>> = {
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
