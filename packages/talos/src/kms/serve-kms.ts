/**
 * A gRPC listener for the key management service.
 *
 * Nodes reach it as `https://…` (TLS verified against their trusted roots). Without a certificate it
 * serves plain HTTP/2 on loopback only, for development.
 */
import http2 from "node:http2";
import type net from "node:net";
import { createContextValues, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { CodedError } from "@kontinuum/std";
import ipaddr from "ipaddr.js";
import { openSslPem } from "../pki/pem.ts";
import { kmsPort } from "./kms-endpoint.ts";
import { callerAddress } from "./kms-service.ts";

/** Largest request body, in bytes: a UUID and 60 bytes. */
const requestBytesMax = 4 * 1024;
/** Most connections at once. */
const connectionsMax = 2_000;

/** Where to listen. */
export interface KmsServerOptions {
  /** From `kmsService` or `developmentKmsService`. */
  readonly service: (router: ConnectRouter) => void;
  /** IP address; default all when there is a certificate, else loopback. */
  readonly address?: string;
  /** Default {@link kmsPort}; 0 takes a free one. */
  readonly port?: number;
  /** PEM certificate chain and key. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** A running listener. */
export interface KmsServer {
  readonly port: number;
  /** Stops listening and ends every connection. */
  close(): Promise<void>;
}

/** Starts listening. Fails with `failed_precondition` for plain HTTP/2 beyond loopback. */
export async function serveKms(options: KmsServerOptions): Promise<KmsServer> {
  const address = options.address ?? (options.tls ? "::" : "127.0.0.1");
  if (!options.tls && !(ipaddr.isValid(address) && ipaddr.process(address).range() === "loopback")) {
    throw new CodedError(
      "failed_precondition",
      `the KMS listens on ${address} only with a certificate: without one keys would cross the network in clear`,
    );
  }
  const handler = connectNodeAdapter({
    routes: options.service,
    readMaxBytes: requestBytesMax,
    contextValues: (request) =>
      createContextValues().set(callerAddress, addressOf(request.socket.remoteAddress)),
  });
  const server = options.tls
    ? http2.createSecureServer(
        {
          cert: options.tls.cert,
          key: openSslPem(options.tls.key),
          ALPNProtocols: ["h2"],
          minVersion: "TLSv1.2",
        },
        handler,
      )
    : http2.createServer(handler);
  server.maxConnections = connectionsMax;
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  // A peer that breaks its connection is the peer's affair.
  server.on("sessionError", () => {});
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? kmsPort, address, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound ? bound.port : 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** An IPv4 address that came in through an IPv6 listener is still one. */
function addressOf(remote: string | undefined): string {
  return remote !== undefined && ipaddr.isValid(remote) ? ipaddr.process(remote).toString() : "";
}
