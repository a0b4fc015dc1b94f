/**
 * Between the raw requests of the API server's listener and the web-standard ones the pages are written in.
 *
 * Bodies are bounded before they are read; an unsafe request must come from a page of this origin.
 */
import type { IncomingMessage } from "node:http";
import type { HttpResponse } from "@kontinuum/kapi";
import { CodedError } from "@kontinuum/std";

/** The most a form may hold, in bytes. */
export const formLimitBytes = 64 * 1024;

/** The origin as the visitor's browser sees it; a proxy in front states the scheme. */
export function originOf(request: IncomingMessage): { scheme: "http" | "https"; host: string } {
  const forwarded = request.headers["x-forwarded-proto"];
  const encrypted = "encrypted" in request.socket;
  const authority = request.headers[":authority"];
  return {
    scheme: forwarded === "https" || (forwarded === undefined && encrypted) ? "https" : "http",
    host: request.headers.host ?? (typeof authority === "string" ? authority : "localhost"),
  };
}

/**
 * Whether an unsafe request may be served: browsers send `Origin` with every such request, and a page of another
 * site can't forge it (security: cross-site request forgery).
 */
export function isSameOrigin(request: IncomingMessage): boolean {
  const origin = request.headers.origin;
  if (origin === undefined) return request.headers["sec-fetch-site"] === undefined;
  const own = originOf(request);
  return origin === `${own.scheme}://${own.host}`;
}

/**
 * Whether a host name is this machine's. While nobody signs in, a name that somebody else points here must not open the
 * pages (DNS rebinding).
 */
export function isLoopbackHost(host: string): boolean {
  const name = host.startsWith("[") ? host.slice(0, host.indexOf("]") + 1) : host.replace(/:\d+$/, "");
  return name === "localhost" || name === "[::1]" || /^127(\.\d{1,3}){3}$/.test(name);
}

/** Reads a bounded body. Fails with `payload_too_large`. */
async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    size += bytes.length;
    if (size > formLimitBytes) {
      throw new CodedError("payload_too_large", `a form may hold at most ${formLimitBytes} bytes`);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** A web-standard request with the same method, address, headers and body. */
export async function toWebRequest(request: IncomingMessage): Promise<Request> {
  const method = request.method ?? "GET";
  const { scheme, host } = originOf(request);
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (name.startsWith(":") || value === undefined) continue;
    headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(request.url ?? "/", `${scheme}://${host}`), {
    method,
    headers,
    ...(hasBody ? { body: new Uint8Array(await readBody(request)) } : {}),
  });
}

/** Sends a finished response. */
export async function sendWebResponse(answer: Response, response: HttpResponse): Promise<void> {
  const headers: Record<string, string | string[]> = {};
  answer.headers.forEach((value, name) => {
    if (name !== "set-cookie") headers[name] = value;
  });
  const cookies = answer.headers.getSetCookie();
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  const body = Buffer.from(await answer.arrayBuffer());
  response.writeHead(answer.status, { ...headers, "content-length": body.length });
  response.end(body);
}
