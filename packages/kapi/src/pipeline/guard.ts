/**
 * The guard for servers without authentication: a web page open in somebody's browser must not reach the API.
 *
 * While everybody may do everything, the Host header must name this machine (DNS rebinding), and what browsers send
 * across origins is refused (CSRF): an Origin that is not this very server, another port of this machine included; a
 * fetch that the browser calls cross-site or same-site (Fetch Metadata, W3C); a form's content type. Clients that are no
 * browsers send neither header.
 */
import { isIP } from "node:net";
import type { RequestContext } from "./context.ts";
import { badRequest, StatusError } from "../status/status.ts";
import { parseMediaType } from "../wire/media-type.ts";
import { header, type WireRequest } from "../wire/request.ts";

/** The host name of a Host header or origin, without port and brackets, lower case. */
function hostName(value: string): string {
  const host = value.toLowerCase();
  if (host.startsWith("[")) return host.slice(1, Math.max(1, host.indexOf("]")));
  return host.replace(/:\d+$/, "");
}

/** The host, with its port, that a request was sent to. */
function authorityOf(request: WireRequest): string {
  return header(request, ":authority") ?? header(request, "host") ?? "";
}

/** An origin in its one spelling: default ports left out. `undefined` for an opaque one ("null") and what is none. */
function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

/** Whether a page of `origin` came from this very server: scheme, host and port. */
function isSameOrigin(origin: string, request: WireRequest): boolean {
  const own = originOf(`${request.secure ? "https" : "http"}://${authorityOf(request)}`);
  return own !== undefined && originOf(origin) === own;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"]);
const structured = /^application\/(json|yaml|vnd\.kubernetes\.protobuf|([a-z-]+\+(json|yaml))|grpc.*)$/;

/** Makes the guard. `allowedHosts` are accepted besides loopback. Refuses with 403. */
export function hostGuard(allowedHosts: readonly string[]): (context: RequestContext) => void {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  const known = (host: string): boolean => isLoopback(host) || allowed.has(host);
  return (context) => {
    if (context.inProcess) return;
    const { request } = context;
    // Whoever allowed further hosts has said that this server is for others than this machine.
    if (allowed.size === 0 && !isLoopback(request.address.replace(/^::ffff:/, ""))) {
      throw new StatusError(
        403,
        "Forbidden",
        "forbidden: while authentication is off this server answers its own machine only",
        {},
      );
    }
    const host = hostName(authorityOf(request));
    if (!known(host)) {
      throw new StatusError(
        403,
        "Forbidden",
        `forbidden: host ${JSON.stringify(host.slice(0, 253))} is not this server; add it to the allowed hosts, or turn authentication on`,
        {},
      );
    }
    const unsafe = !safeMethods.has(request.method) || header(request, "upgrade") !== undefined;
    const origin = header(request, "origin");
    const site = header(request, "sec-fetch-site");
    const isForeign =
      (origin !== undefined && !isSameOrigin(origin, request)) ||
      (site !== undefined && site !== "same-origin" && site !== "none");
    if (unsafe && isForeign) {
      throw new StatusError(
        403,
        "Forbidden",
        "forbidden: requests from other web sites are refused while authentication is off",
        {},
      );
    }
    const fromBrowser = origin !== undefined || site !== undefined;
    if (unsafe && fromBrowser && !safeMethods.has(request.method) && request.method !== "DELETE") {
      const { type } = parseMediaType(header(request, "content-type") ?? "");
      if (!structured.test(type)) throw badRequest("requests of browsers need a JSON content type");
    }
  };
}
