/**
 * Rules that look at more than one document: what is said twice, and what one document needs of another.
 */
import { at, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "../config-document.ts";
import {
  documentsOfKind,
  isTrue,
  mainDocumentOf,
  objects,
  readMachineConfig,
  textOf,
} from "../machine-config-facts.ts";
import { containerOrderErrors } from "./container-rules.ts";
import type { RuleContext } from "./rule.ts";

/** What of the main document a kind of document replaces, and so must not stand beside it. */
const replaced: Readonly<Record<string, readonly string[]>> = {
  KubeAdmissionControlConfig: ["cluster.apiServer.admissionControl"],
  KubeAuthorizerConfig: ["cluster.apiServer.admissionControl"],
  KubeAuditPolicyConfig: ["cluster.apiServer.auditPolicy"],
  KubeAggregatorCAConfig: ["cluster.aggregatorCA"],
  KubeAPIServerConfig: ["cluster.apiServer", "cluster.controlPlane.localAPIServerPort"],
  KubeAPIServerCAConfig: ["cluster.ca"],
  KubeClusterConfig: ["cluster.clusterName", "cluster.controlPlane.endpoint"],
  KubeControllerManagerConfig: ["cluster.controllerManager", "machine.controlPlane.controllerManager"],
  KubeCoreDNSConfig: ["cluster.coreDNS"],
  KubeCredentialProviderConfig: ["machine.kubelet"],
  KubeEtcdEncryptionConfig: ["cluster.secretboxEncryptionSecret", "cluster.aescbcEncryptionSecret"],
  KubeFlannelCNIConfig: ["cluster.network"],
  KubeletConfig: ["machine.kubelet"],
  KubeNetworkConfig: ["cluster.network"],
  KubeNodeConfig: [
    "cluster.allowSchedulingOnControlPlanes",
    "cluster.allowSchedulingOnMasters",
    "machine.kubelet.skipNodeRegistration",
    "machine.kubelet.registerWithFQDN",
    "machine.kubelet.nodeIP",
    "machine.nodeLabels",
    "machine.nodeAnnotations",
    "machine.nodeTaints",
  ],
  KubePrismConfig: ["machine.features.kubePrism"],
  KubeProxyConfig: ["cluster.proxy"],
  KubeSchedulerConfig: ["cluster.scheduler", "machine.controlPlane.scheduler"],
  KubeServiceAccountConfig: ["cluster.serviceAccount"],
  KubeTalosAPIAccessConfig: ["machine.features.kubernetesTalosAPIAccess"],
  DiscoveryIdentityConfig: ["cluster.id", "cluster.secret"],
  DiscoveryServiceConfig: ["cluster.discovery"],
  UnattendedInstallConfig: ["machine.install"],
  CRIBaseRuntimeSpecConfig: ["machine.baseRuntimeSpecOverrides"],
  ImageCacheConfig: ["machine.features.imageCache"],
  HostnameConfig: ["machine.network.hostname"],
  KubeSpanConfig: ["machine.network.kubespan"],
  ResolverConfig: ["machine.network.nameservers", "machine.network.searchDomains"],
  TimeSyncConfig: ["machine.time.servers"],
};

/** Kinds that only a control plane may have. */
const controlPlaneKinds = new Set([
  "KubeAdmissionControlConfig",
  "KubeAggregatorCAConfig",
  "KubeAPIServerConfig",
  "KubeAuditPolicyConfig",
  "KubeAuthenticationConfig",
  "KubeAuthorizerConfig",
  "KubeControllerManagerConfig",
  "KubeCoreDNSConfig",
  "KubeEtcdEncryptionConfig",
  "KubeFlannelCNIConfig",
  "KubeProxyConfig",
  "KubeSchedulerConfig",
  "KubeServiceAccountConfig",
  "KubeTalosAPIAccessConfig",
]);

/** Whether Go would find something there: an empty mapping counts, an empty text or list does not. */
function isGiven(value: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === 0) return false;
  return !Array.isArray(value) || value.length > 0;
}

function conflictErrors(documents: readonly ConfigDocument[], main: ConfigDocument): string[] {
  const errors: string[] = [];
  for (const kind of new Set(documents.map((document) => textOf(document["kind"])))) {
    const paths = Object.hasOwn(replaced, kind) ? replaced[kind] : undefined;
    for (const path of paths ?? []) {
      if (isGiven(at(main, ...path.split(".")))) errors.push(`${kind} conflicts with ${path}`);
    }
  }
  const resolver = documentsOfKind(documents, "ResolverConfig")[0];
  if (resolver && isTrue(at(main, "machine", "network", "disableSearchDomain")))
    errors.push("ResolverConfig conflicts with machine.network.disableSearchDomain");
  if (isGiven(at(resolver, "hostDNS")) && isGiven(at(main, "machine", "features", "hostDNS")))
    errors.push("ResolverConfig.hostDNS conflicts with machine.features.hostDNS");
  if (documentsOfKind(documents, "TimeSyncConfig").length > 0) {
    if (isTrue(at(main, "machine", "time", "disabled")))
      errors.push("TimeSyncConfig conflicts with machine.time.disabled");
    if (!/^(?:|0[a-z]*)$/.test(textOf(at(main, "machine", "time", "bootTimeout"))))
      errors.push("TimeSyncConfig conflicts with machine.time.bootTimeout");
  }
  if (
    documentsOfKind(documents, "HostnameConfig").length > 0 &&
    isTrue(at(main, "machine", "features", "stableHostname"))
  )
    errors.push("HostnameConfig conflicts with machine.features.stableHostname");
  for (const document of documentsOfKind(documents, "VolumeConfig")) {
    const name = textOf(document["name"]);
    const legacy: unknown = at(main, "machine", "systemDiskEncryption", name.toLowerCase());
    if (["STATE", "EPHEMERAL"].includes(name) && isObject(document["encryption"]) && isObject(legacy))
      errors.push(`VolumeConfig ${name} conflicts with machine.systemDiskEncryption`);
  }
  return errors;
}

function keyErrors(documents: readonly ConfigDocument[]): string[] {
  const errors: string[] = [];
  for (const { name, keys } of readMachineConfig(documents).volumes) {
    const place = `encryption of ${name}`;
    if (keys.length === 0) errors.push(`${place}: at least one key is required`);
    if (new Set(keys.map(({ slot }) => slot)).size !== keys.length)
      errors.push(`${place}: a slot is there twice`);
    if (keys.some(({ kind }) => kind === "")) errors.push(`${place}: a key states no method`);
  }
  for (const document of documents) {
    const pcrs = objects(at(document, "encryption", "keys")).flatMap((key) =>
      at(key, "tpm", "options", "pcrs"),
    );
    if (pcrs.some((pcr) => typeof pcr === "number" && (pcr < 0 || pcr > 23)))
      errors.push(`${textOf(document["kind"])}: encryption.keys: a PCR is outside 0 to 23`);
  }
  return errors;
}

/** Names and identities that documents of 1.14 take from each other. */
function kubernetesErrors(documents: readonly ConfigDocument[]): string[] {
  const facts = readMachineConfig(documents);
  const main = mainDocumentOf(documents);
  const errors: string[] = [];
  const service = documentsOfKind(documents, "DiscoveryServiceConfig").length > 0;
  const isLegacy =
    isTrue(at(main, "cluster", "discovery", "enabled")) &&
    !isTrue(at(main, "cluster", "discovery", "registries", "service", "disabled"));
  if (service && facts.clusterId === "")
    errors.push("DiscoveryServiceConfig needs DiscoveryIdentityConfig.clusterID");
  if (service && facts.clusterSecret === "")
    errors.push("DiscoveryServiceConfig needs DiscoveryIdentityConfig.clusterSecret");
  const [kubeSpan] = documentsOfKind(documents, "KubeSpanConfig");
  const spans =
    isTrue(at(kubeSpan, "enabled")) || isTrue(at(main, "machine", "network", "kubespan", "enabled"));
  if (spans && !service && !isLegacy) errors.push("KubeSpan needs the discovery service");
  if (!facts.controlPlane) {
    const kinds = documents.map((document) => textOf(document["kind"]));
    for (const kind of new Set(kinds.filter((candidate) => controlPlaneKinds.has(candidate))))
      errors.push(`${kind} is for control planes only`);
  }
  const ca = facts.kubernetesCa;
  if (!ca) return errors;
  const encrypts =
    textOf(at(main, "cluster", "secretboxEncryptionSecret")) !== "" ||
    textOf(at(main, "cluster", "aescbcEncryptionSecret")) !== "" ||
    documentsOfKind(documents, "KubeEtcdEncryptionConfig").length > 0;
  if (facts.controlPlane && !encrypts) errors.push("KubeEtcdEncryptionConfig is required on a control plane");
  if (facts.endpoint === "") errors.push("KubeClusterConfig is required: the cluster has no endpoint");
  return errors;
}

function encryptedDnsErrors(documents: readonly ConfigDocument[]): string[] {
  const [resolver] = documentsOfKind(documents, "ResolverConfig");
  const encrypted = objects(at(resolver, "nameservers")).some(({ protocol }) =>
    ["DoT", "DoH"].includes(textOf(protocol)),
  );
  const main = mainDocumentOf(documents);
  const hostDns: unknown = at(main, "machine", "features", "hostDNS") ?? at(resolver, "hostDNS");
  return encrypted && !isTrue(at(hostDns, "enabled"))
    ? ["ResolverConfig: DoT and DoH need hostDNS.enabled"]
    : [];
}

/** `hostDNS` of either form; the container mode needs it. */
function hostDnsErrors({ mode, documents, minor }: RuleContext): string[] {
  const main = mainDocumentOf(documents);
  const [resolver] = documentsOfKind(documents, "ResolverConfig");
  const legacy: unknown = at(main, "machine", "features", "hostDNS");
  const hostDns = legacy ?? at(resolver, "hostDNS");
  const enabled = isTrue(at(hostDns, "enabled"));
  const forward = isTrue(at(hostDns, "forwardKubeDNSToHost"));
  // Earlier releases only look in container mode.
  if (minor >= 13 && forward && !enabled) return ["hostDNS.forwardKubeDNSToHost needs hostDNS.enabled"];
  const demanded = mode === "container" && (main !== undefined || minor >= 14);
  return demanded && !(enabled && forward)
    ? ["hostDNS.enabled and hostDNS.forwardKubeDNSToHost are required in container mode"]
    : [];
}

/** All of them. */
export function wholeErrors(context: RuleContext): string[] {
  const { documents, minor } = context;
  const main = mainDocumentOf(documents);
  return [
    ...(main ? conflictErrors(documents, main) : []),
    ...keyErrors(documents),
    ...hostDnsErrors(context),
    ...(minor >= 14
      ? [...kubernetesErrors(documents), ...encryptedDnsErrors(documents), ...containerOrderErrors(documents)]
      : []),
  ];
}
