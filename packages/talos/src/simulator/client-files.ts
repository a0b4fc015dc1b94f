/**
 * The files a control-plane node makes for its administrators: kubeconfig and talosconfig.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { stringify } from "yaml";
import { serializeKubeconfig } from "../config/kubeconfig.ts";
import { issueAdminCertificate, issueKubernetesAdminCertificate } from "../pki/certificates.ts";
import { unimplemented } from "./call-error.ts";
import type { NodeConfig } from "./node-config.ts";
import type { SimulatedNode } from "./node.ts";
import { tarHeader } from "./tar.ts";

/**
 * A gzipped tar with one file, `kubeconfig`, holding a fresh admin certificate. Like Talos' own it ends with
 * the file's last byte: no padding, no end-of-archive blocks.
 */
export async function packKubeconfig(node: SimulatedNode): Promise<Uint8Array> {
  const config = configOf(node);
  const { crt, key } = await issueKubernetesAdminCertificate({ ca: config.kubernetesCa, edges: node.edges });
  const access = { server: config.facts.endpoint, ca: config.kubernetesCa.crt, cert: crt, key };
  const file = Buffer.from(serializeKubeconfig(access, config.facts.clusterName));
  const header = tarHeader({
    name: "kubeconfig",
    content: file,
    modified: Math.floor(node.edges.clock.now() / 1000),
  });
  return promisify(gzip)(Buffer.concat([header, file]));
}

/** A talosconfig for these roles, in pieces and as a file. */
export async function generateTalosconfigFor(
  node: SimulatedNode,
  roles: readonly string[],
  lifetime: { readonly validityMs?: number },
): Promise<{ ca: Uint8Array; crt: Uint8Array; key: Uint8Array; talosconfig: Uint8Array }> {
  const config = configOf(node);
  const { crt, key } = await issueAdminCertificate({
    ca: config.osCa,
    edges: node.edges,
    ...(roles.length === 0 ? {} : { roles }),
    ...lifetime,
  });
  const [ca, certificate, privateKey] = [config.osCa.crt, crt, key].map((pem) => Buffer.from(pem));
  const context = {
    endpoints: [node.spec.address],
    ca: ca?.toString("base64"),
    crt: certificate?.toString("base64"),
    key: privateKey?.toString("base64"),
  };
  const name = config.facts.clusterName;
  const file = stringify({ context: name, contexts: { [name]: context } }, { lineWidth: 0 });
  return {
    ca: Buffer.from(config.osCa.crt),
    crt: Buffer.from(crt),
    key: Buffer.from(key),
    talosconfig: Buffer.from(file),
  };
}

function configOf(node: SimulatedNode): NodeConfig {
  if (!node.config) throw unimplemented("API is not implemented in maintenance mode");
  return node.config;
}
