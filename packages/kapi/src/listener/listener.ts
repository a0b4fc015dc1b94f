/**
 * One port for everything: HTTP/1.1, HTTP/2 with and without TLS, gRPC and upgrades.
 *
 * A plain TCP server accepts, the sniffer decides, and one of three servers that never listen themselves gets the
 * connection. All requests end in one handler. Whatever a socket does, the process lives.
 */
import http, { type IncomingMessage } from "node:http";
import http2, { type ServerHttp2Session } from "node:http2";
import net, { type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import { CodedError, messageOf, type Clock, type Log } from "@kontinuum/std";
import type { HttpResponse, ListenOptions } from "../contract.ts";
import { peerReader, type Peer } from "./peer.ts";
import { sniff } from "./sniffer.ts";

/** Connections at once. */
const maxConnections = 20_000;
/** An undecided connection is dropped after this long; headers must be complete within the next. */
const sniffTimeoutMs = 10_000;
const headersTimeoutMs = 32_000;
/** A request with its body must be there within this. */
const requestTimeoutMs = 120_000;
const idleTimeoutMs = 90_000;
/** Total size of a request's headers. */
const maxHeaderBytes = 1024 * 1024;
/** HTTP/2: streams of one connection; one Go process keeps all its watches on one. */
const maxStreams = 1000;
const streamWindow = 1024 * 1024;

/** What the listener hands requests to. */
export interface ListenerHandlers {
  request(request: IncomingMessage, response: HttpResponse, peer: Peer, secure: boolean): void;
  grpc: ((request: IncomingMessage, response: HttpResponse) => void) | undefined;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, peer: Peer, secure: boolean): void;
}

type TlsOptions = NonNullable<ListenOptions["tls"]>;

/** The listening port. */
export class Listener {
  readonly #options: ListenOptions;
  readonly #handlers: ListenerHandlers;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #server: net.Server;
  readonly #plain: http.Server;
  readonly #h2: http2.Http2Server;
  #secure: http2.Http2SecureServer | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  #requests = 0;
  #closing = false;
  #quiet: (() => void) | undefined;

  constructor(options: ListenOptions, handlers: ListenerHandlers, clock: Clock, log: Log) {
    this.#options = options;
    this.#handlers = handlers;
    this.#clock = clock;
    this.#log = log;
    this.#server = net.createServer({ noDelay: true });
    this.#server.maxConnections = maxConnections;
    this.#server.on("connection", (socket) => this.#accept(socket));
    this.#plain = http.createServer({ maxHeaderSize: maxHeaderBytes });
    this.#prepareH1(this.#plain);
    this.#plain.on("request", (request, response) => this.#request(request, asResponse(response), {}, false));
    this.#plain.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head, {}, false));
    this.#h2 = http2.createServer({ settings: h2Settings, maxSendHeaderBlockLength: maxHeaderBytes });
    this.#prepareH2(this.#h2);
    this.#h2.on("request", (request, response) =>
      this.#request(asIncoming(request), asResponse(response), {}, false),
    );
    if (options.tls) this.#secure = this.#secureServer(options.tls);
  }

  /** Binds. Fails with `unavailable` when the address can't be had. */
  start(): Promise<void> {
    const { host = "127.0.0.1", port } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once("error", (cause: NodeJS.ErrnoException) => {
        const why =
          cause.code === "EADDRINUSE"
            ? "the port is in use; stop the program that has it, or choose another port (0: any free one)"
            : cause.message;
        reject(new CodedError("unavailable", `cannot listen on ${host}:${port}: ${why}`, { cause }));
      });
      this.#server.listen(port, host, () => {
        this.#server.removeAllListeners("error");
        this.#server.on("error", (error) => this.#log.warn("listener", { reason: error.message }));
        resolve();
      });
    });
  }

  /** The bound port. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** New connections get this certificate from now on. Fails when the server has no TLS or the pair does not fit. */
  useCertificate({ cert, key }: Pick<TlsOptions, "cert" | "key">): void {
    if (!this.#secure) throw new CodedError("failed_precondition", "the server does not serve TLS");
    this.#secure.setSecureContext(contextOf({ ...this.#options.tls, cert, key }));
  }

  /** Stops accepting and tells HTTP/2 clients to go elsewhere; running answers go on. */
  drain(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#server.close();
    for (const session of this.#sessions) session.close();
    this.#plain.closeIdleConnections();
  }

  /** Waits until no request runs, at most `deadlineMs`, then destroys what is left. */
  async close(deadlineMs: number): Promise<void> {
    this.drain();
    if (this.#requests > 0) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.timer(deadlineMs, resolve);
        this.#quiet = () => {
          timer.clear();
          resolve();
        };
      });
    }
    // Answers were handed to the kernel or are given up: let what is written go out before cutting.
    await new Promise((resolve) => setImmediate(resolve));
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroySoon();
    this.#plain.close(() => {});
    this.#plain.closeAllConnections();
    this.#h2.close(() => {});
    this.#secure?.close(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(socket: Socket): void {
    if (this.#closing) return void socket.destroy();
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    sniff(socket, this.#clock, sniffTimeoutMs, (protocol) => {
      // Whoever takes the socket sets its own error listener; this one outlives all of them.
      socket.on("error", () => {});
      if (protocol === "tls") {
        if (this.#secure) this.#secure.emit("connection", socket);
        else socket.destroy();
      } else if (this.#secure && this.#options.tls?.alsoPlain !== true) {
        socket.end("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
      } else if (protocol === "h2") this.#h2.emit("connection", socket);
      else {
        this.#plain.emit("connection", socket);
        // Unlike the other two, this server listens for data instead of taking the connection's handle.
        socket.resume();
      }
    });
  }

  #secureServer(tls: TlsOptions): http2.Http2SecureServer {
    const authorities = authoritiesOf(tls);
    const server = http2.createSecureServer({
      allowHTTP1: true,
      ALPNProtocols: ["h2", "http/1.1"],
      ...contextOf(tls),
      ...(authorities.length > 0 ? { requestCert: true, rejectUnauthorized: false } : {}),
      settings: h2Settings,
      maxSendHeaderBlockLength: maxHeaderBytes,
      handshakeTimeout: sniffTimeoutMs,
    });
    const peerOf = peerReader({ client: tls.clientCa, requestHeader: tls.requestHeaderCa });
    this.#prepareH2(server);
    server.on("tlsClientError", (error) =>
      this.#log.debug("TLS handshake failed", { reason: messageOf(error) }),
    );
    server.on("secureConnection", (socket: TLSSocket) => socket.on("error", () => {}));
    server.on("request", (request, response) => {
      const socket = request.httpVersionMajor >= 2 ? request.stream.session?.socket : request.socket;
      const peer = authorities.length > 0 && isTls(socket) ? peerOf(socket) : {};
      this.#request(asIncoming(request), asResponse(response), peer, true);
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const peer = authorities.length > 0 && isTls(socket) ? peerOf(socket) : {};
      this.#upgrade(request, socket, head, peer, true);
    });
    return server;
  }

  #prepareH1(server: http.Server): void {
    server.headersTimeout = headersTimeoutMs;
    server.requestTimeout = requestTimeoutMs;
    server.keepAliveTimeout = idleTimeoutMs;
    server.maxRequestsPerSocket = 0;
    server.on("clientError", (_error, socket) => {
      if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
      else socket.destroy();
    });
    server.on("error", (error) => this.#log.debug("HTTP/1.1 server", { reason: error.message }));
    // The server never listens itself; this starts its watch over connections that never finish their headers.
    server.emit("listening");
  }

  #prepareH2(server: http2.Http2Server | http2.Http2SecureServer): void {
    server.on("session", (session: ServerHttp2Session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
      session.on("error", () => {});
      session.setTimeout(0);
      if (this.#closing) session.close();
    });
    server.on("sessionError", (error: Error) => this.#log.debug("HTTP/2 session", { reason: error.message }));
    server.on("stream", (stream: http2.ServerHttp2Stream) => stream.on("error", () => {}));
    server.on("error", (error: Error) => this.#log.debug("HTTP/2 server", { reason: error.message }));
    server.on("unknownProtocol", (socket: Socket) => socket.destroy());
  }

  #request(request: IncomingMessage, response: HttpResponse, peer: Peer, secure: boolean): void {
    this.#requests++;
    request.on("error", () => {});
    response.on("error", () => {});
    response.on("close", () => {
      this.#requests--;
      if (this.#requests === 0) this.#quiet?.();
    });
    if (this.#closing && request.httpVersionMajor < 2) response.setHeader("connection", "close");
    const grpc = (request.headers["content-type"] ?? "").startsWith("application/grpc");
    if (grpc && this.#handlers.grpc) return this.#handlers.grpc(request, response);
    this.#handlers.request(request, response, peer, secure);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, peer: Peer, secure: boolean): void {
    socket.on("error", () => {});
    if (this.#closing) return void socket.destroy();
    this.#handlers.upgrade(request, socket, head, peer, secure);
  }
}

/** Whoever may sign a peer's certificate. */
const authoritiesOf = (tls: TlsOptions): string[] =>
  [tls.clientCa, tls.requestHeaderCa].filter((pem) => pem !== undefined);

function contextOf(tls: TlsOptions): SecureContextOptions {
  const ca = authoritiesOf(tls);
  return { minVersion: "TLSv1.2", cert: tls.cert, key: tls.key, ...(ca.length > 0 ? { ca } : {}) };
}

const h2Settings = { maxConcurrentStreams: maxStreams, initialWindowSize: streamWindow };

function isTls(socket: unknown): socket is TLSSocket {
  // HTTP/2 hands out a proxy of its socket that does not answer `in`.
  return typeof (socket as Partial<TLSSocket> | undefined)?.getPeerX509Certificate === "function";
}

/** HTTP/2's compatibility request has all that is used of an incoming message. */
function asIncoming(request: http2.Http2ServerRequest | IncomingMessage): IncomingMessage {
  return request as unknown as IncomingMessage;
}

function asResponse(response: http2.Http2ServerResponse | http.ServerResponse): HttpResponse {
  return response as unknown as HttpResponse;
}
