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

/** POSIX tar. */
const headerBytes = 512;

/**
 * A gzipped tar with one file, `kubeconfig`, holding a fresh admin certificate. Like Talos' own it ends with
 * the file's last byte: no padding, no end-of-archive blocks.
 */
export async function packKubeconfig(node: SimulatedNode): Promise<Uint8Array> {
  const config = configOf(node);
  const { crt, key } = await issueKubernetesAdminCertificate({ ca: config.kubernetesCa, edges: node.edges });
  const access = { server: config.facts.endpoint, ca: config.kubernetesCa.crt, cert: crt, key };
  const file = Buffer.from(serializeKubeconfig(access, config.facts.clusterName));
  const header = tarHeader("kubeconfig", file.length, Math.floor(node.edges.clock.now() / 1000));
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

function tarHeader(name: string, size: number, mtime: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;
  header.write(name, 0);
  header.write(octal(0o600, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(size, 12), 124);
  header.write(octal(mtime, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write("0", 156);
  header.write("ustar\0" + "00", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
