/**
 * Configuration for contract 1.14: a small main document with the machine's PKI, and a document for
 * everything else.
 */
import { CodedError } from "@kontinuum/std";
import type { ConfigDocument } from "./config-document.ts";
import {
  defaultSubnets,
  kubePrismPort,
  type DiskSelector,
  type InstallOptions,
  type MachineConfigOptions,
} from "./machine-config-options.ts";
import {
  auditPolicy,
  encodedPair,
  images,
  noLoadBalancerLabel,
  podSecurityConfiguration,
} from "./machine-defaults.ts";
import { document, hostnameDocument, networkDocuments, resolverFields } from "./network-documents.ts";
import { kubernetesVersion } from "./version-contract.ts";
import { volumeDocuments } from "./volume-documents.ts";

const controlPlaneRole = "node-role.kubernetes.io/control-plane";

/** The documents of a machine under contract 1.14. */
export function documents14(options: MachineConfigOptions): ConfigDocument[] {
  const controlPlane = options.type === "controlplane";
  return [
    mainDocument(options),
    ...systemDocuments(options),
    ...nodeDocuments(options),
    ...(controlPlane ? controlPlaneDocuments(options) : []),
  ];
}

function mainDocument(options: MachineConfigOptions): ConfigDocument {
  const { bundle } = options;
  const controlPlane = options.type === "controlplane";
  return {
    version: "v1alpha1",
    debug: false,
    persist: true,
    machine: {
      type: options.type,
      token: bundle.trustdInfo.token,
      ca: encodedPair(bundle.certs.os, controlPlane),
      certSANs: [...(options.certSans ?? [])],
      features: { diskQuotaSupport: true },
    },
    cluster: {
      token: bundle.secrets.bootstrapToken,
      ...(controlPlane ? { etcd: { ca: encodedPair(bundle.certs.etcd, true) } } : {}),
    },
  };
}

function systemDocuments(options: MachineConfigOptions): ConfigDocument[] {
  const { cluster } = options.bundle;
  const { network = {}, install, sysctls } = options;
  const discovery = [
    document("DiscoveryServiceConfig", { name: "default", endpoint: "https://discovery.talos.dev/" }),
    document("DiscoveryIdentityConfig", { clusterID: cluster.id, clusterSecret: cluster.secret }),
  ];
  return [
    ...(options.discovery === false ? [] : discovery),
    ...(install ? [installDocument(install)] : []),
    document("ResolverConfig", {
      ...resolverFields(network),
      hostDNS: { enabled: true, forwardKubeDNSToHost: true },
    }),
    ...(sysctls ? [document("SysctlConfig", { params: { ...sysctls } })] : []),
    ...volumeDocuments(options.encryption, { mount: { secure: true } }),
    document("FilesystemTrimConfig", { interval: "168h0m0s" }),
    document("SecurityProfileConfig", { workloadIsolation: true }),
    ...Object.entries(options.registryMirrors ?? {}).map(([name, urls]) =>
      document("RegistryMirrorConfig", { name, endpoints: urls.map((url) => ({ url })) }),
    ),
    hostnameDocument(options.hostname),
    ...networkDocuments(options.type, network),
  ];
}

function installDocument(install: InstallOptions): ConfigDocument {
  const match =
    install.diskSelector === undefined
      ? install.disk === undefined
        ? undefined
        : `disk.dev_path == ${celString(install.disk)}`
      : diskExpression(install.diskSelector);
  return document("UnattendedInstallConfig", {
    installer: install.image === undefined ? {} : { image: install.image },
    provisioning: {
      ...(match === undefined ? {} : { diskSelector: { match } }),
      wipe: install.wipe ?? false,
    },
  });
}

/** A text as a CEL string. JSON's escapes are a subset of CEL's. */
function celString(text: string): string {
  return JSON.stringify(text);
}

const sizeUnits: Readonly<Record<string, number>> = { "": 0, k: 1, m: 2, g: 3, t: 4, p: 5 };

/** A classic disk selector as the CEL expression that chooses the same disks. */
function diskExpression(selector: DiskSelector): string {
  const terms = ['disk.transport != ""', "!disk.readonly", "!disk.cdrom"];
  for (const field of ["model", "serial", "modalias", "uuid", "wwid"] as const) {
    const value = selector[field];
    if (value !== undefined) terms.push(globTerm(`disk.${field}`, value));
  }
  if (selector.busPath !== undefined) terms.push(globTerm("disk.bus_path", selector.busPath));
  if (selector.size !== undefined) terms.push(sizeTerm(selector.size));
  switch (selector.type) {
    case "nvme":
      terms.push('disk.transport == "nvme"');
      break;
    case "sd":
      terms.push('disk.transport == "mmc"');
      break;
    case "hdd":
      terms.push("disk.rotational");
      break;
    case "ssd":
      terms.push("!disk.rotational");
      break;
    case undefined:
      break;
  }
  return terms.join(" && ");
}

function globTerm(field: string, pattern: string): string {
  return pattern.includes("*")
    ? `glob(${celString(pattern)}, ${field})`
    : `${field} == ${celString(pattern)}`;
}

/** `>= 100GB` as a comparison in bytes; decimal and binary units as Talos reads them. */
function sizeTerm(size: string): string {
  const match = /^\s*(>=|<=|>|<|==)?\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)b?\s*$/i.exec(size);
  const [, operator = "==", number = "", unit = "", binary = ""] = match ?? [];
  const power = sizeUnits[unit.toLowerCase()];
  if (!match || power === undefined) {
    throw new CodedError(
      "invalid_argument",
      `disk size ${JSON.stringify(size.slice(0, 64))} is not a comparison such as ">= 100GB"`,
    );
  }
  const bytes = Math.round(Number(number) * (binary ? 1024 : 1000) ** power);
  return `disk.size ${operator || "=="} ${bytes}u`;
}

function nodeDocuments(options: MachineConfigOptions): ConfigDocument[] {
  const { network = {}, bundle } = options;
  const controlPlane = options.type === "controlplane";
  const version = kubernetesVersion(options.kubernetesVersion);
  const prism = network.kubePrism ?? kubePrismPort;
  const tainted = controlPlane && !options.allowSchedulingOnControlPlanes;
  return [
    document("KubeClusterConfig", { clusterName: options.clusterName, endpoint: options.endpoint }),
    document("KubeNodeConfig", {
      nodeIP: {},
      ...(controlPlane ? { labels: { [controlPlaneRole]: "", [noLoadBalancerLabel]: "" } } : {}),
      ...(tainted ? { taints: { [controlPlaneRole]: "NoSchedule" } } : {}),
    }),
    document("KubeletConfig", {
      image: images.kubelet(version),
      config: {},
      defaultRuntimeSeccompProfileEnabled: true,
    }),
    document("KubeNetworkConfig", {
      dnsDomain: network.dnsDomain ?? "cluster.local",
      podSubnets: [...(network.podSubnets ?? defaultSubnets.pods)],
      serviceSubnets: [...(network.serviceSubnets ?? defaultSubnets.services)],
    }),
    document(
      "KubeAPIServerCAConfig",
      controlPlane
        ? { issuingCA: { cert: bundle.certs.k8s.crt, key: bundle.certs.k8s.key } }
        : { acceptedCAs: [bundle.certs.k8s.crt] },
    ),
    ...(prism === false ? [] : [document("KubePrismConfig", { port: prism })]),
  ];
}

function controlPlaneDocuments(options: MachineConfigOptions): ConfigDocument[] {
  const { bundle, network = {} } = options;
  const { certs } = bundle;
  const version = kubernetesVersion(options.kubernetesVersion);
  const component = (name: string): string => images.component(name, version);
  return [
    document("KubeAggregatorCAConfig", {
      issuingCA: { cert: certs.k8sAggregator.crt, key: certs.k8sAggregator.key },
    }),
    document("KubeAdmissionControlConfig", {
      name: "PodSecurity",
      configuration: podSecurityConfiguration(),
    }),
    document("KubeAuditPolicyConfig", { configuration: auditPolicy() }),
    document("KubeAuthenticationConfig", {
      configuration: {
        anonymous: {
          conditions: [{ path: "/livez" }, { path: "/readyz" }, { path: "/healthz" }],
          enabled: true,
        },
        jwt: [],
      },
    }),
    document("KubeAuthorizerConfig", { name: "node", type: "Node" }),
    document("KubeAuthorizerConfig", { name: "rbac", type: "RBAC" }),
    encryptionDocument(options),
    document("KubeServiceAccountConfig", {
      issuer: { privateKey: certs.k8sServiceAccount.key, issuerURL: options.endpoint },
    }),
    document("KubeAPIServerConfig", {
      image: component("kube-apiserver"),
      ...(options.localApiServerPort === undefined ? {} : { apiPort: options.localApiServerPort }),
      ...(options.certSans?.length ? { certExtraSANs: [...options.certSans] } : {}),
    }),
    document("KubeControllerManagerConfig", { image: component("kube-controller-manager") }),
    document("KubeSchedulerConfig", { image: component("kube-scheduler"), config: {} }),
    document("KubeProxyConfig", {
      ...(network.kubeProxy === false ? { enabled: false } : {}),
      image: component("kube-proxy"),
      config: {},
    }),
    ...(network.cni === undefined || network.cni === "flannel"
      ? [document("KubeFlannelCNIConfig", { backendType: "vxlan", backendPort: 4789 })]
      : []),
    document("KubeCoreDNSConfig", { enabled: true }),
    ...cniManifests(network.cni),
  ];
}

function encryptionDocument({ bundle }: MachineConfigOptions): ConfigDocument {
  const { secretboxEncryptionSecret, aescbcEncryptionSecret } = bundle.secrets;
  const provider = secretboxEncryptionSecret
    ? { secretbox: { keys: [{ name: "key2", secret: secretboxEncryptionSecret }] } }
    : { aescbc: { keys: [{ name: "key1", secret: aescbcEncryptionSecret }] } };
  return document("KubeEtcdEncryptionConfig", {
    config: { resources: [{ providers: [provider], resources: ["secrets"] }] },
  });
}

function cniManifests(cni: NonNullable<MachineConfigOptions["network"]>["cni"]): ConfigDocument[] {
  if (typeof cni !== "object") return [];
  return cni.urls.map((url, index) =>
    document("KubeExternalManifestConfig", {
      name: index === 0 ? "custom-cni" : `custom-cni-${index + 1}`,
      url,
    }),
  );
}
