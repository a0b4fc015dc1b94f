/**
 * Configuration for contracts 1.11 to 1.13: one large main document, and since 1.12 documents for
 * what moved out of it.
 */
import type { JsonObject } from "@kontinuum/std";
import type { ConfigDocument } from "./config-document.ts";
import {
  defaultSubnets,
  kubePrismPort,
  parseEndpoint,
  type MachineConfigOptions,
} from "./machine-config-options.ts";
import {
  auditPolicy,
  base64Pem,
  encodedPair,
  images,
  noLoadBalancerLabel,
  podSecurityConfiguration,
} from "./machine-defaults.ts";
import {
  document,
  hostnameDocument,
  legacyNetwork,
  networkDocuments,
  resolverFields,
} from "./network-documents.ts";
import { kubernetesVersion, type VersionContract } from "./version-contract.ts";
import { volumeDocuments } from "./volume-documents.ts";

/** The documents of a machine under contract 1.11, 1.12 or 1.13. */
export function documentsPre14(options: MachineConfigOptions, contract: VersionContract): ConfigDocument[] {
  const main: ConfigDocument = {
    version: "v1alpha1",
    debug: false,
    persist: true,
    machine: machineSection(options, contract),
    cluster: clusterSection(options, contract),
  };
  const volumes = volumeDocuments(options.encryption);
  if (contract.minor < 12) return [main, ...volumes];
  const network = options.network ?? {};
  const resolver = resolverFields(network);
  const mirrors = Object.entries(options.registryMirrors ?? {}).map(([name, urls]) =>
    document("RegistryMirrorConfig", { name, endpoints: urls.map((url) => ({ url })) }),
  );
  return [
    main,
    ...mirrors,
    ...volumes,
    hostnameDocument(options.hostname),
    ...networkDocuments(options.type, network),
    ...(Object.keys(resolver).length === 0 ? [] : [document("ResolverConfig", resolver)]),
  ];
}

function machineSection(options: MachineConfigOptions, contract: VersionContract): JsonObject {
  const { bundle, network, registryMirrors, sysctls } = options;
  const controlPlane = options.type === "controlplane";
  const legacy = contract.minor < 12;
  const prism = network?.kubePrism ?? kubePrismPort;
  return {
    type: options.type,
    token: bundle.trustdInfo.token,
    ca: encodedPair(bundle.certs.os, controlPlane),
    certSANs: [...(options.certSans ?? [])],
    kubelet: {
      image: images.kubelet(kubernetesVersion(options.kubernetesVersion)),
      defaultRuntimeSeccompProfileEnabled: true,
      disableManifestsDirectory: true,
    },
    ...(legacy ? { network: legacyNetwork(options) } : contract.minor === 12 ? { network: {} } : {}),
    install: installSection(options, contract),
    ...(legacy && network?.timeServers ? { time: { servers: [...network.timeServers] } } : {}),
    ...(sysctls ? { sysctls: { ...sysctls } } : {}),
    ...(legacy ? legacyRegistries(registryMirrors) : {}),
    features: {
      ...(legacy ? { rbac: true, stableHostname: true, apidCheckExtKeyUsage: true } : {}),
      diskQuotaSupport: true,
      kubePrism: prism === false ? { enabled: false } : { enabled: true, port: prism },
      hostDNS: { enabled: true, forwardKubeDNSToHost: true },
    },
    ...(controlPlane ? { nodeLabels: { [noLoadBalancerLabel]: "" } } : {}),
  };
}

function installSection(options: MachineConfigOptions, contract: VersionContract): JsonObject {
  const { disk, diskSelector, image, wipe, extraKernelArgs } = options.install ?? {};
  // Talos refuses extra kernel arguments together with a command line that comes from the image.
  const imageCommandLine = contract.minor >= 12 && !extraKernelArgs?.length;
  return {
    ...(disk === undefined ? {} : { disk }),
    ...(diskSelector === undefined ? {} : { diskSelector: { ...diskSelector } }),
    ...(extraKernelArgs?.length ? { extraKernelArgs: [...extraKernelArgs] } : {}),
    ...(image === undefined ? {} : { image }),
    wipe: wipe ?? false,
    ...(imageCommandLine ? { grubUseUKICmdline: true } : {}),
  };
}

function legacyRegistries(mirrors: MachineConfigOptions["registryMirrors"]): JsonObject {
  const entries = Object.entries(mirrors ?? {});
  if (entries.length === 0) return {};
  const mirrored = entries.map(([host, urls]) => [host, { endpoints: [...urls] }]);
  return { registries: { mirrors: Object.fromEntries(mirrored) } };
}

function clusterSection(options: MachineConfigOptions, contract: VersionContract): JsonObject {
  const { bundle, network = {} } = options;
  const { certs, cluster, secrets } = bundle;
  const controlPlane = options.type === "controlplane";
  const port = options.localApiServerPort;
  const { secretboxEncryptionSecret, aescbcEncryptionSecret } = secrets;
  return {
    id: cluster.id,
    secret: cluster.secret,
    controlPlane: {
      endpoint: options.endpoint,
      ...(port === undefined || !controlPlane ? {} : { localAPIServerPort: port }),
    },
    clusterName: options.clusterName,
    network: {
      ...cniSection(network.cni),
      dnsDomain: network.dnsDomain ?? "cluster.local",
      podSubnets: [...(network.podSubnets ?? defaultSubnets.pods)],
      serviceSubnets: [...(network.serviceSubnets ?? defaultSubnets.services)],
    },
    token: secrets.bootstrapToken,
    ...(controlPlane && aescbcEncryptionSecret ? { aescbcEncryptionSecret } : {}),
    ...(controlPlane && secretboxEncryptionSecret ? { secretboxEncryptionSecret } : {}),
    ca: encodedPair(certs.k8s, controlPlane),
    ...(controlPlane ? controlPlaneSection(options, contract) : {}),
    discovery: {
      enabled: options.discovery ?? true,
      registries: { kubernetes: { disabled: true }, service: {} },
    },
    ...(controlPlane ? { etcd: { ca: encodedPair(certs.etcd, true) } } : {}),
    ...(controlPlane && options.allowSchedulingOnControlPlanes
      ? { allowSchedulingOnControlPlanes: true }
      : {}),
  };
}

function cniSection(cni: NonNullable<MachineConfigOptions["network"]>["cni"]): JsonObject {
  if (cni === undefined) return {};
  if (typeof cni === "object") return { cni: { name: "custom", urls: [...cni.urls] } };
  return { cni: { name: cni } };
}

function controlPlaneSection(options: MachineConfigOptions, contract: VersionContract): JsonObject {
  const { certs } = options.bundle;
  const version = kubernetesVersion(options.kubernetesVersion);
  const legacy = contract.minor < 12;
  const sans = [...(legacy ? [bareHost(options.endpoint)] : []), ...(options.certSans ?? [])];
  return {
    aggregatorCA: encodedPair(certs.k8sAggregator, true),
    serviceAccount: { key: base64Pem(certs.k8sServiceAccount.key) },
    apiServer: {
      image: images.component("kube-apiserver", version),
      ...(sans.length === 0 ? {} : { certSANs: sans }),
      ...(legacy ? { disablePodSecurityPolicy: true } : {}),
      admissionControl: [{ name: "PodSecurity", configuration: podSecurityConfiguration() }],
      auditPolicy: auditPolicy(),
    },
    controllerManager: { image: images.component("kube-controller-manager", version) },
    proxy: {
      ...(options.network?.kubeProxy === false ? { disabled: true } : {}),
      image: images.component("kube-proxy", version),
    },
    scheduler: { image: images.component("kube-scheduler", version) },
  };
}

/** The endpoint's host without the brackets of an IPv6 address. */
function bareHost(endpoint: string): string {
  return parseEndpoint(endpoint).hostname.replace(/^\[|\]$/g, "");
}
