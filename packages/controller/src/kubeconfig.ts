/**
 * Reading a kubeconfig as data.
 *
 * A kubeconfig can name programs to run, files to read and proxies to trust. Coming from a machine or a
 * cluster it is somebody else's text, so only server, CA, client certificate and token are taken, all of
 * them inline; anything else that would change whom we trust or what we run is refused by name.
 *
 * Source: Kubernetes documentation, kubeconfig (v1).
 */
import { at, CodedError, isObject, stringAt, type Edges } from "@kontinuum/std";
import { parseDocument } from "yaml";
import { fetchTransport, type ClosableTransport } from "./fetch-transport.ts";
import { limits } from "./limits.ts";

/** What is taken from a kubeconfig. PEM, decoded. */
export interface Kubeconfig {
  readonly server: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
  /** Only with `allowInsecure`. */
  readonly insecure: boolean;
}

/** Options of {@link readKubeconfig}. */
export interface KubeconfigOptions {
  /** Default: `current-context`. */
  readonly context?: string;
  /** Accept plain HTTP and `insecure-skip-tls-verify`. Default false. */
  readonly allowInsecure?: boolean;
}

const refusedOfCluster = ["certificate-authority", "proxy-url", "tls-server-name"] as const;
const refusedOfUser = [
  "exec",
  "auth-provider",
  "client-certificate",
  "client-key",
  "tokenFile",
  "username",
  "password",
  "as",
  "as-uid",
  "as-groups",
  "as-user-extra",
] as const;

/** Reads one context. Fails with `invalid_argument` (unreadable) or `permission_denied` (refused field). */
export function readKubeconfig(text: string, options: KubeconfigOptions = {}): Kubeconfig {
  const config = parseConfig(text);
  const name = options.context ?? stringAt(config, "current-context") ?? "";
  const context = named(config, "contexts", name, "context");
  const cluster = named(config, "clusters", stringAt(context, "cluster") ?? "", "cluster");
  const user = named(config, "users", stringAt(context, "user") ?? "", "user");
  refuse(cluster, refusedOfCluster);
  refuse(user, refusedOfUser);
  const insecure = at(cluster, "insecure-skip-tls-verify") === true;
  const server = URL.parse(stringAt(cluster, "server") ?? "");
  if (!server) throw invalid("its server is not a URL");
  if (insecure || server.protocol !== "https:") {
    if (options.allowInsecure !== true)
      throw refused(insecure ? "insecure-skip-tls-verify" : "a server without TLS");
  }
  const ca = pem(cluster, "certificate-authority-data");
  const cert = pem(user, "client-certificate-data");
  const key = pem(user, "client-key-data");
  const token = stringAt(user, "token");
  return {
    server: server.href.replace(/\/$/, ""),
    insecure,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(token === undefined ? {} : { token }),
  };
}

/** A transport to the server of a kubeconfig. */
export function kubeconfigTransport(
  kubeconfig: string | Kubeconfig,
  options: KubeconfigOptions & { readonly edges: Edges },
): ClosableTransport {
  const { server, ca, cert, key, token, insecure } =
    typeof kubeconfig === "string" ? readKubeconfig(kubeconfig, options) : kubeconfig;
  return fetchTransport({
    baseUrl: server,
    edges: options.edges,
    tls: {
      rejectUnauthorized: !insecure,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
    ...(token === undefined ? {} : { token }),
  });
}

function parseConfig(text: string): unknown {
  if (Buffer.byteLength(text) > limits.kubeconfigBytes) {
    throw invalid(`it is larger than ${limits.kubeconfigBytes} bytes`);
  }
  const document = parseDocument(text, { uniqueKeys: true, logLevel: "silent" });
  const problem = document.errors[0];
  if (problem) throw invalid(`it is not YAML: line ${problem.linePos?.[0].line ?? "unknown"}`);
  try {
    // No aliases at all: a kubeconfig needs none, and they are how a small text becomes a large one.
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    throw invalid("it uses YAML aliases");
  }
}

function named(config: unknown, list: string, name: string, kind: string): unknown {
  const entries = at(config, list);
  const found = Array.isArray(entries)
    ? entries.find((entry) => stringAt(entry, "name") === name)
    : undefined;
  const value = at(found, kind);
  if (!isObject(value)) throw invalid(`it has no ${kind} named ${JSON.stringify(name)}`);
  return value;
}

function refuse(section: unknown, fields: readonly string[]): void {
  for (const field of fields) {
    const value = at(section, field);
    if (value !== undefined && value !== null && value !== "") throw refused(field);
  }
}

function pem(section: unknown, field: string): string | undefined {
  const encoded = stringAt(section, field);
  if (!encoded) return undefined;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  if (!text.includes("-----BEGIN ")) throw invalid(`${field} is not base64 of PEM`);
  return text;
}

function invalid(why: string): CodedError {
  return new CodedError("invalid_argument", `the kubeconfig can't be used: ${why}`);
}

function refused(field: string): CodedError {
  return new CodedError(
    "permission_denied",
    `the kubeconfig is refused because of ${field}: only server, inline CA, inline client certificate and token are taken`,
  );
}
