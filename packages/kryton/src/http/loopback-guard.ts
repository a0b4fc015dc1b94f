/**
 * Without authentication, loopback is still not trusted: a web page open in the operator's browser can
 * reach it, directly (cross-site requests) or under a name of its own (DNS rebinding).
 *
 * So `Host` must name this machine, a request that changes something or upgrades must come from an
 * origin of this server when it says where it comes from, and a request that a browser sent must be JSON.
 */
import type { IncomingMessage } from "node:http";
import net from "node:net";
import { KrytonError } from "../model/errors.ts";

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"]);

/** Refuses with `FORBIDDEN` what a hostile page could have sent. `extraHosts` are names the operator allows. */
export function guardLoopback(incoming: IncomingMessage, extraHosts: readonly string[]): void {
  const host = hostName(incoming.headers.host);
  if (host === undefined || !(isLocal(host) || extraHosts.includes(host))) {
    throw refused("the Host header does not name this machine", "Use localhost, or turn authentication on.");
  }
  const { origin } = incoming.headers;
  const site = incoming.headers["sec-fetch-site"];
  const changing = !safeMethods.has(incoming.method ?? "GET") || incoming.headers.upgrade !== undefined;
  if (!changing) return;
  if (origin !== undefined) {
    const from = originHost(origin);
    if (from === undefined || from !== incoming.headers.host?.toLowerCase()) {
      throw refused("the request comes from another origin", "Call the API from its own address.");
    }
  }
  if (site === "cross-site" || site === "same-site") {
    throw refused("the request comes from another site", "Call the API from its own address.");
  }
  const fromBrowser = origin !== undefined || site !== undefined;
  const hasBody =
    incoming.headers["content-length"] !== undefined || incoming.headers["transfer-encoding"] !== undefined;
  const type = incoming.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
  if (
    fromBrowser &&
    type !== "application/json" &&
    (hasBody || type !== undefined) &&
    incoming.headers["content-length"] !== "0"
  ) {
    throw refused("a browser must send application/json", "Set Content-Type: application/json.");
  }
}

/** True for names and addresses of this machine itself. */
export function isLocal(host: string): boolean {
  return host === "localhost" || host === "::1" || (net.isIPv4(host) && host.startsWith("127."));
}

/** The name of a Host header, without port and brackets. */
export function hostName(host: string | undefined): string | undefined {
  if (host === undefined) return undefined;
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+))(?::\d+)?$/.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}

function originHost(origin: string): string | undefined {
  try {
    return new URL(origin).host.toLowerCase();
  } catch {
    return undefined;
  }
}

function refused(message: string, hint: string): KrytonError {
  return new KrytonError("FORBIDDEN", message, { hint });
}
