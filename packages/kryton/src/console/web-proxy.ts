/**
 * The reverse proxy in front of a guest's web console.
 *
 * What is behind it is not ours: its pages run in a sandbox without this origin, it gets no credentials
 * of ours and can set no cookie. A page in such a sandbox sends no cookies, so the ticket travels in the
 * path: the entrance redirects to `console/~<ticket>/`, and relative addresses keep it.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { http, messageOf } from "@kontinuum/std";
import { KrytonError } from "../model/errors.ts";
import type { Services } from "../http/services.ts";
import { alreadySent } from "../http/reply.ts";
import type { Call, Outcome } from "../http/route.ts";

const limitMs = 60_000;
const maxBodyBytes = 64 * 1024 * 1024;
const sandbox = "sandbox allow-scripts allow-forms allow-pointer-lock; frame-ancestors 'self'";
const droppedParameters = ["console_ticket", "project", "format"];
const notForwarded = new Set(["authorization", "cookie", "host", "connection", "x-kryton-proxy-secret"]);
const notReturned = new Set([
  "set-cookie",
  "content-security-policy",
  "x-frame-options",
  "connection",
  "transfer-encoding",
]);

/** The path at the upstream, without what is ours: prefix, ticket and parameters. */
export function upstreamPath(url: string, machineId: string): string {
  const [path = "", search = ""] = url.split("?", 2);
  const prefix = `/api/v1/machines/${encodeURIComponent(machineId)}/console`;
  const rest = path.slice(prefix.length).replace(/^\/~[^/]*/, "");
  const query = new URLSearchParams(search);
  for (const name of droppedParameters) query.delete(name);
  const kept = query.toString();
  return `${rest === "" ? "/" : rest}${kept === "" ? "" : `?${kept}`}`;
}

/** Headers for the upstream. */
export function forwardedHeaders(incoming: IncomingHttpHeaders, host: string): OutgoingHttpHeaders {
  const headers = Object.fromEntries(Object.entries(incoming).filter(([name]) => !notForwarded.has(name)));
  return { ...headers, host };
}

/** Passes a body on, up to a limit: a longer one cuts the call. */
function sendBody(incoming: IncomingMessage, request: ClientRequest): void {
  let size = 0;
  incoming.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBodyBytes) request.destroy(new Error(`the body is larger than ${maxBodyBytes} bytes`));
  });
  incoming.pipe(request);
}

/** Proxies one request. */
export async function proxyConsole(
  call: Call<undefined>,
  upstreamUrl: string,
  services: Services,
): Promise<Outcome> {
  const { incoming, outgoing, params, principal, project, requestId } = call;
  const machineId = params["id"] ?? "";
  const url = incoming.url ?? "";
  const path = url.split("?", 1)[0] ?? "";
  const reads = incoming.method === "GET" || incoming.method === "HEAD";
  if (reads && !path.includes("/console/~")) {
    const { ticket } = await services.tickets.issue({ project, machineId, principal }, incoming, (cookie) =>
      outgoing.setHeader("Set-Cookie", cookie),
    );
    const rest = upstreamPath(url, machineId);
    const base = `/api/v1/machines/${encodeURIComponent(machineId)}/console/~${ticket}`;
    return { status: 302, headers: { Location: `${base}${rest}`, "Cache-Control": "no-store" } };
  }
  let upstream: URL;
  try {
    upstream = new URL(upstreamPath(url, machineId), upstreamUrl);
  } catch (cause) {
    throw new KrytonError("CONSOLE_UNAVAILABLE", "the console's address cannot be used", { cause });
  }
  return new Promise<Outcome>((resolve, reject) => {
    const request = http.request(upstream, {
      method: incoming.method ?? "GET",
      headers: forwardedHeaders(incoming.headers, upstream.host),
      timeout: limitMs,
    });
    request.once("response", (response) => {
      const headers = Object.entries(response.headers).filter(([name]) => !notReturned.has(name));
      outgoing.writeHead(response.statusCode ?? 502, {
        ...Object.fromEntries(headers),
        "Content-Security-Policy": sandbox,
      });
      response.pipe(outgoing);
      response.once("error", () => outgoing.destroy());
      resolve(alreadySent);
    });
    request.once("timeout", () => request.destroy(new Error("no answer in time")));
    request.once("error", (cause) => {
      services.edges.log.info("console upstream failed", {
        request_id: requestId,
        problem: messageOf(cause),
      });
      if (outgoing.headersSent) outgoing.destroy();
      else reject(new KrytonError("CONSOLE_UNAVAILABLE", "the machine's console does not answer", { cause }));
    });
    outgoing.once("close", () => request.destroy());
    if (reads) request.end();
    else sendBody(incoming, request);
  });
}
