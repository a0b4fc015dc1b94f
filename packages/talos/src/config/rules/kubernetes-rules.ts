/**
 * Validation rules of the documents of Kubernetes' components (Talos 1.14).
 */
import { at, isDnsSubdomain, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "../config-document.ts";
import { isMasked } from "../ip-text.ts";
import { isLabelValue, isQualifiedName, isTaint } from "../kubernetes-names.ts";
import { isFalse, textOf, texts } from "../machine-config-facts.ts";
import { endpointProblem } from "./endpoint.ts";
import {
  areSubnets,
  isPemCertificate,
  isPemKey,
  needs,
  needsMapping,
  type Finding,
  type Rules,
} from "./rule.ts";

/** Bits of a subnet that stay for hosts: at least in any, at most in one for services. */
const hostBits = { least: 4, mostForServices: 20 } as const;
/** Bits between the pods' subnet and a node's share of it. */
const podBitsMax = 16;
/** A node's share of the pods' subnet, unless told. */
const nodeMask = { v4: 24, v6: 64 } as const;

/** Arguments of the API server that documents of their own replace. */
const deniedArguments: readonly [string, string][] = [
  ["anonymous-auth", "KubeAuthenticationConfig"],
  ["oidc-", "KubeAuthenticationConfig"],
  ["authentication-config", "KubeAuthenticationConfig"],
  ["authorization-config", "KubeAuthorizerConfig"],
  ["authorization-mode", "KubeAuthorizerConfig"],
  ["authorization-webhook-", "KubeAuthorizerConfig"],
];

/** Kubelet settings Talos sets itself and lets nobody override. */
const protectedKubeletFields: ReadonlySet<string> = new Set([
  "apiVersion",
  "kind",
  "authentication",
  "authorization",
  "cgroupRoot",
  "kubeletCgroups",
  "systemCgroups",
  "port",
  "rotateCertificates",
  "staticPodPath",
]);

/** The fields of a kubelet's configuration that cannot be set, as errors below `place`. */
export function protectedFieldErrors(configuration: unknown, place: string): string[] {
  if (!isObject(configuration)) return [];
  return Object.keys(configuration)
    .filter((key) => protectedKubeletFields.has(key))
    .map((key) => `${place}.${key} cannot be overridden`);
}

/** Labels, annotations and taints of a node that Kubernetes would not take, as errors. */
export function nodeMetadataErrors(
  value: (field: "labels" | "annotations" | "taints") => unknown,
  place: (field: "labels" | "annotations" | "taints") => string,
): string[] {
  const invalid = (
    field: "labels" | "annotations" | "taints",
    what: string,
    isValid: (key: string, text: string) => boolean,
  ): string[] => {
    const entries = value(field);
    return Object.entries(isObject(entries) ? entries : {})
      .filter(([key, entry]) => !isValid(key, textOf(entry)))
      .map(([key]) => `${place(field)}: ${key.slice(0, 128)} is not a valid ${what}`);
  };
  return [
    ...invalid("labels", "label", (key, text) => isQualifiedName(key) && isLabelValue(text)),
    ...invalid("annotations", "key", isQualifiedName),
    ...invalid("taints", "taint", (key, text) => isQualifiedName(key) && isTaint(text)),
  ];
}

function issuerErrors(document: ConfigDocument, required: boolean): Finding[] {
  const issuing = document["issuingCA"];
  const accepted = texts(document["acceptedCAs"]).some((text) => !isPemCertificate(text));
  return [
    required && !isObject(issuing) && "issuingCA is required",
    ...(isObject(issuing)
      ? [
          needs(document, "issuingCA", "cert") ||
            (!isPemCertificate(issuing["cert"]) && "issuingCA.cert is no certificate"),
          needs(document, "issuingCA", "key") || (!isPemKey(issuing["key"]) && "issuingCA.key is no key"),
        ]
      : []),
    accepted && "an entry of acceptedCAs is no certificate",
  ];
}

function resourceErrors(document: ConfigDocument): Finding[] {
  return ["requests", "limits"].map((key) => {
    const value = at(document, "resources", key);
    const known = !isObject(value) || Object.keys(value).every((name) => name === "cpu" || name === "memory");
    return !known && `resources.${key} may name cpu and memory only`;
  });
}

/** A component that runs as a pod: its image and what it may use. One that is switched off is not looked at. */
function podErrors(document: ConfigDocument): Finding[] {
  return isFalse(document["enabled"]) ? [] : [needs(document, "image"), ...resourceErrors(document)];
}

function manifestName(document: ConfigDocument): Finding {
  const name = textOf(document["name"]);
  return name !== "" && !isDnsSubdomain(name) && "name is not a DNS name";
}

function subnetErrors(
  document: ConfigDocument,
  key: "podSubnets" | "serviceSubnets",
  tooLarge: (bits: number, total: number) => Finding,
): Finding {
  const subnets = texts(document[key]);
  if (subnets.length === 0) return `${key} is required`;
  if (subnets.length > 2) return `${key} takes at most one IPv4 and one IPv6 network`;
  for (const subnet of subnets) {
    const bits = Number(subnet.split("/")[1]);
    const total = subnet.includes(":") ? 128 : 32;
    if (!isMasked(subnet)) return `an entry of ${key} is not the first address of its network`;
    if (total - bits < hostBits.least) return `an entry of ${key} is too small`;
    const finding = tooLarge(bits, total);
    if (finding !== false) return finding;
  }
  const six = subnets.filter((subnet) => subnet.includes(":")).length;
  return subnets.length === 2 && six !== 1 && `${key} takes at most one IPv4 and one IPv6 network`;
}

function networkErrors(document: ConfigDocument): Finding[] {
  const mask = (total: number): number => {
    const value = Number(document[total === 32 ? "nodeCIDRMaskSizeIPv4" : "nodeCIDRMaskSizeIPv6"] ?? 0);
    return value === 0 ? (total === 32 ? nodeMask.v4 : nodeMask.v6) : value;
  };
  return [
    mask(32) > 32 && "nodeCIDRMaskSizeIPv4 must be between 1 and 32",
    mask(128) > 128 && "nodeCIDRMaskSizeIPv6 must be between 1 and 128",
    subnetErrors(document, "podSubnets", (bits, total) => {
      const share = mask(total);
      if (share > total) return false;
      if (bits > share) return `an entry of podSubnets is smaller than a node's share, /${share}`;
      return (
        share - bits > podBitsMax &&
        `an entry of podSubnets holds more than 2^${podBitsMax} shares of /${share}`
      );
    }),
    subnetErrors(
      document,
      "serviceSubnets",
      (bits, total) =>
        total - bits > hostBits.mostForServices &&
        `an entry of serviceSubnets must be at least /${total - hostBits.mostForServices}`,
    ),
    texts(document["podSubnets"]).length !== texts(document["serviceSubnets"]).length &&
      "podSubnets and serviceSubnets must be as many",
  ];
}

/** Roles a client certificate of Talos may carry. */
export const talosRoles: ReadonlySet<string> = new Set([
  "os:admin",
  "os:operator",
  "os:reader",
  "os:etcd:backup",
  "os:image:verifier",
  "os:meta:writer",
  "os:impersonator",
]);

/** Rules by kind. */
export const kubernetesRules: Rules = {
  KubeClusterConfig: (document) => {
    const endpoint = textOf(document["endpoint"]);
    const problem = endpoint === "" ? undefined : endpointProblem(endpoint);
    return [
      needs(document, "clusterName"),
      needs(document, "endpoint"),
      problem !== undefined && `endpoint ${problem}`,
    ];
  },
  KubeNodeConfig: (document) => [
    !areSubnets(at(document, "nodeIP", "validSubnets")) && "an entry of nodeIP.validSubnets is no network",
    ...nodeMetadataErrors(
      (field) => document[field],
      (field) => field,
    ),
  ],
  KubeletConfig: (document) => [
    needs(document, "image"),
    ...protectedFieldErrors(document["config"], "config"),
  ],
  KubeNetworkConfig: networkErrors,
  KubeAPIServerCAConfig: (document) => issuerErrors(document, false),
  KubeAggregatorCAConfig: (document) => issuerErrors(document, true),
  KubeAPIServerConfig: (document) => {
    const given = document["extraArgs"];
    const names = Object.keys(isObject(given) ? given : {});
    return [
      ...podErrors(document),
      ...deniedArguments.map(([prefix, kind]) => {
        const found = names.find((name) => name.startsWith(prefix));
        return found !== undefined && `extraArgs.${found} is not allowed: use ${kind}`;
      }),
    ];
  },
  KubeControllerManagerConfig: podErrors,
  KubeSchedulerConfig: podErrors,
  KubeProxyConfig: (document) => [
    ...podErrors(document),
    !isFalse(document["enabled"]) &&
      !["", "nftables", "iptables", "ipvs"].includes(textOf(document["mode"])) &&
      "mode must be nftables, iptables or ipvs",
  ],
  KubePrismConfig: ({ port }) => [
    !(Number(port ?? 0) >= 1 && Number(port) <= 65_535) && "port must be between 1 and 65535",
  ],
  KubeFlannelCNIConfig: (document) => [needs(document, "backendType"), ...resourceErrors(document)],
  KubeServiceAccountConfig: (document) => [
    needs(document, "issuer", "privateKey") ||
      (!isPemKey(at(document, "issuer", "privateKey")) && "issuer.privateKey is no key"),
    needs(document, "issuer", "issuerURL"),
  ],
  KubeEtcdEncryptionConfig: (document) => [needsMapping(document, "config")],
  KubeAuthorizerConfig: (document) => [
    needs(document, "type"),
    textOf(document["type"]) === "Webhook" && needsMapping(document, "webhook"),
  ],
  KubeExternalManifestConfig: (document) => [manifestName(document), needs(document, "url")],
  KubeInlineManifestConfig: (document) => [manifestName(document)],
  KubeStaticPodConfig: (document) => [manifestName(document), needsMapping(document, "pod")],
  KubeTalosAPIAccessConfig: (document) => [
    texts(document["allowedRoles"]).some((role) => !talosRoles.has(role)) &&
      "an entry of allowedRoles is no role of Talos",
  ],
};
