/**
 * The validation rules themselves, one function a topic. Each tells what is wrong in a sentence that
 * names the place; none shows a value that could be a secret.
 */
import { at, isDnsSubdomain, isObject } from "@kontinuum/std";
import { isMainDocument, type ConfigDocument } from "./config-document.ts";
import { documentKinds } from "./document-shapes.ts";
import {
  documentsOfKind,
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
  if (main["persist"] === false) errors.push("persist: false is not supported");
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
  if (!osCa?.crt && facts.acceptedOsCas.length === 0)
    errors.push("machine.ca or machine.acceptedCAs is required");
  if (controlPlane) {
    if (!osCa?.key) errors.push("machine.ca.key is required on a control plane");
    if (isObject(at(main, "cluster", "etcd")) && !facts.etcdCa?.crt)
      errors.push("cluster.etcd.ca is required");
  } else {
    if (osCa?.key) errors.push("machine.ca.key is not allowed on a worker");
    if (kubernetesCa?.key) errors.push("cluster.ca.key is not allowed on a worker");
    if (isObject(at(main, "cluster", "etcd"))) errors.push("cluster.etcd is not allowed on a worker");
    if (facts.vip !== undefined) errors.push("a virtual shared IP is not allowed on a worker");
  }
  return errors;
}

function installErrors(facts: MachineConfigFacts, main: ConfigDocument, context: RuleContext): string[] {
  const errors: string[] = [];
  const install = at(main, "machine", "install");
  const { mode, installed, minor, documents } = context;
  // From 1.14 on a machine may also be installed by a call, or by a document of its own.
  const newForm = minor >= 14 && documents.some((document) => (kindOf(document)?.minor ?? 0) >= 14);
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
    const size = textOf(selector["size"]);
    if (size && !/^\s*(>=|<=|>|<|==)?\s*\d+(\.\d+)?\s*([kmgtpe]i?b?|b)?\s*$/i.test(size)) {
      errors.push("machine.install.diskSelector.size is not a comparison with a size");
    }
  }
  if (at(install, "grubUseUKICmdline") === true && texts(at(install, "extraKernelArgs")).length > 0) {
    errors.push("machine.install: extraKernelArgs and grubUseUKICmdline exclude each other");
  }
  return errors;
}

function networkErrors(facts: MachineConfigFacts, main: ConfigDocument): string[] {
  const errors: string[] = [];
  const cni = at(main, "cluster", "network", "cni");
  if (isObject(cni)) {
    if (!["flannel", "custom", "none"].includes(facts.cni)) {
      errors.push("cluster.network.cni.name must be flannel, custom or none");
    } else if (facts.cni !== "custom" && texts(cni["urls"]).length > 0) {
      errors.push(`cluster.network.cni.urls are not allowed with ${facts.cni}`);
    }
  }
  for (const [index, device] of objects(at(main, "machine", "network", "interfaces")).entries()) {
    const place = `machine.network.interfaces.${index}`;
    const hasName = textOf(device["interface"]) !== "";
    const hasSelector = isObject(device["deviceSelector"]);
    if (hasName === hasSelector)
      errors.push(`${place}: exactly one of interface and deviceSelector is required`);
  }
  return errors;
}

function hostDnsErrors({ mode, documents }: RuleContext, main: ConfigDocument): string[] {
  const [resolver] = documentsOfKind(documents, "ResolverConfig");
  const hostDns = at(main, "machine", "features", "hostDNS") ?? at(resolver, "hostDNS");
  const enabled = at(hostDns, "enabled") === true;
  const forward = at(hostDns, "forwardKubeDNSToHost") === true;
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
    at(discovery, "enabled") === true && at(discovery, "registries", "service", "disabled") !== true;
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

const labelValue = /^(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;
const namePart = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** A qualified name: an optional DNS prefix, then a name (Kubernetes, "Labels and Selectors"). */
function isQualifiedName(key: string): boolean {
  const parts = key.split("/");
  const [prefix, name] = parts.length === 1 ? [undefined, parts[0]] : parts;
  if (parts.length > 2 || name === undefined || !namePart.test(name)) return false;
  return prefix === undefined || isDnsSubdomain(prefix);
}

function nodeMetadataErrors(main: ConfigDocument): string[] {
  const entries = (field: string): [string, string][] => {
    const value = at(main, "machine", field);
    return isObject(value) ? Object.entries(value).map(([key, entry]) => [key, textOf(entry)]) : [];
  };
  const errors: string[] = [];
  for (const [key, value] of entries("nodeLabels")) {
    if (!isQualifiedName(key) || !labelValue.test(value))
      errors.push(`machine.nodeLabels: ${key.slice(0, 128)} is not a valid label`);
  }
  for (const [key] of entries("nodeAnnotations")) {
    if (!isQualifiedName(key))
      errors.push(`machine.nodeAnnotations: ${key.slice(0, 128)} is not a valid key`);
  }
  for (const [key, taint] of entries("nodeTaints")) {
    const [value = "", effect] = taint.includes(":") ? taint.split(":") : [taint, undefined];
    const effectKnown =
      effect === undefined || ["NoSchedule", "PreferNoSchedule", "NoExecute"].includes(effect);
    const plain = ["NoSchedule", "PreferNoSchedule", "NoExecute"].includes(value);
    if (!isQualifiedName(key) || !(plain || (labelValue.test(value) && effectKnown))) {
      errors.push(`machine.nodeTaints: ${key.slice(0, 128)} is not a valid taint`);
    }
  }
  return errors;
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

function kindOf(document: ConfigDocument) {
  const kind = document["kind"];
  return typeof kind === "string" && Object.hasOwn(documentKinds, kind) ? documentKinds[kind] : undefined;
}

/** Errors of all other documents. */
export function documentErrors(context: RuleContext): string[] {
  const errors: string[] = [];
  for (const document of context.documents) {
    if (isMainDocument(document)) continue;
    const kind = String(document["kind"]);
    if (kindOf(document)?.named && textOf(document["name"]) === "") errors.push(`${kind}: name is required`);
  }
  errors.push(...hostnameErrors(context), ...volumeErrors(context));
  return errors;
}

function hostnameErrors({ documents }: RuleContext): string[] {
  const [document] = documentsOfKind(documents, "HostnameConfig");
  if (!document) return [];
  const errors: string[] = [];
  const hostname = textOf(document["hostname"]);
  const auto = textOf(document["auto"]);
  if (!hostname && !auto) errors.push("HostnameConfig: either auto or hostname is required");
  if (hostname && auto && auto !== "off") errors.push("HostnameConfig: auto and hostname exclude each other");
  if (hostname) {
    const first = hostname.split(".")[0] ?? "";
    if (hostname.length > 253) errors.push("HostnameConfig: hostname is longer than 253 characters");
    if (first.length < 1 || first.length > 63) {
      errors.push("HostnameConfig: the first label of hostname must have 1 to 63 characters");
    }
  }
  const main = mainDocumentOf(documents);
  if (textOf(at(main, "machine", "network", "hostname"))) {
    errors.push("HostnameConfig conflicts with machine.network.hostname");
  }
  if (at(main, "machine", "features", "stableHostname") === true) {
    errors.push("HostnameConfig conflicts with machine.features.stableHostname");
  }
  return errors;
}

function volumeErrors({ documents }: RuleContext): string[] {
  const errors: string[] = [];
  for (const document of documentsOfKind(documents, "VolumeConfig")) {
    const name = textOf(document["name"]);
    if (name && !["STATE", "EPHEMERAL", "IMAGECACHE"].includes(name)) {
      errors.push("VolumeConfig: name must be STATE, EPHEMERAL or IMAGECACHE");
    }
  }
  for (const { name, keys } of readMachineConfig(documents).volumes) {
    const place = `encryption of ${name}`;
    if (keys.length === 0) errors.push(`${place}: at least one key is required`);
    if (new Set(keys.map(({ slot }) => slot)).size !== keys.length)
      errors.push(`${place}: a slot is there twice`);
    if (keys.some(({ kind }) => kind === "")) errors.push(`${place}: a key states no method`);
    if (keys.some(({ kind, endpoint }) => kind === "kms" && !endpoint))
      errors.push(`${place}: kms needs an endpoint`);
  }
  return errors;
}
