/**
 * `fetch` for talking to the OpenID provider, over the one outbound client: addresses are checked when the connection is
 * made, so that what a provider publishes (its keys, its token endpoint) can't lead into this machine or to a metadata
 * service. Only the issuer's own host may be anywhere, because the operator named it.
 */
import { OutboundClient, type Edges } from "@kontinuum/std";

/** Longest call, milliseconds, and largest answer, bytes. */
const timeoutMs = 10_000;
const maxBytes = 1024 * 1024;

/** What the libraries ask for. */
interface FetchOptions {
  readonly method?: string | undefined;
  readonly headers?: Headers | Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
}

/** Makes the function. Redirects are answers, not followed. */
export function issuerFetch(
  issuerUrl: string,
  { network, clock }: Pick<Edges, "network" | "clock">,
): (url: string, options: FetchOptions) => Promise<Response> {
  const host = new URL(issuerUrl).hostname.replace(/^\[|\]$/g, "");
  const client = new OutboundClient(network, clock, { allow: [host] });
  return async (url, { method = "GET", headers, body, signal }) => {
    const answer = await client.request({
      method,
      url,
      headers: Object.fromEntries(new Headers(headers)),
      ...(body === undefined || body === null ? {} : { body: Buffer.from(String(body)) }),
      timeoutMs,
      maxBytes,
      ...(signal ? { signal } : {}),
    });
    const received = new Headers();
    for (const [name, value] of Object.entries(answer.headers))
      if (value !== undefined) received.set(name, Array.isArray(value) ? value.join(", ") : value);
    const isEmpty = answer.body.byteLength === 0 || [204, 304].includes(answer.status);
    return new Response(isEmpty ? null : new Uint8Array(answer.body), {
      status: answer.status,
      headers: received,
    });
  };
}
