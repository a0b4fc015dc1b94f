/**
 * A gRPC connection to one of several etcd endpoints: TLS, credentials, rotation.
 *
 * One HTTP/2 connection at a time. When an endpoint fails the next one is used; who retries what is
 * decided by the caller, because only it knows whether a repeated call is harmless.
 */
import type http2 from "node:http2";
import net from "node:net";
import {
  Code,
  ConnectError,
  createClient,
  type Client,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { CodedError } from "@kontinuum/std";
import * as rpc from "../../gen/etcd/etcdserverpb/rpc_pb.ts";
import { reasonOf, storeClosed } from "../../faults.ts";
import { fromWire } from "../../etcd/status-text.ts";
import { directTransport } from "./direct-transport.ts";

/** Longest time a call may take, milliseconds. */
export const callTimeoutMs = 10_000;
/** Longest time to open a connection, milliseconds. */
const connectTimeoutMs = 5_000;
/** How often a quiet connection is probed, and how long the answer may take, milliseconds. */
const pingIntervalMs = 10_000;
/**
 * Bytes of one call's answer, and of one stream, that may be under way unread. A connection takes many times as much, so that a few
 * watchers who do not read cannot hold up the others.
 */
const windowBytes = { calls: 4 * 1024 * 1024, streams: 256 * 1024 } as const;
/** Bytes of one answer. */
const maxAnswerBytes = 256 * 1024 * 1024;

/** TLS settings, all PEM. */
export interface EtcdTls {
  /** Certificates to trust instead of the system's. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** `false` accepts any certificate: only by explicit choice. */
  readonly rejectUnauthorized?: boolean;
  /** Name to ask for and to check, when it differs from the endpoint's host. */
  readonly servername?: string;
}

/** Where a remote store is and how to speak to it. */
export interface EtcdTarget {
  /** `host:port` each, or `unix:///path`. Tried in turn. */
  readonly endpoints: readonly string[];
  /** Absent: plain HTTP/2. */
  readonly tls?: EtcdTls;
  /** User of an etcd with authentication. */
  readonly credentials?: { readonly name: string; readonly password: string };
  /** Metadata of every call, asked for each time: short-lived tokens. */
  readonly headers?: () => Promise<Readonly<Record<string, string>>>;
}

/** The clients of one endpoint. */
export interface Clients {
  readonly kv: Client<typeof rpc.KV>;
  readonly watch: Client<typeof rpc.Watch>;
  readonly lease: Client<typeof rpc.Lease>;
  readonly maintenance: Client<typeof rpc.Maintenance>;
  /** The same service for its long stream. */
  readonly snapshots: Client<typeof rpc.Maintenance>;
  readonly auth: Client<typeof rpc.Auth>;
}

/**
 * The connections to one endpoint: calls have one of their own, because all streams of a connection share one window for what
 * was sent and not read yet: watchers that wait for a call's answer must not be able to hold it up.
 */
interface Link {
  readonly calls: Http2SessionManager;
  readonly streams: Http2SessionManager;
  readonly clients: Clients;
  /** Calls under way. */
  pending: number;
}

/**
 * Ends a connection. Whoever still waits on it is told that it is gone: left to itself, the library says "cancelled", and
 * nobody cancelled anything.
 */
function cut(manager: Http2SessionManager): void {
  manager.abort(new ConnectError("the connection was given up", Code.Unavailable));
}

/** The connection of one remote store. */
export class Channel {
  readonly #target: EtcdTarget;
  #index = 0;
  #link: Link | undefined;
  /** Given up, but calls of others still wait on them: each at most its own limit. */
  readonly #leaving = new Set<Link>();
  #token: string | undefined;
  #closed = false;

  constructor(target: EtcdTarget) {
    if (target.endpoints.length === 0)
      throw new CodedError("invalid_argument", "an etcd store needs at least one endpoint: host:port");
    this.#target = target;
  }

  /** Runs one call. Failures are coded; a lost endpoint is left for the next one. */
  async call<T>(work: (clients: Clients) => Promise<T>): Promise<T> {
    const link = this.#open();
    link.pending++;
    try {
      return await this.#authenticated(link, work);
    } catch (error) {
      if (this.#closed) throw storeClosed();
      const coded = fromWire(error);
      if (reasonOf(coded) === "lost") this.#rotate(link);
      throw coded;
    } finally {
      link.pending--;
      if (this.#leaving.has(link)) this.#leave(link);
    }
  }

  /** The clients for a stream that the caller watches over itself; tells when the endpoint failed. */
  async stream(): Promise<{
    readonly clients: Clients;
    readonly failed: () => void;
    readonly renew: () => void;
  }> {
    const link = this.#open();
    if (this.#target.credentials) await this.#signIn(link);
    return {
      clients: link.clients,
      failed: () => this.#rotate(link),
      renew: () => (this.#token = undefined),
    };
  }

  close(): void {
    this.#closed = true;
    for (const link of [...this.#leaving, ...(this.#link ? [this.#link] : [])]) {
      cut(link.streams);
      cut(link.calls);
    }
    this.#leaving.clear();
    this.#link = undefined;
  }

  #open(): Link {
    if (this.#closed) throw storeClosed();
    this.#link ??= this.#dial();
    return this.#link;
  }

  /** The next calls go to the next endpoint. */
  #rotate(link: Link): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    this.#index = (this.#index + 1) % this.#target.endpoints.length;
    // Streams end with it, so that nobody is left hanging on a dead endpoint: watches go on elsewhere.
    cut(link.streams);
    this.#leave(link);
  }

  /** What one caller met is not what the others will: their calls are left to end by themselves. */
  #leave(link: Link): void {
    this.#leaving.add(link);
    if (link.pending > 0) return;
    this.#leaving.delete(link);
    cut(link.calls);
  }

  #dial(): Link {
    const { tls } = this.#target;
    const endpoint = this.#target.endpoints[this.#index] ?? "";
    const socketPath = endpoint.startsWith("unix://") ? endpoint.slice("unix://".length) : undefined;
    const baseUrl = `${tls ? "https" : "http"}://${socketPath === undefined ? endpoint : "localhost"}`;
    const nodeOptions: http2.SecureClientSessionOptions =
      socketPath === undefined ? { ...tls } : { createConnection: () => net.connect(socketPath) };
    const connect = (initialWindowSize: number): Http2SessionManager =>
      new Http2SessionManager(
        baseUrl,
        { pingIntervalMs, pingTimeoutMs: pingIntervalMs, connectTimeoutMs },
        { ...nodeOptions, settings: { initialWindowSize } },
      );
    const transport = (sessionManager: Http2SessionManager): Transport =>
      directTransport({
        manager: sessionManager,
        streams: createGrpcTransport({
          baseUrl,
          sessionManager,
          interceptors: [this.#withHeaders],
          acceptCompression: [],
          readMaxBytes: maxAnswerBytes,
        }),
        headers: () => this.#metadata(),
        maxBytes: maxAnswerBytes,
      });
    const [calls, streams] = [connect(windowBytes.calls), connect(windowBytes.streams)];
    const [forCalls, forStreams] = [transport(calls), transport(streams)];
    return {
      calls,
      streams,
      pending: 0,
      clients: {
        kv: createClient(rpc.KV, forCalls),
        watch: createClient(rpc.Watch, forStreams),
        lease: createClient(rpc.Lease, forCalls),
        maintenance: createClient(rpc.Maintenance, forCalls),
        snapshots: createClient(rpc.Maintenance, forStreams),
        auth: createClient(rpc.Auth, forCalls),
      },
    };
  }

  readonly #withHeaders: Interceptor = (next) => async (request) => {
    for (const [name, value] of Object.entries(await this.#metadata())) request.header.set(name, value);
    return next(request);
  };

  /** Metadata of every call. */
  async #metadata(): Promise<Readonly<Record<string, string>>> {
    const token = this.#token === undefined ? {} : { token: this.#token };
    return { ...(await this.#target.headers?.()), ...token };
  }

  async #authenticated<T>(link: Link, work: (clients: Clients) => Promise<T>): Promise<T> {
    if (!this.#target.credentials) return work(link.clients);
    const fresh = await this.#signIn(link);
    try {
      return await work(link.clients);
    } catch (error) {
      // A token expires; a new one is asked for once.
      if (fresh || fromWire(error).code !== "unauthenticated") throw error;
      this.#token = undefined;
      await this.#signIn(link);
      return work(link.clients);
    }
  }

  async #signIn(link: Link): Promise<boolean> {
    const { credentials } = this.#target;
    if (!credentials || this.#token !== undefined) return false;
    const answer = await link.clients.auth.authenticate(credentials, { timeoutMs: callTimeoutMs });
    this.#token = answer.token;
    return true;
  }
}
