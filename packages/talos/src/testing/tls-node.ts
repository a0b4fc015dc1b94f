/**
 * For tests: a TLS listener on loopback that serves chosen methods of the generated services, in
 * maintenance mode or with client certificates. It has no state and no behaviour of its own.
 */
import http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import { generateAuthority, issueServerCertificate, type CertificateAndKey } from "../pki/certificates.ts";
import { openSslPem } from "../pki/pem.ts";

/** A running listener. */
export interface TlsNode {
  readonly port: number;
  /** Cuts every connection but keeps listening. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts a node. With `ca` it demands client certificates of that CA and is signed by it. */
export async function startTlsNode(options: {
  readonly routes: (router: ConnectRouter) => void;
  readonly ca?: CertificateAndKey;
  readonly names?: readonly string[];
  readonly port?: number;
}): Promise<TlsNode> {
  const edges = systemEdges();
  const ca = options.ca ?? (await generateAuthority({ algorithm: "ed25519", edges }));
  const { crt, key } = await issueServerCertificate({
    ca,
    edges,
    commonName: "maintenance-service.talos.dev",
    names: options.names ?? ["127.0.0.1", "::1", "localhost"],
  });
  const server = http2.createSecureServer(
    {
      cert: crt,
      key: openSslPem(key),
      ALPNProtocols: ["h2"],
      ...(options.ca ? { ca: options.ca.crt, requestCert: true, rejectUnauthorized: true } : {}),
    },
    connectNodeAdapter({ routes: options.routes }),
  );
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("sessionError", () => {});
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const cut = (): void => sockets.forEach((socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}
