/**
 * How the generated client talks: one request, one checked answer, or an error that says what to do.
 *
 * Answers are checked against the document's schemas before they are trusted: the other side may be
 * another version, or something else altogether.
 */
import { isCoded, isObject, messageOf, stringAt, type OutboundClient } from "@kontinuum/std";
import { mismatch } from "./conformance.ts";
import { schemas, type Schemas } from "./gen/schemas.ts";

/** Limit of a call unless told otherwise, milliseconds. */
export const defaultTimeoutMs = 30_000;
/** Largest answer that is read, bytes. */
const maxAnswerBytes = 64 * 1024 * 1024;

/** Options of one call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Makes a repeat of an unsafe call harmless. */
  readonly idempotencyKey?: string;
}

/** A request as the generated client makes it. */
export interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** Statuses that carry the success body. */
  readonly accepted: readonly number[];
  readonly options: CallOptions;
}

/** A refusal, a failure, or no answer at all (`status` 0). */
export class KrytonClientError extends Error {
  readonly status: number;
  /** Code of the error envelope; empty when there was none. */
  readonly code: string;
  readonly hint: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    message: string,
    facts: {
      readonly code?: string | undefined;
      readonly hint?: string | undefined;
      readonly requestId?: string | undefined;
      readonly retryAfterMs?: number | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = "KrytonClientError";
    this.status = status;
    this.code = facts.code ?? "";
    this.hint = facts.hint;
    this.requestId = facts.requestId;
    this.retryAfterMs = facts.retryAfterMs;
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 502;
  }
}

/** Where to call and as whom. */
export interface ExchangeOptions {
  /** Base URL of the API, without `/api/v1`. */
  readonly url: string;
  /** API key; asked at each call, so that it can be rotated. */
  token?(): string | undefined;
  readonly outbound: OutboundClient;
}

/** Makes calls. */
export class Exchange {
  readonly #options: ExchangeOptions;

  constructor(options: ExchangeOptions) {
    this.#options = { ...options, url: options.url.replace(/\/+$/, "") };
  }

  /** A call whose answer has no body. */
  async send(request: ClientRequest): Promise<void> {
    await this.#call(request);
  }

  /** A call with an answer: of the named schema, or of none. */
  async read<N extends keyof Schemas>(request: ClientRequest, name: N): Promise<Schemas[N]>;
  async read(request: ClientRequest, name: undefined): Promise<unknown>;
  async read(request: ClientRequest, name: keyof Schemas | undefined): Promise<unknown> {
    const { status, text } = await this.#call(request);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (cause) {
      throw new KrytonClientError(status, `${request.method} ${request.path} answered no JSON`, { cause });
    }
    if (name !== undefined) {
      const problem = mismatch(value, schemas[name], schemas);
      if (problem !== undefined) {
        throw new KrytonClientError(
          status,
          `${request.method} ${request.path} answered no ${name}: ${problem}`,
        );
      }
    }
    return value;
  }

  async #call({
    method,
    path,
    body,
    accepted,
    options,
  }: ClientRequest): Promise<{ status: number; text: string }> {
    const token = this.#options.token?.();
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body), "utf8");
    try {
      const answer = await this.#options.outbound.request({
        method,
        url: `${this.#options.url}${path}`,
        headers: {
          accept: "application/json",
          ...(token ? { authorization: `Bearer ${token}` } : {}),
          ...(bytes ? { "content-type": "application/json" } : {}),
          ...(options.idempotencyKey ? { "idempotency-key": options.idempotencyKey } : {}),
        },
        ...(bytes ? { body: bytes } : {}),
        timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
        maxBytes: maxAnswerBytes,
        ...(options.signal ? { signal: options.signal } : {}),
      });
      const text = answer.body.toString("utf8");
      if (!accepted.includes(answer.status))
        throw refusal(answer.status, text, answer.headers["retry-after"]);
      return { status: answer.status, text };
    } catch (error) {
      if (error instanceof KrytonClientError) throw error;
      const code = isCoded(error) ? error.code : "";
      throw new KrytonClientError(0, messageOf(error), { code, cause: error });
    }
  }
}

function refusal(status: number, text: string, retryAfter: string | undefined): KrytonClientError {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const told = isObject(body) ? body["error"] : undefined;
  const seconds = Number(retryAfter);
  return new KrytonClientError(status, stringAt(told, "message") ?? `answered ${status}`, {
    code: stringAt(told, "code"),
    hint: stringAt(told, "hint"),
    requestId: stringAt(told, "requestId"),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  });
}

/** A path segment. */
export function encodeSegment(text: string): string {
  return encodeURIComponent(text);
}

/** A query string with its question mark; empty without parameters. Lists repeat their name. */
export function encodeQuery(query: Readonly<Record<string, unknown>>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null) pairs.append(name, String(item));
    }
  }
  const text = pairs.toString();
  return text === "" ? "" : `?${text}`;
}
