/**
 * The validation rules of the main document, one function a topic. Each tells what is wrong in a
 * sentence that names the place; none shows a value that could be a secret.
 */
import { at, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "./config-document.ts";
import {
  isFalse,
  isTrue,
  mainDocumentOf,
  objects,
  readMachineConfig,
  textOf,
  texts,
  type MachineConfigFacts,
} from "./machine-config-facts.ts";
import { interfaceErrors } from "./rules/device-rules.ts";
import { endpointProblem } from "./rules/endpoint.ts";
import { nodeMetadataErrors, protectedFieldErrors, talosRoles } from "./rules/kubernetes-rules.ts";
import { isOciSpecification } from "./rules/oci-specification.ts";
import { areSubnets, type RuleContext } from "./rules/rule.ts";

/** Bytes of KubeSpan's least MTU. */
const kubeSpanMtuMin = 1280;

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
    ...endpointErrors(main, context),
    ...caErrors(facts, main),
    ...installErrors(facts, main, context),
    ...networkErrors(facts, main, context),
    ...interfaceErrors(main),
    ...discoveryErrors(facts, main),
    ...manifestErrors(main),
    ...metadataErrors(main),
    ...protectedFieldErrors(at(main, "machine", "kubelet", "extraConfig"), "machine.kubelet.extraConfig"),
    ...loggingErrors(main),
    ...subnetErrors(facts, main),
    ...diskErrors(main),
    ...cloudProviderErrors(main),
    ...talosAccessErrors(facts, main),
  );
  if (!isOciSpecification(at(main, "machine", "baseRuntimeSpecOverrides")))
    errors.push("machine.baseRuntimeSpecOverrides is no OCI runtime specification");
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

function endpointErrors(main: ConfigDocument, { minor }: RuleContext): string[] {
  const errors: string[] = [];
  const endpoint = textOf(at(main, "cluster", "controlPlane", "endpoint"));
  const isGiven = isObject(at(main, "cluster", "controlPlane"));
  if (endpoint === "") {
    // From 1.14 on a document of its own names it.
    if (minor < 14 || isGiven) errors.push("cluster.controlPlane.endpoint is required");
    if (minor >= 14 && isObject(at(main, "cluster", "serviceAccount")))
      errors.push("cluster.serviceAccount needs cluster.controlPlane.endpoint");
  } else {
    const problem = endpointProblem(endpoint);
    if (problem !== undefined) errors.push(`cluster.controlPlane.endpoint ${problem}`);
  }
  const domain = textOf(at(main, "cluster", "network", "dnsDomain"));
  if (domain !== "" && !isDnsName(domain)) errors.push("cluster.network.dnsDomain is not a DNS name");
  return errors;
}

/** Labels of letters, digits, hyphens and underscores, joined by dots (Talos' idea of a domain). */
function isDnsName(name: string): boolean {
  const labels = name.replace(/[._]$/, "").split(".");
  return (
    name.length - labels.length + 1 <= 255 &&
    labels.every((label) => /^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$/.test(label))
  );
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
  const images = objects(at(install, "extensions")).map(({ image }) => textOf(image));
  if (new Set(images).size !== images.length)
    errors.push("machine.install.extensions: an image is there twice");
  const { mode, installed, minor } = context;
  if (mode !== "metal" || installed) return errors;
  if (!isObject(install)) {
    // From 1.14 on a machine may also be installed by a call, or by a document of its own.
    if (minor < 14) errors.push("machine.install is required in metal mode");
    return errors;
  }
  const selector = install["diskSelector"];
  if (!facts.install?.disk && !isObject(selector))
    errors.push("machine.install: either disk or diskSelector is required");
  if (isObject(selector)) {
    if (textOf(selector["name"])) errors.push("machine.install.diskSelector.name is not supported");
    const type = textOf(selector["type"]);
    if (type && !["ssd", "hdd", "nvme", "sd"].includes(type))
      errors.push("machine.install.diskSelector.type must be ssd, hdd, nvme or sd");
  }
  if (isTrue(install["grubUseUKICmdline"]) && texts(install["extraKernelArgs"]).length > 0)
    errors.push("machine.install: extraKernelArgs and grubUseUKICmdline exclude each other");
  return errors;
}

function networkErrors(facts: MachineConfigFacts, main: ConfigDocument, { minor }: RuleContext): string[] {
  const errors: string[] = [];
  // A worker installs no network plugin, so nobody looks at its choice.
  if (isObject(at(main, "cluster", "network", "cni")) && facts.controlPlane) errors.push(...cniErrors(main));
  const kubeSpan: unknown = at(main, "machine", "network", "kubespan");
  if (!isTrue(at(kubeSpan, "enabled"))) return errors;
  if (minor < 14) {
    if (!isTrue(at(main, "cluster", "discovery", "enabled")))
      errors.push("machine.network.kubespan needs cluster.discovery");
    if (!facts.clusterId) errors.push("machine.network.kubespan needs cluster.id");
    if (!facts.clusterSecret) errors.push("machine.network.kubespan needs cluster.secret");
  }
  const mtu: unknown = at(kubeSpan, "mtu");
  if (mtu !== undefined && mtu !== null && Number(mtu) < kubeSpanMtuMin)
    errors.push(`machine.network.kubespan.mtu must be at least ${kubeSpanMtuMin}`);
  if (!areSubnets(at(kubeSpan, "filters", "endpoints")))
    errors.push("machine.network.kubespan.filters.endpoints: an entry is no network");
  return errors;
}

function cniErrors(main: ConfigDocument): string[] {
  const place = "cluster.network.cni";
  const cni = textOf(at(main, "cluster", "network", "cni", "name"));
  const urls = texts(at(main, "cluster", "network", "cni", "urls"));
  const flannel: unknown = at(main, "cluster", "network", "cni", "flannel");
  if (!["flannel", "custom", "none"].includes(cni)) return [`${place}.name must be flannel, custom or none`];
  const errors: string[] = [];
  if (cni !== "custom" && urls.length > 0) errors.push(`${place}.urls are not allowed with ${cni}`);
  if (cni !== "flannel" && texts(at(flannel, "extraArgs")).length > 0)
    errors.push(`${place}.flannel.extraArgs are not allowed with ${cni}`);
  if (cni !== "flannel" && isTrue(at(flannel, "kubeNetworkPoliciesEnabled")))
    errors.push(`${place}.flannel.kubeNetworkPoliciesEnabled is not allowed with ${cni}`);
  if (cni === "custom" && urls.some((entry) => endpointProblem(entry) !== undefined))
    errors.push(`${place}.urls: an entry is no URL with a host`);
  return errors;
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

function metadataErrors(main: ConfigDocument): string[] {
  const names = { labels: "nodeLabels", annotations: "nodeAnnotations", taints: "nodeTaints" } as const;
  return nodeMetadataErrors(
    (field) => at(main, "machine", names[field]),
    (field) => `machine.${names[field]}`,
  );
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

function subnetErrors({ controlPlane }: MachineConfigFacts, main: ConfigDocument): string[] {
  const etcd: unknown = at(main, "cluster", "etcd");
  const subnet = textOf(at(etcd, "subnet"));
  const advertised = texts(at(etcd, "advertisedSubnets"));
  const lists: [string, unknown][] = [
    ["machine.kubelet.nodeIP.validSubnets", at(main, "machine", "kubelet", "nodeIP", "validSubnets")],
  ];
  // What a worker says of etcd is refused as a whole.
  if (controlPlane) {
    lists.push(
      ["cluster.etcd.advertisedSubnets", advertised],
      ["cluster.etcd.subnet", subnet === "" ? [] : [subnet]],
    );
    lists.push(["cluster.etcd.listenSubnets", at(etcd, "listenSubnets")]);
  }
  const errors = lists
    .filter(([, value]) => !areSubnets(value))
    .map(([path]) => `${path}: an entry is no network`);
  if (controlPlane && subnet !== "" && advertised.length > 0)
    errors.push("cluster.etcd: subnet and advertisedSubnets exclude each other");
  return errors;
}

/** Only the last partition may take the rest of a disk. */
function diskErrors(main: ConfigDocument): string[] {
  return objects(at(main, "machine", "disks")).flatMap((disk, index) => {
    const sizes = objects(disk["partitions"]).map(({ size }) => textOf(size));
    const early = sizes.slice(0, -1).some((size) => /^0*[a-z]*$/i.test(size));
    return early ? [`machine.disks.${index}: only the last partition may be without size`] : [];
  });
}

function cloudProviderErrors(main: ConfigDocument): string[] {
  const provider: unknown = at(main, "cluster", "externalCloudProvider");
  const manifests = texts(at(provider, "manifests"));
  if (manifests.length === 0) return [];
  if (!isTrue(at(provider, "enabled"))) return ["cluster.externalCloudProvider.manifests needs enabled"];
  return manifests.some((entry) => endpointProblem(entry) !== undefined)
    ? ["cluster.externalCloudProvider.manifests: an entry is no URL with a host"]
    : [];
}

function talosAccessErrors({ controlPlane }: MachineConfigFacts, main: ConfigDocument): string[] {
  const place = "machine.features.kubernetesTalosAPIAccess";
  const access: unknown = at(main, "machine", "features", "kubernetesTalosAPIAccess");
  if (!isTrue(at(access, "enabled"))) return [];
  const errors: string[] = [];
  if (!controlPlane) errors.push(`${place} is for control planes only`);
  if (texts(at(access, "allowedRoles")).some((role) => !talosRoles.has(role)))
    errors.push(`${place}.allowedRoles: an entry is no role of Talos`);
  return errors;
}
