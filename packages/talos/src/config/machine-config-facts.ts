/**
 * What a machine configuration says, read from either form: the large main document of contracts up
 * to 1.13 or the documents of 1.14. Nothing is judged here; missing things are absent.
 */
import { at, isObject, stringAt } from "@kontinuum/std";
import { isMainDocument, type ConfigDocument } from "./config-document.ts";
import type { DiskSelector } from "./machine-config-options.ts";

/** A certificate and, on control planes, its key: PEM texts. */
export interface ConfiguredCa {
  readonly crt: string;
  /** Empty on a worker. */
  readonly key: string;
}

/** One key of an encrypted volume. */
export interface VolumeKeyFacts {
  readonly slot: number;
  /** Empty when the key states no method. */
  readonly kind: "static" | "nodeID" | "kms" | "tpm" | "";
  /** KMS endpoint URL, else empty. */
  readonly endpoint: string;
}

/** What is configured. */
export interface MachineConfigFacts {
  /** As written: `controlplane`, `worker`, `init`, `join`, or empty. */
  readonly rawType: string;
  readonly controlPlane: boolean;
  /** Fixed host name, when there is one. */
  readonly hostname: string | undefined;
  readonly clusterName: string;
  readonly endpoint: string;
  readonly clusterId: string;
  readonly clusterSecret: string;
  /** Joins the machine's PKI (trustd). */
  readonly machineToken: string;
  /** Joins Kubernetes. */
  readonly bootstrapToken: string;
  readonly certSans: readonly string[];
  readonly apiServerCertSans: readonly string[];
  readonly osCa: ConfiguredCa | undefined;
  /** Further CAs whose clients are let in. PEM. */
  readonly acceptedOsCas: readonly string[];
  readonly kubernetesCa: ConfiguredCa | undefined;
  readonly aggregatorCa: ConfiguredCa | undefined;
  readonly etcdCa: ConfiguredCa | undefined;
  readonly serviceAccountKey: string | undefined;
  readonly images: {
    readonly kubelet: string;
    readonly apiServer: string;
    readonly controllerManager: string;
    readonly scheduler: string;
  };
  readonly install: InstallFacts | undefined;
  readonly cni: string;
  readonly dnsDomain: string;
  readonly podSubnets: readonly string[];
  readonly serviceSubnets: readonly string[];
  readonly kubeProxy: boolean;
  readonly allowSchedulingOnControlPlanes: boolean;
  readonly vip: string | undefined;
  readonly volumes: readonly { readonly name: string; readonly keys: readonly VolumeKeyFacts[] }[];
}

/** Where and what to install. */
export interface InstallFacts {
  readonly disk: string | undefined;
  readonly diskSelector: DiskSelector | undefined;
  /** CEL expression of contract 1.14. */
  readonly diskExpression: string | undefined;
  readonly image: string | undefined;
  readonly wipe: boolean;
}

/** The main document, or `undefined`. */
export function mainDocumentOf(documents: readonly ConfigDocument[]): ConfigDocument | undefined {
  return documents.find(isMainDocument);
}

/** All documents of a kind. */
export function documentsOfKind(documents: readonly ConfigDocument[], kind: string): ConfigDocument[] {
  return documents.filter((document) => document["kind"] === kind);
}

/** What the documents say. */
export function readMachineConfig(documents: readonly ConfigDocument[]): MachineConfigFacts {
  const main = mainDocumentOf(documents);
  const one = (kind: string): ConfigDocument | undefined => documentsOfKind(documents, kind)[0];
  const machine = (...path: string[]): unknown => at(main, "machine", ...path);
  const cluster = (...path: string[]): unknown => at(main, "cluster", ...path);
  const rawType = textOf(machine("type"));
  const controlPlane = rawType === "controlplane" || rawType === "init";
  const nodeConfig = one("KubeNodeConfig");
  const cniOf = textOf(cluster("network", "cni", "name"));
  const kubeForm = one("KubeClusterConfig") !== undefined;
  return {
    rawType,
    controlPlane,
    hostname:
      textOf(machine("network", "hostname")) || textOf(at(one("HostnameConfig"), "hostname")) || undefined,
    clusterName: textOf(cluster("clusterName")) || textOf(at(one("KubeClusterConfig"), "clusterName")),
    endpoint: textOf(cluster("controlPlane", "endpoint")) || textOf(at(one("KubeClusterConfig"), "endpoint")),
    clusterId: textOf(cluster("id")) || textOf(at(one("DiscoveryIdentityConfig"), "clusterID")),
    clusterSecret: textOf(cluster("secret")) || textOf(at(one("DiscoveryIdentityConfig"), "clusterSecret")),
    machineToken: textOf(machine("token")),
    bootstrapToken: textOf(cluster("token")),
    certSans: texts(machine("certSANs")),
    apiServerCertSans: [
      ...texts(cluster("apiServer", "certSANs")),
      ...texts(at(one("KubeAPIServerConfig"), "certExtraSANs")),
    ],
    osCa: encodedCa(machine("ca")),
    acceptedOsCas: objects(machine("acceptedCAs")).map((entry) => decode(stringAt(entry, "crt"))),
    kubernetesCa: encodedCa(cluster("ca")) ?? plainCa(one("KubeAPIServerCAConfig")),
    aggregatorCa: encodedCa(cluster("aggregatorCA")) ?? plainCa(one("KubeAggregatorCAConfig")),
    etcdCa: encodedCa(cluster("etcd", "ca")),
    serviceAccountKey:
      decode(stringAt(main, "cluster", "serviceAccount", "key")) ||
      textOf(at(one("KubeServiceAccountConfig"), "issuer", "privateKey")) ||
      undefined,
    images: {
      kubelet: textOf(machine("kubelet", "image")) || textOf(at(one("KubeletConfig"), "image")),
      apiServer: textOf(cluster("apiServer", "image")) || textOf(at(one("KubeAPIServerConfig"), "image")),
      controllerManager:
        textOf(cluster("controllerManager", "image")) ||
        textOf(at(one("KubeControllerManagerConfig"), "image")),
      scheduler: textOf(cluster("scheduler", "image")) || textOf(at(one("KubeSchedulerConfig"), "image")),
    },
    install: installFacts(machine("install"), one("UnattendedInstallConfig")),
    cni: cniOf || (kubeForm && !one("KubeFlannelCNIConfig") ? "none" : "flannel"),
    dnsDomain:
      textOf(cluster("network", "dnsDomain")) ||
      textOf(at(one("KubeNetworkConfig"), "dnsDomain")) ||
      "cluster.local",
    podSubnets: [
      ...texts(cluster("network", "podSubnets")),
      ...texts(at(one("KubeNetworkConfig"), "podSubnets")),
    ],
    serviceSubnets: [
      ...texts(cluster("network", "serviceSubnets")),
      ...texts(at(one("KubeNetworkConfig"), "serviceSubnets")),
    ],
    kubeProxy: !isTrue(cluster("proxy", "disabled")) && !isFalse(at(one("KubeProxyConfig"), "enabled")),
    allowSchedulingOnControlPlanes:
      isTrue(cluster("allowSchedulingOnControlPlanes")) ||
      (nodeConfig !== undefined && !isObject(nodeConfig["taints"])),
    vip: textOf(at(one("Layer2VIPConfig"), "name")) || legacyVip(machine("network", "interfaces")),
    volumes: volumeFacts(documents, machine("systemDiskEncryption")),
  };
}

function installFacts(install: unknown, unattended: ConfigDocument | undefined): InstallFacts | undefined {
  if (!isObject(install) && !unattended) return undefined;
  const selector = at(install, "diskSelector");
  return {
    disk: textOf(at(install, "disk")) || undefined,
    diskSelector: isObject(selector) ? selectorOf(selector) : undefined,
    diskExpression: textOf(at(unattended, "provisioning", "diskSelector", "match")) || undefined,
    image: textOf(at(install, "image")) || textOf(at(unattended, "installer", "image")) || undefined,
    wipe: isTrue(at(install, "wipe")) || isTrue(at(unattended, "provisioning", "wipe")),
  };
}

function selectorOf(selector: Record<string, unknown>): DiskSelector {
  const given = Object.entries(selector).filter(([, value]) => textOf(value) !== "");
  return Object.fromEntries(given.map(([key, value]) => [key, textOf(value)]));
}

function volumeFacts(documents: readonly ConfigDocument[], legacy: unknown): MachineConfigFacts["volumes"] {
  const own = documents
    .filter(({ encryption }) => isObject(encryption) && Object.keys(encryption).length > 0)
    .map((document) => ({
      name: textOf(document["name"]),
      keys: keyFacts(at(document, "encryption", "keys")),
    }));
  const old = (["state", "ephemeral"] as const)
    .filter((name) => isObject(at(legacy, name)))
    .map((name) => ({ name: name.toUpperCase(), keys: keyFacts(at(legacy, name, "keys")) }));
  return [...own, ...old];
}

function keyFacts(keys: unknown): VolumeKeyFacts[] {
  return objects(keys).map((key) => {
    const kind = (["static", "nodeID", "kms", "tpm"] as const).find((name) => isObject(key[name])) ?? "";
    const slot = key["slot"];
    return { slot: typeof slot === "number" ? slot : 0, kind, endpoint: textOf(at(key, "kms", "endpoint")) };
  });
}

function legacyVip(interfaces: unknown): string | undefined {
  for (const device of objects(interfaces)) {
    const own = textOf(at(device, "vip", "ip"));
    if (own) return own;
    for (const vlan of objects(device["vlans"])) {
      const address = textOf(at(vlan, "vip", "ip"));
      if (address) return address;
    }
  }
  return undefined;
}

function encodedCa(value: unknown): ConfiguredCa | undefined {
  if (!isObject(value)) return undefined;
  return { crt: decode(textOf(value["crt"])), key: decode(textOf(value["key"])) };
}

function plainCa(document: ConfigDocument | undefined): ConfiguredCa | undefined {
  if (!document) return undefined;
  const issuing = document["issuingCA"];
  if (isObject(issuing)) return { crt: textOf(issuing["cert"]), key: textOf(issuing["key"]) };
  const [accepted] = texts(document["acceptedCAs"]);
  return accepted === undefined ? undefined : { crt: accepted, key: "" };
}

function decode(base64: string | undefined): string {
  return base64 ? Buffer.from(base64, "base64").toString("utf8") : "";
}

/** A scalar as text, else an empty one. */
export function textOf(value: unknown): string {
  return typeof value === "string"
    ? value
    : typeof value === "number" || typeof value === "boolean"
      ? String(value)
      : "";
}

/** True as Go's YAML reads it where a truth value is wanted. */
export function isTrue(value: unknown): boolean {
  return value === true || (typeof value === "string" && /^(?:y|yes|on)$/i.test(value));
}

/** False as Go's YAML reads it; nothing is not false. */
export function isFalse(value: unknown): boolean {
  return value === false || (typeof value === "string" && /^(?:n|no|off)$/i.test(value));
}

/** The texts of a list. */
export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

/** The mappings of a list. */
export function objects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
