/**
 * Requests from inside the process: the same pipeline, no socket.
 *
 * The response's body is a bounded stream: a reader that is slow makes `writableLength` rise, so that a watch parks
 * for it exactly as it does for a slow connection.
 */
import type { Transport, TransportRequest, TransportResponse } from "@kontinuum/controller";
import { CodedError } from "@kontinuum/std";
import type { HttpResponse, UserInfo } from "../contract.ts";
import type { WireRequest } from "../wire/request.ts";
import { RequestContext } from "./context.ts";

type HeaderValue = string | number | readonly string[];

/** An {@link HttpResponse} that hands its bytes to an iterator. */
class MemoryResponse implements HttpResponse {
  statusCode = 200;
  headersSent = false;
  writableLength = 0;
  readonly #headers: Record<string, string> = {};
  readonly #chunks: Uint8Array[] = [];
  readonly #listeners: Record<"close" | "drain" | "error", ((...args: unknown[]) => void)[]> = {
    close: [],
    drain: [],
    error: [],
  };
  readonly #started: (response: TransportResponse) => void;
  #ended = false;
  #closed = false;
  #failure: unknown;
  #wake: (() => void) | undefined;

  constructor(started: (response: TransportResponse) => void) {
    this.#started = started;
  }

  setHeader(name: string, value: HeaderValue): void {
    this.#headers[name.toLowerCase()] = typeof value === "object" ? value.join(", ") : String(value);
  }

  writeHead(status: number, headers: Record<string, HeaderValue> = {}): void {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    this.flushHeaders();
  }

  flushHeaders(): void {
    if (this.headersSent) return;
    this.headersSent = true;
    this.#started({ status: this.statusCode, headers: this.#headers, body: this.#body() });
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.#ended || this.#closed) return false;
    this.flushHeaders();
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    this.#chunks.push(bytes);
    this.writableLength += bytes.byteLength;
    this.#wake?.();
    return this.writableLength < 64 * 1024;
  }

  end(chunk?: string | Uint8Array): void {
    if (this.#ended) return;
    if (chunk !== undefined && chunk.length > 0) this.write(chunk);
    this.flushHeaders();
    this.#ended = true;
    this.#wake?.();
    if (this.writableLength === 0) this.#close();
  }

  on(event: "close" | "drain" | "error", listener: (...args: unknown[]) => void): void {
    if (event === "close" && this.#closed) listener();
    else this.#listeners[event].push(listener);
  }

  destroy(error?: Error): void {
    if (this.#closed) return;
    this.#failure = error ?? new CodedError("unavailable", "the server ended the response");
    this.flushHeaders();
    this.#close();
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake?.();
    for (const listener of this.#listeners.close) listener();
  }

  /** The client is gone. */
  abandon(): void {
    this.#ended = true;
    this.#chunks.length = 0;
    this.writableLength = 0;
    this.#close();
  }

  async *#body(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk) {
          this.writableLength -= chunk.byteLength;
          if (this.writableLength === 0) {
            if (this.#ended) this.#close();
            else for (const listener of this.#listeners.drain) listener();
          }
          yield chunk;
          continue;
        }
        if (this.#ended) return;
        if (this.#closed) throw this.#failure;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
      }
    } finally {
      this.abandon();
    }
  }
}

async function* bodyOf(body: string | Uint8Array | undefined): AsyncGenerator<Uint8Array> {
  if (body !== undefined && body.length > 0) yield typeof body === "string" ? Buffer.from(body) : body;
}

/** Makes transports that run `run` for each request, as a fixed user. */
export function inProcessTransport(
  run: (context: RequestContext) => Promise<void>,
  user: UserInfo,
): Transport {
  return (request: TransportRequest) =>
    new Promise<TransportResponse>((resolve, reject) => {
      const { signal } = request;
      if (signal?.aborted) return reject(new CodedError("cancelled", "the request was cancelled"));
      const response = new MemoryResponse(resolve);
      const wire: WireRequest = {
        method: request.method,
        url: request.path,
        headers: request.headers ?? {},
        address: "127.0.0.1",
        secure: true,
        body: bodyOf(request.body),
      };
      const onAbort = (): void => {
        response.abandon();
        reject(new CodedError("cancelled", "the request was cancelled"));
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      response.on("close", () => signal?.removeEventListener("abort", onAbort));
      const context = new RequestContext({ request: wire, response });
      context.inProcess = true;
      context.user = user;
      run(context).catch(reject);
    });
}
