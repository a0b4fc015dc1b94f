/**
 * The client configuration of `talosctl`: contexts with endpoints, CA and client certificate. Made
 * from a secrets bundle whenever it is needed, with a certificate of its own; nothing needs storing.
 */
import { at, CodedError, isObject, stringAt, type Edges } from "@kontinuum/std";
import { stringify } from "yaml";
import type { AdminCredentials } from "../client/credentials.ts";
import { issueAdminCertificate } from "../pki/certificates.ts";
import { parseCertificate, parsePrivateKey } from "../pki/pem.ts";
import type { SecretsBundle } from "../pki/secrets-bundle.ts";
import { parseYamlStream } from "./config-document.ts";
import { base64Pem } from "./machine-defaults.ts";

/** Fresh admin credentials of a cluster for `connectTalos`, valid a year unless said otherwise. */
export async function adminCredentials(options: {
  readonly bundle: SecretsBundle;
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly validityMs?: number;
}): Promise<AdminCredentials> {
  const ca = options.bundle.certs.os;
  const { crt, key } = await issueAdminCertificate({
    ca,
    edges: options.edges,
    ...(options.validityMs === undefined ? {} : { validityMs: options.validityMs }),
  });
  return { kind: "admin", ca: ca.crt, cert: crt, key };
}

/** A talosconfig with one context, named after the cluster, and a fresh admin certificate. */
export async function generateTalosconfig(options: {
  readonly bundle: SecretsBundle;
  readonly clusterName: string;
  /** Addresses or names of control-plane members. */
  readonly endpoints: readonly string[];
  /** Nodes `talosctl` acts on by default. */
  readonly nodes?: readonly string[];
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly validityMs?: number;
}): Promise<string> {
  const { ca, cert, key } = await adminCredentials(options);
  const context = {
    endpoints: [...options.endpoints],
    ...(options.nodes ? { nodes: [...options.nodes] } : {}),
    ca: base64Pem(ca),
    crt: base64Pem(cert),
    key: base64Pem(key),
  };
  return stringify(
    { context: options.clusterName, contexts: { [options.clusterName]: context } },
    { indent: 4, lineWidth: 0 },
  );
}

/** One context of a talosconfig. */
export interface TalosContext {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly nodes: readonly string[];
  readonly credentials: AdminCredentials;
}

/** The named context of a talosconfig, or its current one. Fails with `invalid_argument`. */
export function parseTalosconfig(text: string, name?: string): TalosContext {
  const [config] = parseYamlStream(text, "the talosconfig");
  const wanted = name ?? stringAt(config, "context");
  const context = wanted === undefined ? undefined : at(config, "contexts", wanted);
  if (wanted === undefined || !isObject(context)) {
    throw new CodedError(
      "invalid_argument",
      `the talosconfig has no context ${JSON.stringify(wanted ?? "")}`,
    );
  }
  const pem = (key: string): string => {
    const value = stringAt(context, key);
    if (!value) {
      throw new CodedError(
        "invalid_argument",
        `context ${JSON.stringify(wanted)} of the talosconfig lacks ${key}`,
      );
    }
    return Buffer.from(value, "base64").toString("utf8");
  };
  const credentials: AdminCredentials = { kind: "admin", ca: pem("ca"), cert: pem("crt"), key: pem("key") };
  parseCertificate(credentials.ca, "the talosconfig's CA");
  parseCertificate(credentials.cert, "the talosconfig's client certificate");
  parsePrivateKey(credentials.key, "the talosconfig's client key");
  return {
    name: wanted,
    endpoints: textsAt(context, "endpoints"),
    nodes: textsAt(context, "nodes"),
    credentials,
  };
}

function textsAt(value: unknown, key: string): string[] {
  const found = at(value, key);
  return Array.isArray(found) ? found.filter((entry) => typeof entry === "string") : [];
}
