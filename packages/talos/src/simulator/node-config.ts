/**
 * The active machine configuration of a node: its facts, and the few things derived from them.
 *
 * The text has been validated before; what is missing here is empty, never an error.
 */
import net from "node:net";
import { at, isObject } from "@kontinuum/std";
import { parseConfigDocuments, type ConfigDocument } from "../config/config-document.ts";
import {
  documentsOfKind,
  mainDocumentOf,
  readMachineConfig,
  textOf,
  type MachineConfigFacts,
} from "../config/machine-config-facts.ts";
import type { CertificateAndKey } from "../pki/certificates.ts";

/** Role of a configured machine. */
export type NodeRole = "controlplane" | "worker";

/** See the module's comment. */
export interface NodeConfig {
  /** The text it was read from. */
  readonly text: string;
  readonly documents: readonly ConfigDocument[];
  readonly facts: MachineConfigFacts;
  readonly role: NodeRole;
  /** `key` is empty on a worker. */
  readonly osCa: CertificateAndKey;
  readonly kubernetesCa: CertificateAndKey;
  /** Without leading `v`; empty when the kubelet image names none. */
  readonly kubernetesVersion: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/** The configuration of a text, or `undefined` when it has no main document (the node stays in maintenance). */
export function readNodeConfig(text: string): NodeConfig | undefined {
  const documents = parseConfigDocuments(text);
  const main = mainDocumentOf(documents);
  if (!main) return undefined;
  const facts = readMachineConfig(documents);
  const none = { crt: "", key: "" };
  return {
    text,
    documents,
    facts,
    role: facts.controlPlane ? "controlplane" : "worker",
    osCa: facts.osCa ?? none,
    kubernetesCa: facts.kubernetesCa ?? none,
    kubernetesVersion: /:v(\d+\.\d+\.\d+[^@]*)/.exec(facts.images.kubelet)?.[1] ?? "",
    nodeLabels: {
      ...labels(at(main, "machine", "nodeLabels")),
      ...labels(documentsOfKind(documents, "KubeNodeConfig")[0]?.["labels"]),
    },
  };
}

/** Host of an endpoint URL, without the brackets of IPv6. */
export function endpointHost(endpoint: string): string {
  return (URL.parse(endpoint)?.hostname ?? "").replace(/^\[|\]$/g, "");
}

/** A node name Kubernetes accepts. */
export function nodeNameOf(hostname: string): string {
  return hostname.toLowerCase().replace(/[^a-z0-9.-]/g, "-");
}

/** What a machine without a configured name calls itself. */
export function stableHostname(uuid: string): string {
  const hex = uuid.replaceAll("-", "");
  return `talos-${hex.slice(0, 3)}-${hex.slice(-3)}`;
}

/** Whether a text is an IP literal. */
export function isAddress(text: string): boolean {
  return net.isIP(text) !== 0;
}

function labels(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, textOf(text)]));
}
