/**
 * One HTTP/2 connection to one gRPC server, opened when first needed and again after it was lost.
 *
 * Every byte goes through the injected network. The peer's key is known, and compared with the
 * pinned one, before a request is written. Why a connection ended is kept for the error mapping:
 * TLS 1.3 tells a client about a missing certificate only after its handshake looked complete.
 */
import http2 from "node:http2";
import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Edges } from "@kontinuum/std";
import { fingerprintOf } from "./fingerprint.ts";
import { TalosError } from "./talos-error.ts";

/** Longest wait for a TCP connection and, again, for the TLS handshake, in milliseconds. */
const connectTimeoutMs = 10_000;
/** How long a silent connection stays before TCP probes it: a dead peer under a watch must be noticed. */
const tcpKeepAliveMs = 30_000;

/** How long the end of a connection is waited for when it may explain a failure, in milliseconds. */
const closingWaitMs = 1_000;

/** The server's side of a TLS connection. */
export interface TalosPeer {
  /** Base64 SHA-256 of its public key. Meaningful only in maintenance mode; it changes at every boot. */
  readonly fingerprint: string;
  /** Common name of its certificate, such as `maintenance-service.talos.dev`, or an empty text. */
  readonly commonName: string;
}

/** Where and as whom to connect. */
export interface SessionOptions {
  readonly address: string;
  readonly port: number;
  /** Left out: plain HTTP/2. */
  readonly tls?: tls.ConnectionOptions;
  /** Base64 SHA-256 of the public key the server must show. */
  readonly pinned?: string;
  readonly edges: Pick<Edges, "clock" | "network">;
}

/** A session manager for Connect's gRPC transport (its `sessionManager` option), over our own dialling. */
export class GrpcSession {
  readonly authority: string;
  readonly #options: SessionOptions;
  #opening: Promise<http2.ClientHttp2Session> | undefined;
  #session: http2.ClientHttp2Session | undefined;
  #last: http2.ClientHttp2Session | undefined;
  #lastClosed: Promise<unknown> = Promise.resolve();
  #handshaking: Duplex | undefined;
  #closed = false;
  #peer: TalosPeer | undefined;
  #failure: unknown;

  constructor(options: SessionOptions) {
    this.#options = options;
    const host = net.isIPv6(options.address) ? `[${options.address}]` : options.address;
    // URL drops what is default and lower-cases, as connect does when it compares authorities.
    this.authority = new URL(`${options.tls ? "https" : "http"}://${host}:${options.port}`).origin;
  }

  /** The node seen on the last connection. */
  get peer(): TalosPeer | undefined {
    return this.#peer;
  }

  /** Why the last connection ended, or `undefined`. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Opens a connection if there is none. */
  async connect(): Promise<void> {
    await this.#ready();
  }

  async request(
    method: string,
    path: string,
    headers: http2.OutgoingHttpHeaders,
    options: Omit<http2.ClientSessionRequestOptions, "signal">,
  ): Promise<http2.ClientHttp2Stream> {
    const session = await this.#ready();
    return session.request({ ...headers, ":method": method, ":path": path }, options);
  }

  notifyResponseByteRead(): void {}

  /**
   * Why a call that ended without a word ended: waits until the connection under it is wholly closed, one second at
   * most, and answers true; or answers false at once when the connection still stands.
   */
  async lost(): Promise<boolean> {
    const session = this.#last;
    if (!session || (!session.closed && !session.destroyed)) return false;
    if (this.#failure !== undefined) return true;
    const wait = new AbortController();
    const enough = this.#options.edges.clock.sleep(closingWaitMs, wait.signal).catch(() => {});
    await Promise.race([this.#lastClosed, enough]);
    wait.abort();
    return true;
  }

  /** Ends the connection and every call on it. */
  close(): void {
    this.#closed = true;
    this.#handshaking?.destroy();
    this.#session?.destroy();
    this.#session = undefined;
  }

  #ready(): Promise<http2.ClientHttp2Session> {
    if (this.#closed)
      return Promise.reject(new TalosError("cancelled", `${this.authority}: client is closed`));
    const open = this.#session;
    if (open && !open.closed && !open.destroyed) return Promise.resolve(open);
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #open(): Promise<http2.ClientHttp2Session> {
    this.#failure = undefined;
    const socket = await this.#socket();
    const session = http2.connect(this.authority, { createConnection: () => socket });
    session.on("error", (error) => (this.#failure = error));
    session.on("goaway", () => this.#forget(session));
    session.on("close", () => this.#forget(session));
    if (this.#closed) {
      session.destroy();
      throw new TalosError("cancelled", `${this.authority}: client is closed`);
    }
    this.#session = session;
    this.#last = session;
    // The alert that explains a lost connection may come after the calls on it have ended.
    this.#lastClosed = new Promise((resolve) => session.once("close", resolve));
    return session;
  }

  #forget(session: http2.ClientHttp2Session): void {
    if (this.#session === session) this.#session = undefined;
  }

  async #socket(): Promise<Duplex> {
    const { address, port, edges } = this.#options;
    const raw = await edges.network.dial({ host: address, port, timeoutMs: connectTimeoutMs });
    if (raw instanceof net.Socket) raw.setKeepAlive(true, tcpKeepAliveMs);
    const socket = this.#options.tls ? await this.#handshake(raw, this.#options.tls) : raw;
    // HTTP/2 has taken the socket over and leaves it open after a TLS alert; nobody else ends it.
    socket.on("error", (error) => {
      this.#failure = error;
      socket.destroy();
      raw.destroy();
    });
    return socket;
  }

  async #handshake(raw: Duplex, options: tls.ConnectionOptions): Promise<tls.TLSSocket> {
    const socket = tls.connect({ ...options, ALPNProtocols: ["h2"], minVersion: "TLSv1.2", socket: raw });
    this.#handshaking = socket;
    if (this.#closed) socket.destroy();
    try {
      await this.#secured(socket);
      this.#peer = this.#check(socket);
    } catch (error) {
      socket.on("error", () => {});
      socket.destroy();
      raw.destroy();
      throw error;
    } finally {
      this.#handshaking = undefined;
    }
    return socket;
  }

  #secured(socket: tls.TLSSocket): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (action: () => void): void => {
        timer.clear();
        socket.off("secureConnect", onSecure).off("error", onError).off("close", onClose);
        action();
      };
      const onSecure = (): void => settle(resolve);
      const onError = (error: Error): void => settle(() => reject(error));
      const onClose = (): void =>
        onError(new TalosError("unreachable", `${this.authority}: closed during the TLS handshake`));
      const timer = this.#options.edges.clock.timer(connectTimeoutMs, () =>
        onError(
          new TalosError("timeout", `${this.authority}: no TLS handshake within ${connectTimeoutMs} ms`),
        ),
      );
      socket.once("secureConnect", onSecure).once("error", onError).once("close", onClose);
    });
  }

  #check(socket: tls.TLSSocket): TalosPeer {
    const certificate = socket.getPeerX509Certificate();
    if (!certificate) throw new TalosError("protocol", `${this.authority} showed no certificate`);
    const fingerprint = fingerprintOf(certificate);
    const { pinned } = this.#options;
    if (pinned !== undefined && pinned !== fingerprint) {
      throw new TalosError(
        "identity_changed",
        `${this.authority} shows another key than at discovery: it was restarted or replaced; discover it again`,
      );
    }
    if (socket.alpnProtocol !== "h2") {
      throw new TalosError("protocol", `${this.authority} does not speak HTTP/2: it is no gRPC server`);
    }
    return { fingerprint, commonName: /(?:^|\n)CN=(.*)/.exec(certificate.subject ?? "")?.[1] ?? "" };
  }
}
