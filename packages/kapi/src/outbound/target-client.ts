/**
 * Requests the server makes because an object told it to (admission and conversion webhooks, aggregated APIs), through
 * the one outbound client: addresses checked at connect, no redirects, no credentials but the target's own, bounded size
 * and time. Failures name the target and never quote an answer.
 */
import type { Duplex } from "node:stream";
import { CodedError, type OutboundClient, type OutboundTls } from "@kontinuum/std";
import { measure, parseJson } from "../json/json.ts";

/** Where to and how. */
export interface OutboundTarget extends OutboundTls {
  /** Name or address to connect to. */
  readonly host: string;
  readonly port: number;
  /** Absolute path with query. */
  readonly path: string;
}

/** One call. */
export interface OutboundCall {
  /** Absent: a GET. */
  readonly body?: string;
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Largest answer that is read, bytes. */
const maxAnswerBytes = 8 * 1024 * 1024;

/** Makes requests. */
export class TargetClient {
  readonly #client: OutboundClient;

  constructor(client: OutboundClient) {
    this.#client = client;
  }

  /** Opens a TLS connection. Fails with `permission_denied`, `unavailable`, `deadline_exceeded`. */
  connect(target: OutboundTarget, timeoutMs: number): Promise<Duplex> {
    return this.#client.connect(target, timeoutMs);
  }

  /** Posts JSON (or, without a body, gets) and reads the JSON answer of a 200. Fails with `unavailable` for any other. */
  async call(target: OutboundTarget, { body, timeoutMs, headers }: OutboundCall): Promise<unknown> {
    const { host, port, path, ...tls } = target;
    const { status, body: answer } = await this.#client.request({
      method: body === undefined ? "GET" : "POST",
      url: `https://${host.includes(":") ? `[${host}]` : host}:${port}${path}`,
      headers: {
        ...headers,
        accept: "application/json",
        "user-agent": "kapi-outbound",
        connection: "close",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
      timeoutMs,
      maxBytes: maxAnswerBytes,
      httpsOnly: true,
      tls,
    });
    if (status !== 200) throw new CodedError("unavailable", `${host} answered with status ${status}`);
    try {
      const value = parseJson(answer.toString("utf8"));
      measure(value);
      return value;
    } catch (cause) {
      throw new CodedError("unavailable", `the answer of ${host} is no valid JSON`, { cause });
    }
  }
}
