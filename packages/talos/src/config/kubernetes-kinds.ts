/**
 * Documents of Kubernetes' components, which Talos 1.14 moved out of the main document. Component
 * configuration inside them is Kubernetes' business and only has to be a mapping.
 */
import { plain, named, type DocumentKind } from "./document-kind.ts";
import { args, bool, cidr, list, map, mapping, object, text, uint, url, words } from "./shape.ts";

const issuingCa = object({ cert: text, key: text });
const resources = mapping;
const env = map(text);

/** The kinds, by name. */
export const kubernetesKinds: Readonly<Record<string, DocumentKind>> = {
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
    issuer: object({ privateKey: text, issuerURL: text }),
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
