/**
 * What of the configuration the API server needs: where to listen, with which certificate, and whom to believe.
 */
import type { ServerOptions } from "@kontinuum/kapi";
import { adminAuthorizer } from "../auth/admin-authorizer.ts";
import type { Config } from "../config/config.ts";
import { systemNamespace } from "../kinds/index.ts";
import type { Console } from "./console.ts";
import { readPemFile } from "./pem-file.ts";

/** Options of the API server. Fails with `invalid_argument` for a file that can't be read. */
export async function serverOptions(
  { listen: { host, port }, tls, oidc }: Config,
  { authenticators }: Console,
): Promise<Pick<ServerOptions, "auth" | "listen" | "systemNamespace">> {
  const certificate = tls && {
    cert: await readPemFile("KONTINUUM_SERVER_TLS_CERT_FILE", tls.certFile),
    key: await readPemFile("KONTINUUM_SERVER_TLS_KEY_FILE", tls.keyFile),
  };
  return {
    systemNamespace,
    listen: { host, port, ...(certificate ? { tls: certificate } : {}) },
    // No authenticator and no authorizer: the server takes everybody as anonymous and guards the Host header.
    auth: oidc
      ? { authenticators, authorizers: [adminAuthorizer(oidc.adminGroups)] }
      : { authenticators: [], authorizers: [] },
  };
}
