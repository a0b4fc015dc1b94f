/**
 * Answers: JSON with a final newline, text, bytes, nothing; and the one error envelope.
 */
import type { ServerResponse } from "node:http";
import { z } from "zod";
import { toKrytonError, type KrytonError } from "../model/errors.ts";

/** What a handler answers. */
export interface Reply {
  readonly status: number;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly content?: { readonly type: string; readonly body: string | Uint8Array };
  readonly headers?: Readonly<Record<string, string>>;
}

/** A handler that wrote to the raw response itself. */
export const alreadySent = Symbol("already sent");

/** Writes an answer to the raw response. One whose client has gone is left alone. */
export function sendReply(outgoing: ServerResponse, reply: Reply): void {
  if (outgoing.destroyed || outgoing.headersSent) return;
  const { status, headers, content, json } = reply;
  if (!content && json === undefined) {
    outgoing.writeHead(status, headers).end();
    return;
  }
  const type = content?.type ?? "application/json; charset=utf-8";
  const body = content?.body ?? `${JSON.stringify(json)}\n`;
  outgoing
    .writeHead(status, {
      "Content-Type": type,
      "Content-Length": typeof body === "string" ? Buffer.byteLength(body) : body.length,
      ...headers,
    })
    .end(body);
}

/** 200 with a body. */
export function ok(json: unknown): Reply {
  return { status: 200, json };
}

/** 204 without a body. */
export const noContent: Reply = { status: 204 };

/** The error envelope. */
export const errorSchema = z
  .object({
    error: z.object({
      code: z.string(),
      message: z.string(),
      hint: z.string().optional(),
      requestId: z.string().optional(),
    }),
  })
  .meta({ id: "Error" });

/** The answer to a failure, and the error it stands for. */
export function errorReply(thrown: unknown, requestId: string): { reply: Reply; error: KrytonError } {
  const error = toKrytonError(thrown);
  const headers: Record<string, string> = { ...error.headers };
  if (error.status === 401) headers["WWW-Authenticate"] = 'Bearer realm="kryton"';
  if (error.retryAfterMs !== undefined) {
    headers["Retry-After"] = String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
  }
  const body = {
    error: {
      code: error.kryton,
      message: error.message,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      requestId,
    },
  };
  return { reply: { status: error.status, json: body, headers }, error };
}
