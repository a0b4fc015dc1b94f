/**
 * The one client for calls to addresses that somebody configured: webhooks, outside systems, downloads.
 *
 * The address is checked when the connection is made, not when the name is read, so that a name which
 * resolves differently the second time gains nothing. Refused unless allowed: loopback, link-local (and
 * with it the metadata services of clouds), multicast, unspecified, and this process's own listeners.
 * Time and size are bounded. Redirects are followed only when asked for, only to https from https, and
 * credentials never cross to another host.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import net from "node:net";
import os from "node:os";
import type { Duplex, Readable } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import type { Clock } from "./clock.ts";
import { CodedError, messageOf } from "./errors.ts";
import type { Network } from "./net.ts";
import { http, loadHttps, loadTls } from "./node-http.ts";

const denied: readonly (readonly [string, number, "ipv4" | "ipv6"])[] = [
  ["0.0.0.0", 8, "ipv4"],
  ["127.0.0.0", 8, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  // Metadata services that do not live in the link-local range.
  ["100.100.100.200", 32, "ipv4"],
  ["168.63.129.16", 32, "ipv4"],
  ["192.0.0.0", 24, "ipv4"],
  ["224.0.0.0", 4, "ipv4"],
  ["240.0.0.0", 4, "ipv4"],
  ["::", 127, "ipv6"],
  ["fe80::", 10, "ipv6"],
  ["ff00::", 8, "ipv6"],
  ["fd00:ec2::254", 128, "ipv6"],
  ["64:ff9b::", 96, "ipv6"],
  ["2002::", 16, "ipv6"],
];

const special = new net.BlockList();
for (const [address, bits, family] of denied) special.addSubnet(address, bits, family);

/**
 * Whether nobody gets to `address` without being allowed: this machine, its link, metadata services, what is no single
 * machine, and IPv6 addresses in which an IPv4 address hides. What is no address counts as one.
 */
export function isSpecialAddress(address: string): boolean {
  const plain = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
  const version = net.isIP(plain);
  return version === 0 || special.check(plain, version === 4 ? "ipv4" : "ipv6");
}

/** `address:port` of a listener: its host, or every address of this machine when it is for all. */
export function listenerAddresses(host: string, port: number): readonly string[] {
  if (!["", "::", "0.0.0.0"].includes(host)) return [`${host}:${port}`];
  return Object.values(os.networkInterfaces()).flatMap((entries) =>
    (entries ?? []).map(({ address }) => `${address}:${port}`),
  );
}

/** Which addresses may be called although they are in a refused range. */
export interface OutboundPolicy {
  /** Addresses, CIDR ranges or host names. A name allows every address it resolves to. */
  readonly allow: readonly string[];
  /** `address:port` of listeners of this process, asked at each call. Refused unless allowed. */
  ownListeners?(): readonly string[];
}

/** Decides about addresses. */
export class AddressRules {
  readonly #allowed = new net.BlockList();
  readonly #names = new Set<string>();

  /** Fails with `invalid_argument` for an entry that is no address, range or name. */
  constructor(allow: readonly string[]) {
    for (const entry of allow) {
      const [address = "", bits] = entry.split("/", 2);
      const family = net.isIP(address);
      if (family === 0) {
        if (bits !== undefined || !/^[A-Za-z0-9._-]+$/.test(address)) {
          throw new CodedError(
            "invalid_argument",
            `${JSON.stringify(entry)} is no address, range or host name`,
          );
        }
        this.#names.add(address.toLowerCase());
        continue;
      }
      const prefix = bits === undefined ? (family === 4 ? 32 : 128) : Number(bits);
      if (!Number.isInteger(prefix) || prefix < 0 || prefix > (family === 4 ? 32 : 128)) {
        throw new CodedError("invalid_argument", `${JSON.stringify(entry)} is no address range`);
      }
      this.#allowed.addSubnet(address, prefix, family === 4 ? "ipv4" : "ipv6");
    }
  }

  /** Whether `address`, reached by the name `host`, may be called. */
  permits(host: string, address: string): boolean {
    if (this.#names.has(host.toLowerCase())) return true;
    return this.allows(host, address) || !isSpecialAddress(address);
  }

  /** Whether `address` was allowed explicitly. */
  allows(host: string, address: string): boolean {
    if (this.#names.has(host.toLowerCase())) return true;
    const plain = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
    return net.isIP(plain) !== 0 && this.#allowed.check(plain, net.isIPv4(plain) ? "ipv4" : "ipv6");
  }
}

/** How the other side of a TLS connection is checked, and what it is shown. */
export interface OutboundTls {
  /** PEM authorities; absent: the system's. */
  readonly ca?: string | undefined;
  /** Name or address the certificate must be for; default: the host of the call. */
  readonly serverName?: string | undefined;
  /** Accepts any certificate: only where somebody said so explicitly. */
  readonly insecure?: boolean | undefined;
  /** Client certificate, PEM. */
  readonly identity?: { readonly cert: string; readonly key: string } | undefined;
}

/** A call to make. */
export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Limit of the whole call, milliseconds. */
  readonly timeoutMs: number;
  /** Greatest size of the answer's body, bytes. */
  readonly maxBytes: number;
  /** Redirects to follow; 0 or absent: none, a redirect is then the answer. */
  readonly redirects?: number;
  /** Refuse everything but https, redirects included. */
  readonly httpsOnly?: boolean;
  readonly signal?: AbortSignal;
  /** Of https calls; it counts for redirects too. */
  readonly tls?: OutboundTls;
}

/** An answer. Its body is for the caller of this client alone: never hand it to somebody else. */
export interface OutboundAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** An answer whose body is still to come; unread bodies must be destroyed. */
export interface OutboundStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Where the answer came from, after redirects. */
  readonly url: string;
  readonly body: Readable;
}

const redirectCodes = new Set([301, 302, 303, 307, 308]);
const credentialHeaders = new Set(["authorization", "cookie", "proxy-authorization"]);

/** See the module comment. */
export class OutboundClient {
  readonly #network: Network;
  readonly #clock: Clock;
  readonly #rules: AddressRules;
  readonly #ownListeners: () => readonly string[];

  constructor(network: Network, clock: Clock, policy: OutboundPolicy) {
    this.#network = network;
    this.#clock = clock;
    this.#rules = new AddressRules(policy.allow);
    this.#ownListeners = () => policy.ownListeners?.() ?? [];
  }

  /** Makes a call and reads its body. Fails with `permission_denied` (address), `unavailable`, `deadline_exceeded`, `payload_too_large`. */
  async request(request: OutboundRequest): Promise<OutboundAnswer> {
    const limit = new AbortController();
    const timer = this.#clock.timer(request.timeoutMs, () => limit.abort());
    const signal = request.signal ? AbortSignal.any([request.signal, limit.signal]) : limit.signal;
    const place = placeOf(request.url);
    try {
      const { status, headers, body } = await this.stream({ ...request, signal });
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > request.maxBytes) {
          body.destroy();
          throw new CodedError(
            "payload_too_large",
            `${place} answered with more than ${request.maxBytes} bytes`,
          );
        }
        chunks.push(chunk);
      }
      return { status, headers, body: Buffer.concat(chunks) };
    } catch (error) {
      if (limit.signal.aborted) {
        throw new CodedError("deadline_exceeded", `${place} did not answer within ${request.timeoutMs} ms`);
      }
      if (request.signal?.aborted) throw new CodedError("cancelled", `the call to ${place} was cancelled`);
      if (error instanceof CodedError) throw error;
      throw new CodedError("unavailable", `${place} cannot be reached: ${messageOf(error)}`, {
        cause: error,
      });
    } finally {
      timer.clear();
    }
  }

  /** Makes a call and hands out its body as a stream; time is bounded by `signal` alone. */
  async stream(request: OutboundRequest): Promise<OutboundStream> {
    let url = parse(request.url, request.httpsOnly ?? false);
    let headers: Record<string, string> = { ...request.headers };
    let { method, body } = request;
    for (let left = request.redirects ?? 0; ; left--) {
      const answer = await this.#once(url, { ...request, method, headers, ...(body ? { body } : {}) });
      const status = answer.statusCode ?? 0;
      const location = answer.headers.location;
      if ((request.redirects ?? 0) === 0 || !redirectCodes.has(status) || location === undefined) {
        return { status, headers: answer.headers, url: url.href, body: answer };
      }
      answer.destroy();
      if (left <= 0) throw new CodedError("unavailable", `${placeOf(request.url)} redirects too often`);
      const next = parse(
        new URL(location, url).href,
        (request.httpsOnly ?? false) || url.protocol === "https:",
      );
      if (next.host !== url.host) {
        headers = Object.fromEntries(
          Object.entries(headers).filter(([name]) => !credentialHeaders.has(name.toLowerCase())),
        );
      }
      if (status === 303 || ((status === 301 || status === 302) && method === "POST")) {
        method = "GET";
        body = undefined;
      }
      url = next;
    }
  }

  /**
   * Opens a TLS connection, for protocols of its own. Fails with `permission_denied` (address), `unavailable`,
   * `deadline_exceeded`.
   */
  async connect(
    { host, port, ...how }: OutboundTls & { readonly host: string; readonly port: number },
    timeoutMs: number,
  ): Promise<Duplex> {
    const until = this.#clock.monotonic() + timeoutMs;
    const address = await this.#address(host, port);
    const socket = await this.#network.dial({ host: address, port, timeoutMs });
    const secure = loadTls().connect({ socket, ...tlsOptions(host, how) });
    return new Promise((resolve, reject) => {
      const fail = (error: CodedError): void => {
        timer.clear();
        secure.on("error", () => {});
        secure.destroy();
        reject(error);
      };
      const timer = this.#clock.timer(Math.max(1, until - this.#clock.monotonic()), () =>
        fail(new CodedError("deadline_exceeded", `${host} did not finish its TLS handshake in time`)),
      );
      const onError = (error: Error): void =>
        fail(new CodedError("unavailable", `cannot connect to ${host}: ${error.message}`, { cause: error }));
      secure.once("error", onError);
      secure.once("secureConnect", () => {
        timer.clear();
        secure.off("error", onError);
        resolve(secure);
      });
    });
  }

  async #once(url: URL, request: OutboundRequest): Promise<IncomingMessage> {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    const address = await this.#address(host, port);
    request.signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const transport = url.protocol === "https:" ? loadHttps() : http;
      const outgoing = transport.request(url, {
        method: request.method,
        agent: false,
        headers: {
          ...request.headers,
          ...(request.body ? { "content-length": String(request.body.length) } : {}),
        },
        // The checked address, and no second lookup that could give another one.
        lookup: (_host, options, callback) => {
          const family = net.isIPv4(address) ? 4 : 6;
          if (options.all) callback(null, [{ address, family }]);
          else callback(null, address, family);
        },
        ...(url.protocol === "https:" ? tlsOptions(host, request.tls ?? {}) : {}),
        ...(request.signal ? { signal: request.signal } : {}),
      });
      outgoing.once("response", resolve);
      outgoing.once("error", reject);
      outgoing.end(request.body);
    });
  }

  async #address(host: string, port: number): Promise<string> {
    const addresses = await this.#network.resolve(host);
    const refused = new CodedError(
      "permission_denied",
      `calls to ${host} are refused: it is an address of this machine, its link or a metadata service; allow it explicitly if it is meant`,
    );
    const own = new Set(this.#ownListeners());
    for (const address of addresses) {
      if (!this.#rules.permits(host, address)) continue;
      if (own.has(`${address}:${port}`) && !this.#rules.allows(host, address)) continue;
      return address;
    }
    throw refused;
  }
}

function tlsOptions(
  host: string,
  { ca, serverName = host, insecure = false, identity }: OutboundTls,
): ConnectionOptions {
  return {
    ...(net.isIP(serverName) ? {} : { servername: serverName }),
    ...(ca === undefined ? {} : { ca }),
    ...identity,
    minVersion: "TLSv1.2",
    rejectUnauthorized: !insecure,
    checkServerIdentity: (_host, certificate) => loadTls().checkServerIdentity(serverName, certificate),
  };
}

function parse(text: string, httpsOnly: boolean): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new CodedError("invalid_argument", "the address of a call is not a URL");
  }
  if (url.protocol !== "https:" && (httpsOnly || url.protocol !== "http:")) {
    throw new CodedError(
      "invalid_argument",
      `${placeOf(text)} must be ${httpsOnly ? "https" : "http or https"}`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new CodedError("invalid_argument", `${placeOf(text)} must not carry user info`);
  }
  return url;
}

/** Scheme, host and port of a URL: all that may stand in a message. */
export function placeOf(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return "the address";
  }
}
