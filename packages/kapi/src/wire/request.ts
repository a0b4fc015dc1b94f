/**
 * One request as the pipeline sees it, whether it came over HTTP/1.1, HTTP/2 or from inside the process.
 */
import type { HttpResponse } from "../contract.ts";

/** Headers with lower-case names. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** A verified client certificate. */
export interface PeerCertificate {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Lower-case hex SHA-256 of the DER form. */
  readonly fingerprint: string;
  /** True when it was signed by the front proxy's CA and not by the client CA. */
  readonly issuer: "client" | "requestheader";
}

/** A request with its body still unread. */
export interface WireRequest {
  readonly method: string;
  /** Path with query, as sent. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** Peer address without port; `127.0.0.1` for requests from inside the process. */
  readonly address: string;
  /** True when the connection is TLS (or does not leave the process). */
  readonly secure: boolean;
  readonly certificate?: PeerCertificate;
  /** The body, to be read once. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Reads one header; of a repeated one, the first. */
export function header(request: { readonly headers: RequestHeaders }, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** All values of a repeatable header. */
export function headerValues(request: { readonly headers: RequestHeaders }, name: string): readonly string[] {
  const value = request.headers[name];
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** A request with the place for its answer. */
export interface Exchange {
  readonly request: WireRequest;
  readonly response: HttpResponse;
}
