/**
 * The etcd3 gRPC face over any store: what etcd's clients, etcdctl and Kubernetes' storage layer speak.
 *
 * `etcdServices` mounts it into an existing connect router (one port with other services);
 * `serveEtcd` gives it a listener of its own.
 */
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { CodedError } from "@kontinuum/std";
import type { Store } from "../contract.ts";
import { maxRequestBytes } from "../engine/request-check.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import type { EtcdAuthorizer } from "./access.ts";
import { EtcdFace } from "./call.ts";
import { kvService } from "./kv-service.ts";
import { leaseService } from "./lease-service.ts";
import { authService, clusterService, maintenanceService } from "./maintenance-service.ts";
import { grpcHandler } from "./grpc-handler.ts";
import { watchService } from "./watch-service.ts";

/** Bytes of one request message, as etcd: its request limit and half a MiB for what surrounds it. */
const maxMessageBytes = maxRequestBytes + 512 * 1024;

/** Options of the face. */
export interface EtcdFaceOptions {
  /** Identifies the caller of every call. Absent: every caller has full access. */
  readonly authorize?: EtcdAuthorizer;
  /** What the member list names as client URLs. Default: none. */
  readonly clientUrls?: readonly string[];
}

/** Routes of the face, for `grpcHandler(routes)` or a connect router that has other services too. */
export function etcdServices(store: Store, options: EtcdFaceOptions = {}): (router: ConnectRouter) => void {
  const face = new EtcdFace(store, options.authorize);
  const limits = { readMaxBytes: maxMessageBytes };
  return (router) => {
    router
      .service(rpc.KV, kvService(face), limits)
      .service(rpc.Watch, watchService(face), limits)
      .service(rpc.Lease, leaseService(face), limits)
      .service(rpc.Cluster, clusterService(face, options.clientUrls ?? []), limits)
      .service(rpc.Maintenance, maintenanceService(face), limits)
      .service(rpc.Auth, authService(), limits);
  };
}

/** Where and how to listen. */
export interface ServeEtcdOptions extends EtcdFaceOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 (default) picks a free port. */
  readonly port?: number;
  /** A Unix socket instead of host and port. */
  readonly socketPath?: string;
  /** PEM; without it the listener speaks plain HTTP/2. `ca` makes client certificates mandatory. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
}

/** A running listener. */
export interface EtcdServer {
  /** `http://127.0.0.1:2379`, `https://…` or `unix:///path`. */
  readonly url: string;
  /** The port, 0 for a Unix socket. */
  readonly port: number;
  /** Ends streams and connections. The store stays open. */
  close(): Promise<void>;
}

/** Serves the face on a listener of its own. Fails with `failed_precondition` when the address cannot be used. */
export async function serveEtcd(store: Store, options: ServeEtcdOptions = {}): Promise<EtcdServer> {
  const { host = "127.0.0.1", port = 0, socketPath, tls } = options;
  const clientUrls = [...(options.clientUrls ?? [])];
  const handler = grpcHandler(etcdServices(store, { ...options, clientUrls }));
  const settings = { settings: { maxConcurrentStreams: 10_000, initialWindowSize: 1024 * 1024 } };
  const server = tls
    ? http2.createSecureServer(
        {
          ...settings,
          cert: tls.cert,
          key: tls.key,
          ...(tls.ca === undefined ? {} : { ca: tls.ca, requestCert: true, rejectUnauthorized: true }),
        },
        handler,
      )
    : http2.createServer(settings, handler);
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session: http2.ServerHttp2Session) => {
    sessions.add(session);
    session.on("error", () => session.destroy());
    session.on("close", () => sessions.delete(session));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new CodedError(
          "failed_precondition",
          `cannot listen on ${socketPath ?? `${host}:${port}`}: ${cause.message}`,
          {
            cause,
          },
        ),
      ),
    );
    if (socketPath === undefined) server.listen(port, host, resolve);
    else server.listen(socketPath, resolve);
  });
  const address = server.address();
  const bound = address !== null && typeof address === "object" ? address.port : 0;
  const url =
    socketPath === undefined
      ? `${tls ? "https" : "http"}://${urlHost(address, host)}:${bound}`
      : `unix://${socketPath}`;
  if (clientUrls.length === 0) clientUrls.push(url);
  return {
    url,
    port: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
}

function urlHost(address: AddressInfo | string | null, fallback: string): string {
  const host = address !== null && typeof address === "object" ? address.address : fallback;
  return host.includes(":") ? `[${host}]` : host;
}
