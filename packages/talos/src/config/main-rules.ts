/**
 * The validation rules of the main document, one function a topic. Each tells what is wrong in a
 * sentence that names the place; none shows a value that could be a secret.
 */
import { at, isDnsSubdomain, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "./config-document.ts";
import { areSubnets } from "./document-rules.ts";
import { documentKinds } from "./document-kinds.ts";
import { isAddress, isNetwork } from "./ip-text.ts";
import { isLabelValue, isQualifiedName, isTaint } from "./kubernetes-names.ts";
import {
  documentsOfKind,
  isFalse,
  isTrue,
  mainDocumentOf,
  objects,
  readMachineConfig,
  textOf,
  texts,
  type MachineConfigFacts,
} from "./machine-config-facts.ts";

/** What the rules know. */
export interface RuleContext {
  readonly mode: "metal" | "cloud" | "container";
  /** Talos 1.`minor`. */
  readonly minor: number;
  readonly installed: boolean;
  readonly documents: readonly ConfigDocument[];
}

/** Errors and warnings of the main document. Without one there is nothing to say. */
export function mainErrors(context: RuleContext): { errors: string[]; warnings: string[] } {
  const main = mainDocumentOf(context.documents);
  if (!main) return { errors: [], warnings: [] };
  const errors: string[] = [];
  const warnings: string[] = [];
  if (!isObject(main["machine"])) errors.push("machine instructions are required");
  if (!isObject(main["cluster"])) errors.push("cluster instructions are required");
  if (errors.length > 0) return { errors, warnings };
  if (isFalse(main["persist"])) errors.push("persist: false is not supported");
  const facts = readMachineConfig(context.documents);
  errors.push(
    ...typeErrors(facts),
    ...endpointErrors(facts),
    ...caErrors(facts, main),
    ...installErrors(facts, main, context),
    ...networkErrors(facts, main),
    ...hostDnsErrors(context, main),
    ...discoveryErrors(facts, main),
    ...manifestErrors(main),
    ...nodeMetadataErrors(main),
    ...kubeletErrors(main),
    ...loggingErrors(main),
    ...subnetErrors(main),
    ...talosAccessErrors(facts, main),
  );
  if (facts.rawType === "") warnings.push("machine.type is empty: the machine becomes a worker");
  const cni = at(main, "cluster", "network", "cni");
  if (textOf(at(cni, "name")) === "custom" && texts(at(cni, "urls")).length === 0) {
    warnings.push("cluster.network.cni: custom without urls installs no network");
  }
  return { errors, warnings };
}

function typeErrors({ rawType }: MachineConfigFacts): string[] {
  return ["init", "controlplane", "worker", "join", ""].includes(rawType)
    ? []
    : ["machine.type must be controlplane or worker"];
}

function endpointErrors({ endpoint, dnsDomain }: MachineConfigFacts): string[] {
  const errors: string[] = [];
  if (endpoint === "") {
    errors.push("cluster.controlPlane.endpoint is required");
  } else {
    const match = /^[a-z][a-z0-9+.-]*:\/\/(\[[0-9a-fA-F:.]+\]|[^\s/:[\]@]+)(?::(\d+))?(?:[/?#]|$)/.exec(
      endpoint,
    );
    const port = match?.[2] === undefined ? 443 : Number(match[2]);
    if (!match) errors.push("cluster.controlPlane.endpoint must be a URL with a host");
    else if (port < 1 || port > 65_535) errors.push("cluster.controlPlane.endpoint: port outside 1 to 65535");
  }
  if (!isDnsSubdomain(dnsDomain)) errors.push("cluster.network.dnsDomain is not a DNS name");
  return errors;
}

function caErrors(facts: MachineConfigFacts, main: ConfigDocument): string[] {
  const { controlPlane, osCa, kubernetesCa } = facts;
  const errors: string[] = [];
  if (!osCa && facts.acceptedOsCas.length === 0) errors.push("machine.ca or machine.acceptedCAs is required");
  if (controlPlane) {
    if (!osCa?.key) errors.push("machine.ca.key is required on a control plane");
    if (isObject(at(main, "cluster", "etcd")) && !facts.etcdCa) errors.push("cluster.etcd.ca is required");
  } else {
    if (osCa && !osCa.crt && facts.acceptedOsCas.length === 0) errors.push("machine.ca.crt is required");
    if (osCa?.key) errors.push("machine.ca.key is not allowed on a worker");
    if (kubernetesCa?.key) errors.push("cluster.ca.key is not allowed on a worker");
    if (isObject(at(main, "cluster", "etcd"))) errors.push("cluster.etcd is not allowed on a worker");
    if (hasLegacyVip(main)) errors.push("a virtual shared IP is not allowed on a worker");
  }
  return errors;
}

function hasLegacyVip(main: ConfigDocument): boolean {
  const devices = objects(at(main, "machine", "network", "interfaces"));
  return devices.some((device) => [device, ...objects(device["vlans"])].some(({ vip }) => isObject(vip)));
}

function installErrors(facts: MachineConfigFacts, main: ConfigDocument, context: RuleContext): string[] {
  const errors: string[] = [];
  const install = at(main, "machine", "install");
  const { mode, installed, minor, documents } = context;
  // From 1.14 on a machine may also be installed by a call, or by a document of its own.
  const newForm = minor >= 14 && documents.some(isNewForm);
  if (mode === "metal" && !installed && !newForm) {
    if (!isObject(install)) errors.push("machine.install is required in metal mode");
    else if (!facts.install?.disk && !isObject(install["diskSelector"])) {
      errors.push("machine.install: either disk or diskSelector is required");
    }
  }
  const selector = at(install, "diskSelector");
  if (isObject(selector)) {
    if (textOf(selector["name"])) errors.push("machine.install.diskSelector.name is not supported");
    const type = textOf(selector["type"]);
    if (type && !["ssd", "hdd", "nvme", "sd"].includes(type)) {
      errors.push("machine.install.diskSelector.type must be ssd, hdd, nvme or sd");
    }
  }
  if (isTrue(at(install, "grubUseUKICmdline")) && texts(at(install, "extraKernelArgs")).length > 0) {
    errors.push("machine.install: extraKernelArgs and grubUseUKICmdline exclude each other");
  }
  return errors;
}

function isNewForm({ kind }: ConfigDocument): boolean {
  return typeof kind === "string" && Object.hasOwn(documentKinds, kind) && documentKinds[kind]?.minor === 14;
}

function networkErrors(facts: MachineConfigFacts, main: ConfigDocument): string[] {
  const errors: string[] = [];
  const cni = at(main, "cluster", "network", "cni");
  // A worker installs no network plugin, so nobody looks at its choice.
  if (isObject(cni) && facts.controlPlane) {
    if (!["flannel", "custom", "none"].includes(facts.cni)) {
      errors.push("cluster.network.cni.name must be flannel, custom or none");
    } else if (facts.cni !== "custom" && texts(cni["urls"]).length > 0) {
      errors.push(`cluster.network.cni.urls are not allowed with ${facts.cni}`);
    }
  }
  if (isTrue(at(main, "machine", "network", "kubespan", "enabled"))) {
    if (!isTrue(at(main, "cluster", "discovery", "enabled"))) {
      errors.push("machine.network.kubespan needs cluster.discovery");
    }
    if (!facts.clusterId) errors.push("machine.network.kubespan needs cluster.id");
    if (!facts.clusterSecret) errors.push("machine.network.kubespan needs cluster.secret");
  }
  for (const [index, device] of objects(at(main, "machine", "network", "interfaces")).entries()) {
    errors.push(...deviceErrors(device).map((error) => `machine.network.interfaces.${index}: ${error}`));
  }
  return errors;
}

function deviceErrors(device: Record<string, unknown>): string[] {
  const errors: string[] = [];
  if ((textOf(device["interface"]) !== "") === isObject(device["deviceSelector"])) {
    errors.push("exactly one of interface and deviceSelector is required");
  }
  if (!texts(device["addresses"]).every((entry) => isAddress(entry) || isNetwork(entry)))
    errors.push("an address is none");
  for (const route of objects(device["routes"])) {
    const network = textOf(route["network"]);
    const gateway = textOf(route["gateway"]);
    if (network !== "" && !isNetwork(network)) errors.push("a route's network is none");
    if (gateway !== "" && !isAddress(gateway)) errors.push("a route's gateway is none");
    if (network === "" && gateway === "") errors.push("a route has neither network nor gateway");
  }
  return errors;
}

function hostDnsErrors({ mode, documents }: RuleContext, main: ConfigDocument): string[] {
  const [resolver] = documentsOfKind(documents, "ResolverConfig");
  const hostDns = at(main, "machine", "features", "hostDNS") ?? at(resolver, "hostDNS");
  const enabled = isTrue(at(hostDns, "enabled"));
  const forward = isTrue(at(hostDns, "forwardKubeDNSToHost"));
  if (forward && !enabled) return ["hostDNS.forwardKubeDNSToHost needs hostDNS.enabled"];
  if (mode === "container" && !(enabled && forward)) {
    return ["hostDNS.enabled and hostDNS.forwardKubeDNSToHost are required in container mode"];
  }
  return [];
}

function discoveryErrors(facts: MachineConfigFacts, main: ConfigDocument): string[] {
  const errors: string[] = [];
  const discovery = at(main, "cluster", "discovery");
  const enabled =
    isTrue(at(discovery, "enabled")) && !isTrue(at(discovery, "registries", "service", "disabled"));
  if (!enabled) return errors;
  if (!facts.clusterId) errors.push("cluster.id is required by the discovery service");
  if (!facts.clusterSecret) errors.push("cluster.secret is required by the discovery service");
  const endpoint = textOf(at(discovery, "registries", "service", "endpoint"));
  if (endpoint) {
    const path = /^[a-z][a-z0-9+.-]*:\/\/[^/]+(\/.*)?$/i.exec(endpoint);
    if (!path) errors.push("cluster.discovery.registries.service.endpoint is not a URL");
    else if (path[1] !== undefined && path[1] !== "/") {
      errors.push("cluster.discovery.registries.service.endpoint must have no path");
    }
  }
  return errors;
}

function manifestErrors(main: ConfigDocument): string[] {
  const names = objects(at(main, "cluster", "inlineManifests")).map(({ name }) => textOf(name));
  const errors: string[] = [];
  if (names.includes("")) errors.push("cluster.inlineManifests: a name is empty");
  if (new Set(names).size !== names.length) errors.push("cluster.inlineManifests: a name is there twice");
  return errors;
}

function nodeMetadataErrors(main: ConfigDocument): string[] {
  const invalid = (
    field: string,
    what: string,
    isValid: (key: string, value: string) => boolean,
  ): string[] => {
    const value = at(main, "machine", field);
    return Object.entries(isObject(value) ? value : {})
      .filter(([key, entry]) => !isValid(key, textOf(entry)))
      .map(([key]) => `machine.${field}: ${key.slice(0, 128)} is not a valid ${what}`);
  };
  return [
    ...invalid("nodeLabels", "label", (key, value) => isQualifiedName(key) && isLabelValue(value)),
    ...invalid("nodeAnnotations", "key", isQualifiedName),
    ...invalid("nodeTaints", "taint", (key, value) => isQualifiedName(key) && isTaint(value)),
  ];
}

function loggingErrors(main: ConfigDocument): string[] {
  const errors: string[] = [];
  for (const [index, destination] of objects(at(main, "machine", "logging", "destinations")).entries()) {
    const place = `machine.logging.destinations.${index}`;
    if (textOf(destination["endpoint"]) === "") errors.push(`${place}: endpoint is required`);
    if (textOf(destination["format"]) !== "json_lines") errors.push(`${place}: format must be json_lines`);
  }
  return errors;
}

function subnetErrors(main: ConfigDocument): string[] {
  const lists = [
    ["machine", "kubelet", "nodeIP", "validSubnets"],
    ["cluster", "etcd", "advertisedSubnets"],
    ["cluster", "etcd", "listenSubnets"],
  ];
  return lists
    .filter((path) => !areSubnets(at(main, ...path)))
    .map((path) => `${path.join(".")}: an entry is no network`);
}

function talosAccessErrors({ controlPlane }: MachineConfigFacts, main: ConfigDocument): string[] {
  const enabled = isTrue(at(main, "machine", "features", "kubernetesTalosAPIAccess", "enabled"));
  return enabled && !controlPlane
    ? ["machine.features.kubernetesTalosAPIAccess is for control planes only"]
    : [];
}

/** Kubelet settings Talos sets itself and lets nobody override. */
const protectedKubeletFields = new Set([
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

function kubeletErrors(main: ConfigDocument): string[] {
  const extra = at(main, "machine", "kubelet", "extraConfig");
  if (!isObject(extra)) return [];
  return Object.keys(extra)
    .filter((key) => protectedKubeletFields.has(key))
    .map((key) => `machine.kubelet.extraConfig.${key} cannot be overridden`);
}
