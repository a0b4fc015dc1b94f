/**
 * trustd's port on a control-plane node: TLS with the cluster's CA, no client certificate.
 */
import http2, { type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { CodedError } from "@kontinuum/std";
import type { CertificateAndKey } from "../pki/certificates.ts";
import { openSslPem } from "../pki/pem.ts";

/** Options of a {@link TrustdListener}. */
export interface TrustdListenerOptions {
  readonly address: string;
  readonly port: number;
  readonly onRequest: (request: Http2ServerRequest, response: Http2ServerResponse) => void;
}

/** See the module's comment. */
export class TrustdListener {
  readonly #options: TrustdListenerOptions;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  #server: http2.Http2SecureServer | undefined;

  constructor(options: TrustdListenerOptions) {
    this.#options = options;
  }

  async open(certificate: () => Promise<CertificateAndKey>): Promise<void> {
    if (this.#server) return;
    const { crt, key } = await certificate();
    const { address, port, onRequest } = this.#options;
    const server = http2.createSecureServer(
      { cert: crt, key: openSslPem(key), minVersion: "TLSv1.2", handshakeTimeout: 10_000 },
      onRequest,
    );
    server.on("session", (session) => {
      this.#sessions.add(session);
      session.once("close", () => this.#sessions.delete(session));
      session.on("error", () => {});
    });
    for (const event of ["tlsClientError", "sessionError"]) server.on(event, () => {});
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) =>
        reject(
          new CodedError("unavailable", `cannot listen on ${address}:${port}: ${cause.message}`, { cause }),
        ),
      );
      server.listen({ host: address, port }, resolve);
    });
    server.on("error", () => {});
    this.#server = server;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const session of this.#sessions) session.destroy();
    if (server) await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}
