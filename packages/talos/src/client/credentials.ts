/**
 * Who we are to a node and how we know it: without identity in maintenance mode, with an admin
 * certificate once it is configured.
 *
 * In maintenance mode a certificate proves nothing (the node makes its own CA at every boot), so the
 * only protection is to pin the public key that was seen at discovery; a changed key ends the
 * connection before a byte of a request is sent.
 */
import net from "node:net";
import type { ConnectionOptions } from "node:tls";
import { openSslPem } from "../pki/pem.ts";

/** How to dial a node that has no configuration yet. */
export interface MaintenanceCredentials {
  readonly kind: "maintenance";
  /** Base64 SHA-256 of the certificate's public key seen before; any other key is refused. */
  readonly fingerprint?: string;
}

/** How to dial a configured node. All values are PEM; Talos' `ED25519 PRIVATE KEY` label is accepted. */
export interface AdminCredentials {
  readonly kind: "admin";
  /** The cluster's OS CA: one or more certificates. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Either way of dialling. */
export type TalosCredentials = MaintenanceCredentials | AdminCredentials;

/** TLS options for one dial. */
export function tlsOptionsOf(credentials: TalosCredentials, host: string): ConnectionOptions {
  const common: ConnectionOptions = {
    host,
    ...(net.isIP(host) ? {} : { servername: host }),
  };
  if (credentials.kind === "maintenance") {
    return { ...common, rejectUnauthorized: false, checkServerIdentity: () => undefined };
  }
  return {
    ...common,
    ca: credentials.ca,
    cert: credentials.cert,
    key: openSslPem(credentials.key),
    rejectUnauthorized: true,
  };
}
