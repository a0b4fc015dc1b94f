/**
 * What of the configuration the API server needs: where to listen, with which certificate, and whom to believe.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { ServerOptions } from "@kontinuum/kapi";
import { CodedError } from "@kontinuum/std";
import { adminAuthorizer } from "../auth/admin-authorizer.ts";
import type { HubAuthority } from "../authority/hub-authority.ts";
import type { Config } from "../config/config.ts";
import { systemNamespace } from "../kinds/index.ts";
import type { Console } from "./console.ts";
import { readPemFile } from "./pem-file.ts";

/**
 * Whose certificates whoever reaches this hub must trust: PEM. A file the operator names, else the hub's own authority;
 * empty: the system's authorities, or nobody was asked.
 */
export async function hubAuthorities(
  { grpc }: Config,
  authority: HubAuthority | undefined,
): Promise<() => string> {
  const named = await readPemFile("KONTINUUM_SERVER_GRPC_CA_FILE", grpc.caFile);
  return () => named || (authority?.bundle ?? "");
}

/** Options of the API server. Fails with `invalid_argument` for a file that can't be read. */
export async function serverOptions(
  { listen: { host, port }, tls, oidc }: Config,
  { authenticators }: Console,
  authority: HubAuthority | undefined,
): Promise<Pick<ServerOptions, "auth" | "listen" | "rootCa" | "systemNamespace">> {
  // With a certificate of its own the port still answers clear text: a proxy in front may speak that.
  const certificate = tls ? await readPair(tls) : authority && { ...authority.pair, alsoPlain: true };
  return {
    systemNamespace,
    ...(authority ? { rootCa: authority.bundle } : {}),
    listen: { host, port, ...(certificate ? { tls: certificate } : {}) },
    // No authenticator and no authorizer: the server takes everybody as anonymous and guards the Host header.
    auth: oidc
      ? { authenticators, authorizers: [adminAuthorizer(oidc.adminGroups)] }
      : { authenticators: [], authorizers: [] },
  };
}

/** The operator's certificate. Fails with `invalid_argument`, naming the variable, when the files are no pair. */
async function readPair({
  certFile,
  keyFile,
}: NonNullable<Config["tls"]>): Promise<{ cert: string; key: string }> {
  const cert = await readPemFile("KONTINUUM_SERVER_TLS_CERT_FILE", certFile);
  const key = await readPemFile("KONTINUUM_SERVER_TLS_KEY_FILE", keyFile);
  const certificate = parsed(() => new X509Certificate(cert));
  if (!certificate)
    throw refused(`KONTINUUM_SERVER_TLS_CERT_FILE names ${certFile}, which holds no certificate in PEM`);
  const privateKey = parsed(() => createPrivateKey(key));
  if (!privateKey)
    throw refused(
      `KONTINUUM_SERVER_TLS_KEY_FILE names ${keyFile}, which holds no unencrypted private key in PEM`,
    );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw refused(
      `KONTINUUM_SERVER_TLS_KEY_FILE names ${keyFile}, which is not the key of the certificate in ${certFile}`,
    );
  }
  return { cert, key };
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    // OpenSSL's text may quote the input.
    return undefined;
  }
}

const refused = (message: string): CodedError => new CodedError("invalid_argument", message);
