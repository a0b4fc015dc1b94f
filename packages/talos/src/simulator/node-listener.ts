/**
 * The Talos API port of one node: a TCP listener whose TLS changes with the node's life.
 *
 * Maintenance mode shows a certificate nobody can verify and asks for none; a configured node demands a
 * client certificate of its cluster. The TLS side of each mode is made when the first connection needs
 * it: a rack of hundreds of nodes that nobody has dialled costs hundreds of idle sockets and nothing more.
 */
import { constants } from "node:crypto";
import http2, { type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import net, { type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { CodedError, type Edges } from "@kontinuum/std";
import type { CertificateAndKey } from "../pki/certificates.ts";
import { openSslPem } from "../pki/pem.ts";
import type { NodeFaults } from "./faults.ts";
import { roles } from "./role.ts";

/** What the port does. */
export type ListenerMode =
  | { readonly kind: "maintenance"; readonly certificate: () => Promise<CertificateAndKey> }
  | {
      readonly kind: "normal";
      readonly certificate: () => Promise<CertificateAndKey>;
      /** Whose client certificates are accepted, PEM. */
      readonly clientCas: readonly string[];
    };

/** Who is calling. */
export interface Peer {
  readonly roles: readonly string[];
  readonly isMaintenance: boolean;
}

/** Options of a {@link NodeListener}. */
export interface NodeListenerOptions {
  readonly address: string;
  readonly port: number;
  readonly edges: Edges;
  readonly faults: () => NodeFaults;
  readonly onRequest: (request: Http2ServerRequest, response: Http2ServerResponse, peer: Peer) => void;
}

interface Endpoint {
  readonly server: http2.Http2SecureServer;
  readonly sessions: Set<http2.ServerHttp2Session>;
  /** Its mode is over: a handshake that ends only now comes too late. */
  isRetired: boolean;
}

/** OID of extended key usage clientAuth. */
const clientAuth = "1.3.6.1.5.5.7.3.2";
/** How long calls under way may go on when a mode ends, milliseconds (Talos: at most 10 s). */
const graceMs = 10_000;
/** Who has not finished the TLS handshake by then never will, milliseconds. */
const handshakeMs = 10_000;
/** Connections at once per node: more than any client opens, less than would hurt the host. */
const connectionLimit = 1024;

/** See the module's comment. */
export class NodeListener {
  readonly #options: NodeListenerOptions;
  readonly #sockets = new Set<Socket>();
  #tcp: net.Server | undefined;
  #mode: ListenerMode | undefined;
  #endpoint: Promise<Endpoint> | undefined;

  constructor(options: NodeListenerOptions) {
    this.#options = options;
  }

  /** The port in use; 0 while closed. */
  get port(): number {
    const address = this.#tcp?.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Listens in a mode. In another mode already: calls under way may finish, new connections get the new one. */
  async open(mode: ListenerMode): Promise<void> {
    this.#retire(graceMs);
    this.#mode = mode;
    if (this.#tcp) return;
    const { address, port } = this.#options;
    const tcp = net.createServer({ noDelay: true }, (socket) => void this.#accept(socket));
    tcp.maxConnections = connectionLimit;
    await new Promise<void>((resolve, reject) => {
      tcp.once("error", (cause) =>
        reject(
          new CodedError("unavailable", `cannot listen on ${address}:${port}: ${cause.message}`, { cause }),
        ),
      );
      tcp.listen({ host: address, port }, resolve);
    });
    tcp.on("error", () => {});
    this.#tcp = tcp;
  }

  /** Refuses connections from now on; calls under way may finish within `waitMs`. */
  pause(waitMs: number = graceMs): void {
    this.#retire(waitMs);
    this.#stopListening();
  }

  /** Refuses connections and ends those there are, at once. */
  cut(): void {
    this.#retire(0);
    this.#stopListening();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** The port is free at once; connections that exist are not waited for. */
  #stopListening(): void {
    this.#mode = undefined;
    const tcp = this.#tcp;
    this.#tcp = undefined;
    tcp?.close();
  }

  #retire(waitMs: number): void {
    const endpoint = this.#endpoint;
    this.#endpoint = undefined;
    void endpoint?.then((retired) => {
      retired.isRetired = true;
      const { sessions } = retired;
      for (const session of sessions) session.close();
      const end = (): void => {
        for (const session of sessions) session.destroy();
      };
      if (waitMs === 0) end();
      else this.#options.edges.clock.timer(waitMs, end);
    }, ignore);
  }

  async #accept(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", ignore);
    const { connections, handshakeDelayMs } = this.#options.faults();
    if (connections === "refuse") return void socket.resetAndDestroy();
    if (connections === "blackhole") return void socket.pause();
    if (connections === "cut") return void socket.once("data", () => socket.destroy());
    if (handshakeDelayMs) await this.#options.edges.clock.sleep(handshakeDelayMs);
    const mode = this.#mode;
    if (!mode || socket.destroyed) return void socket.destroy();
    try {
      this.#endpoint ??= this.#makeEndpoint(mode);
      (await this.#endpoint).server.emit("connection", socket);
    } catch {
      socket.destroy();
    }
  }

  async #makeEndpoint(mode: ListenerMode): Promise<Endpoint> {
    const { crt, key } = await mode.certificate();
    const isNormal = mode.kind === "normal";
    const sessions = new Set<http2.ServerHttp2Session>();
    const server = http2.createSecureServer({
      cert: crt,
      key: openSslPem(key),
      minVersion: "TLSv1.2",
      secureOptions: constants.SSL_OP_NO_TICKET,
      handshakeTimeout: handshakeMs,
      requestCert: isNormal,
      rejectUnauthorized: isNormal,
      ...(isNormal ? { ca: [...mode.clientCas] } : {}),
      allowHTTP1: false,
    });
    const endpoint: Endpoint = { server, sessions, isRetired: false };
    server.on("session", (session) => {
      const peer = this.#peerOf(session.socket, isNormal);
      if (!peer || endpoint.isRetired) return session.destroy();
      sessions.add(session);
      peers.set(session, peer);
      session.once("close", () => sessions.delete(session));
      session.on("error", ignore);
    });
    server.on("request", (request, response) => {
      const session = request.stream.session;
      const peer = session && peers.get(session);
      if (peer) this.#options.onRequest(request, response, peer);
      else request.stream.close(http2.constants.NGHTTP2_CANCEL);
    });
    for (const event of ["tlsClientError", "sessionError", "error"]) server.on(event, ignore);
    return endpoint;
  }

  /** `undefined`: the certificate's usage is more than clientAuth, which Talos refuses. */
  #peerOf(socket: Duplex | undefined, isNormal: boolean): Peer | undefined {
    if (!isNormal) return { roles: [roles.reader], isMaintenance: true };
    if (!(socket instanceof TLSSocket)) return undefined;
    const usages = socket.getPeerX509Certificate()?.keyUsage;
    if (usages?.length !== 1 || usages[0] !== clientAuth) return undefined;
    const organizations: string | string[] | undefined = socket.getPeerCertificate().subject.O;
    return { roles: [organizations ?? []].flat(), isMaintenance: false };
  }
}

const peers = new WeakMap<http2.Http2Session, Peer>();

function ignore(): void {}
