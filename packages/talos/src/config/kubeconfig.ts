/**
 * Admin kubeconfigs: minted from the cluster's CA, and read from a node.
 *
 * The minted one is the better of the two, because it rests on nothing but keys we hold. What a node
 * hands out is data: only server, CA and client certificate are taken, the server must be the
 * cluster's endpoint, and everything that could run a command or read a file is refused.
 */
import { at, CodedError, isObject, stringAt, type Edges } from "@kontinuum/std";
import { stringify } from "yaml";
import { issueKubernetesAdminCertificate } from "../pki/certificates.ts";
import { parseCertificate, parsePrivateKey } from "../pki/pem.ts";
import type { SecretsBundle } from "../pki/secrets-bundle.ts";
import { parseYamlStream } from "./config-document.ts";
import { base64Pem } from "./machine-defaults.ts";
import { parseEndpoint } from "./machine-config-options.ts";

/** What is needed to reach a cluster's API server as an administrator. PEM texts. */
export interface KubernetesAccess {
  readonly server: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A kubeconfig with a fresh admin certificate, valid a year unless `validityMs` says otherwise. */
export async function generateAdminKubeconfig(options: {
  readonly bundle: SecretsBundle;
  readonly endpoint: string;
  readonly clusterName: string;
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly validityMs?: number;
}): Promise<string> {
  parseEndpoint(options.endpoint);
  const ca = options.bundle.certs.k8s;
  const { crt, key } = await issueKubernetesAdminCertificate({
    ca,
    edges: options.edges,
    ...(options.validityMs === undefined ? {} : { validityMs: options.validityMs }),
  });
  return serializeKubeconfig({ server: options.endpoint, ca: ca.crt, cert: crt, key }, options.clusterName);
}

/** A kubeconfig in the layout a Talos node writes. */
export function serializeKubeconfig(access: KubernetesAccess, clusterName: string): string {
  const user = `admin@${clusterName}`;
  return stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: clusterName,
          cluster: { server: access.server, "certificate-authority-data": base64Pem(access.ca) },
        },
      ],
      users: [
        {
          name: user,
          user: {
            "client-certificate-data": base64Pem(access.cert),
            "client-key-data": base64Pem(access.key),
          },
        },
      ],
      contexts: [{ context: { cluster: clusterName, namespace: "default", user }, name: user }],
      "current-context": user,
    },
    { indent: 2, lineWidth: 0 },
  );
}

const clusterKeys = new Set(["server", "certificate-authority-data"]);
const userKeys = new Set(["client-certificate-data", "client-key-data"]);

/**
 * Reads a kubeconfig a node sent. Fails with `invalid_argument` when it names another server than
 * `endpoint`, or holds anything but server, CA and client certificate.
 */
export function parseNodeKubeconfig(text: string, options: { readonly endpoint: string }): KubernetesAccess {
  const [config, ...rest] = parseYamlStream(text, "the node's kubeconfig");
  if (rest.length > 0 || stringAt(config, "kind") !== "Config") throw refused("is not one kubeconfig");
  const name = stringAt(config, "current-context");
  const context = at(entryNamed(config, "contexts", name), "context");
  const cluster = at(entryNamed(config, "clusters", stringAt(context, "cluster")), "cluster");
  const user = at(entryNamed(config, "users", stringAt(context, "user")), "user");
  only(cluster, clusterKeys, "cluster");
  only(user, userKeys, "user");
  const server = stringAt(cluster, "server") ?? "";
  if (!sameEndpoint(server, options.endpoint)) {
    throw refused(`names the server ${JSON.stringify(server.slice(0, 256))}, not ${options.endpoint}`);
  }
  const ca = decoded(cluster, "certificate-authority-data");
  const cert = decoded(user, "client-certificate-data");
  const key = decoded(user, "client-key-data");
  parseCertificate(ca, "the node's kubeconfig's CA");
  parseCertificate(cert, "the node's kubeconfig's client certificate");
  parsePrivateKey(key, "the node's kubeconfig's client key");
  return { server: options.endpoint, ca, cert, key };
}

function entryNamed(config: unknown, list: string, name: string | undefined): unknown {
  const entries = at(config, list);
  const found = Array.isArray(entries)
    ? entries.find((entry) => name !== undefined && stringAt(entry, "name") === name)
    : undefined;
  if (!found) throw refused(`lacks the entry of ${list} its current context needs`);
  return found;
}

function only(value: unknown, allowed: ReadonlySet<string>, what: string): void {
  if (!isObject(value)) throw refused(`has no ${what}`);
  const extra = Object.keys(value).find((key) => !allowed.has(key));
  if (extra !== undefined)
    throw refused(`has ${JSON.stringify(extra.slice(0, 64))} in its ${what}, which is not taken from a node`);
}

function decoded(value: unknown, key: string): string {
  const text = stringAt(value, key);
  if (!text) throw refused(`lacks ${key}`);
  return Buffer.from(text, "base64").toString("utf8");
}

function sameEndpoint(a: string, b: string): boolean {
  try {
    return parseEndpoint(a).href === parseEndpoint(b).href;
  } catch {
    return false;
  }
}

function refused(why: string): CodedError {
  return new CodedError("invalid_argument", `the node's kubeconfig ${why}`);
}
