/**
 * A transport over the network: HTTP/1.1 with keep-alive, TLS with a given CA and client certificate.
 *
 * Connections are opened through the injected network, so address rules and simulated faults apply to it.
 * Redirects are not followed and no environment variable (proxy, extra CA) is read: what is not given does
 * not exist.
 */
import { isIP, Socket } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { CodedError, messageOf, toCoded, type Edges } from "@kontinuum/std";
import type { Agent, buildConnector } from "undici";
import type { Transport, TransportRequest, TransportResponse } from "./transport.ts";

/** TLS towards the server, all PEM. */
export interface TlsOptions {
  /** What the server's certificate must chain to. Absent: the CAs Node trusts. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Default true. False is for explicit choices only: the peer is then not known. */
  readonly rejectUnauthorized?: boolean;
  /** Name to verify instead of the URL's host. */
  readonly serverName?: string;
}

/** Options of {@link fetchTransport}. */
export interface FetchTransportOptions {
  /** `http(s)://host[:port][/prefix]`, without user info. */
  readonly baseUrl: string;
  readonly edges: Edges;
  readonly tls?: TlsOptions;
  /** Bearer token; a function is asked for each request (rotation). */
  readonly token?: string | (() => string | Promise<string>);
  /** To connect, and to wait for the head of an answer, milliseconds. Default 10,000 and 60,000. */
  readonly connectTimeoutMs?: number;
  readonly headTimeoutMs?: number;
  /** Connections at once; every watch takes one. Default 256. */
  readonly connections?: number;
}

/** A transport that holds connections. */
export interface ClosableTransport extends Transport {
  /** Ends all connections; requests under way fail. */
  close(): Promise<void>;
}

/** See the module's comment. */
export function fetchTransport(options: FetchTransportOptions): ClosableTransport {
  const base = parseBase(options.baseUrl);
  let made: Promise<Agent> | undefined;
  let isClosed = false;
  const prefix = base.pathname.replace(/\/$/, "");
  const send = async (request: TransportRequest): Promise<TransportResponse> => {
    if (isClosed) throw new CodedError("unavailable", `the transport to ${base.host} was closed`);
    const token = typeof options.token === "function" ? await options.token() : options.token;
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    try {
      const agent = await (made ??= agentOf(base, options));
      const response = await agent.request({
        origin: base.origin,
        path: prefix + request.path,
        method: httpMethod(request.method),
        headers: { ...request.headers, ...headers },
        body: request.body ?? null,
        ...(request.signal ? { signal: request.signal } : {}),
      });
      return {
        status: response.statusCode,
        headers: flatten(response.headers),
        body: coded(response.body, request, base),
      };
    } catch (error) {
      throw failure(error, request, base);
    }
  };
  const close = async (): Promise<void> => {
    isClosed = true;
    await (await made)?.destroy();
  };
  return Object.assign(send, { close });
}

/** Loaded with the first request: a process that asks nobody does without the client's memory. */
async function agentOf(base: URL, options: FetchTransportOptions): Promise<Agent> {
  const { Agent } = await import("undici");
  return new Agent({
    connect: connector(base, options),
    connections: options.connections ?? 256,
    headersTimeout: options.headTimeoutMs ?? 60_000,
    bodyTimeout: 0,
    allowH2: false,
  });
}

function parseBase(text: string): URL {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new CodedError(
      "invalid_argument",
      "the server's URL must be http(s)://host[:port] without user info",
    );
  }
  return url;
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] as const;

function httpMethod(method: string): (typeof methods)[number] {
  const known = methods.find((candidate) => candidate === method);
  if (!known) throw new CodedError("invalid_argument", `unknown HTTP method ${JSON.stringify(method)}`);
  return known;
}

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}

async function* coded(
  body: AsyncIterable<Uint8Array>,
  request: TransportRequest,
  base: URL,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw failure(error, request, base);
  }
}

/** Names of the client's errors about time. */
const timeouts: ReadonlySet<string> = new Set(["HeadersTimeoutError", "ConnectTimeoutError"]);

function failure(cause: unknown, request: TransportRequest, base: URL): CodedError {
  if (cause instanceof CodedError) return cause;
  const what = `${request.method} ${base.host}`;
  if (request.signal?.aborted === true)
    return new CodedError("cancelled", `${what} was cancelled`, { cause });
  const inner = cause instanceof Error && cause.cause instanceof CodedError ? cause.cause : undefined;
  if (inner) return inner;
  if (cause instanceof Error && timeouts.has(cause.name)) {
    return new CodedError("deadline_exceeded", `${what} did not answer in time`, { cause });
  }
  return new CodedError("unavailable", `${what} failed: ${messageOf(cause)}`, { cause });
}

function connector(base: URL, options: FetchTransportOptions): buildConnector.connector {
  const host = base.hostname.replace(/^\[|\]$/g, "");
  const port = base.port === "" ? (base.protocol === "https:" ? 443 : 80) : Number(base.port);
  const timeoutMs = options.connectTimeoutMs ?? 10_000;
  return (_target, callback) => {
    const open = async (): Promise<Socket> => {
      const socket = await options.edges.network.dial({ host, port, timeoutMs });
      return base.protocol === "https:" ? secure(socket, host, options, timeoutMs) : asSocket(socket);
    };
    void settle(open(), callback);
  };
}

async function settle(opening: Promise<Socket>, callback: buildConnector.Callback): Promise<void> {
  let socket: Socket;
  try {
    socket = await opening;
  } catch (error) {
    callback(toCoded(error), null);
    return;
  }
  callback(null, socket);
}

function secure(
  socket: Duplex,
  host: string,
  options: FetchTransportOptions,
  timeoutMs: number,
): Promise<tls.TLSSocket> {
  const { ca, cert, key, rejectUnauthorized = true, serverName = host } = options.tls ?? {};
  return new Promise((resolve, reject) => {
    const secured = tls.connect({
      socket,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      rejectUnauthorized,
      ALPNProtocols: ["http/1.1"],
      // Server name indication takes no addresses; the certificate is verified for the address all the same.
      ...(isIP(serverName) ? { host: serverName } : { servername: serverName }),
      minVersion: "TLSv1.2",
    });
    const fail = (code: "unavailable" | "deadline_exceeded", why: string, cause?: unknown): void => {
      timer.clear();
      secured.on("error", () => {});
      secured.destroy();
      reject(new CodedError(code, `TLS with ${host} failed: ${why}`, { cause }));
    };
    const timer = options.edges.clock.timer(timeoutMs, () => fail("deadline_exceeded", "no answer in time"));
    const onError = (error: Error): void => fail("unavailable", error.message, error);
    secured.once("error", onError);
    secured.once("secureConnect", () => {
      timer.clear();
      secured.off("error", onError);
      resolve(secured);
    });
  });
}

/** The HTTP client needs a real socket; TLS makes one of any stream. */
function asSocket(stream: Duplex): Socket {
  if (stream instanceof Socket) return stream;
  stream.destroy();
  throw new CodedError("unsupported", "plain HTTP needs a TCP connection: use TLS over this network");
}
