/**
 * The transport: one HTTP-shaped exchange with an API server.
 *
 * The client of this package speaks the Kubernetes REST protocol over whatever `Transport` it is given: in
 * process (`kapi` offers one that runs the same request pipeline as the listener), or over the network.
 * That is why this package needs no API server and a controller can't tell where its server is.
 */

/** One request. */
export interface TransportRequest {
  readonly method: string;
  /** Path with query, starting with `/`. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
}

/** One response. The body must be consumed or cancelled (by breaking the iteration or aborting the signal). */
export interface TransportResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Sends a request. Fails with `unavailable` when the server can't be reached; an HTTP error status is a response. */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>;
