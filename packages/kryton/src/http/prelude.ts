/**
 * What happens to every request before it is routed, on the raw response so that streams and proxied
 * consoles get it too: request id, access log and metrics, CORS, security headers.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Edges } from "@kontinuum/std";
import type { Metrics } from "../metrics/metrics.ts";

const allowedHeaders = [
  "Authorization",
  "Content-Type",
  "Accept",
  "X-Request-ID",
  "X-Kryton-User",
  "X-Kryton-Role",
  "X-Kryton-Projects",
  "X-Kryton-Proxy-Secret",
  "Idempotency-Key",
  "Last-Event-ID",
].join(", ");

const securityHeaders: readonly (readonly [string, string])[] = [
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  ["Permissions-Policy", "camera=(), microphone=(), geolocation=()"],
];

const consolePolicy =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
  "connect-src 'self' ws: wss:; frame-ancestors 'self'; base-uri 'self'; form-action 'self'";
const pagePolicy =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; " +
  "img-src 'self' data:; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'";

/** What the prelude is made from. */
export interface PreludeOptions {
  readonly edges: Edges;
  readonly metrics: Metrics;
  /** Allowed origins; `*` allows all, without credentials. */
  readonly corsOrigins: readonly string[];
}

/** The path of a request, without its query. */
export function pathOf(incoming: IncomingMessage): string {
  return (incoming.url ?? "/").split("?", 1)[0] ?? "/";
}

/** The id of a request: the client's when it is harmless, else a new one. */
export function requestIdOf(incoming: IncomingMessage, edges: Edges): string {
  const given = incoming.headers["x-request-id"];
  return typeof given === "string" && /^[\x21-\x7e]{1,128}$/.test(given) ? given : edges.random.uuid();
}

/** Prepares a response. Returns its request id, or `undefined` when the request is answered already. */
export function prelude(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  options: PreludeOptions,
): string | undefined {
  const { edges, metrics } = options;
  const requestId = requestIdOf(incoming, edges);
  const path = pathOf(incoming);
  outgoing.setHeader("X-Request-ID", requestId);
  const startedAt = edges.clock.monotonic();
  const method = incoming.method ?? "GET";
  outgoing.once("close", () => {
    const durationMs = edges.clock.monotonic() - startedAt;
    const { statusCode: status } = outgoing;
    metrics.finished(method, path, status, durationMs);
    const fields = {
      method,
      path,
      status,
      duration_ms: Math.round(durationMs * 1000) / 1000,
      request_id: requestId,
    };
    if (status >= 500) edges.log.error("http request", fields);
    else edges.log.info("http request", fields);
  });
  if (cors(incoming, outgoing, options.corsOrigins) && method === "OPTIONS") {
    outgoing.writeHead(204).end();
    return undefined;
  }
  for (const [name, value] of securityHeaders) outgoing.setHeader(name, value);
  const console = isConsolePath(path);
  outgoing.setHeader("X-Frame-Options", console ? "SAMEORIGIN" : "DENY");
  outgoing.setHeader("Content-Security-Policy", console ? consolePolicy : pagePolicy);
  return requestId;
}

function isConsolePath(path: string): boolean {
  return (
    path.includes("/console") ||
    path.endsWith("/vnc") ||
    path.endsWith("/novnc-rfb.js") ||
    path.endsWith("/console-viewer.js")
  );
}

/** Sets CORS headers; true when the origin is allowed. `*` is never combined with credentials. */
function cors(incoming: IncomingMessage, outgoing: ServerResponse, origins: readonly string[]): boolean {
  if (origins.length === 0) return false;
  const origin = incoming.headers.origin;
  const listed = origin !== undefined && origins.some((o) => o.toLowerCase() === origin.toLowerCase());
  if (listed) {
    outgoing.setHeader("Access-Control-Allow-Origin", origin);
    outgoing.setHeader("Access-Control-Allow-Credentials", "true");
  } else if (origins.includes("*")) {
    outgoing.setHeader("Access-Control-Allow-Origin", "*");
  } else {
    return false;
  }
  outgoing.setHeader("Vary", "Origin");
  outgoing.setHeader("Access-Control-Allow-Headers", allowedHeaders);
  outgoing.setHeader("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS");
  outgoing.setHeader("Access-Control-Expose-Headers", "X-Request-ID, Retry-After, Idempotency-Replayed");
  outgoing.setHeader("Access-Control-Max-Age", "600");
  return true;
}
