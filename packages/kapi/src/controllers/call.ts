/**
 * One request of a server's own controller through its transport: JSON in, JSON out, failures as `StatusError`.
 */
import type { Transport } from "@kontinuum/controller";
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { parseJson, stringifyJson } from "../json/json.ts";
import { StatusError } from "../status/status.ts";

/** How the server's own controllers call themselves in managed fields. */
const userAgent = "kapi-controller/1";

/** Options of {@link call}. */
export interface CallOptions {
  /** Type of the body; default: merge patch for PATCH, else JSON. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/** Sends a request and reads the whole answer. Fails with the answer's Status. */
export async function call(
  transport: Transport,
  method: string,
  path: string,
  body?: unknown,
  options: CallOptions = {},
): Promise<JsonObject> {
  const type =
    options.contentType ?? (method === "PATCH" ? "application/merge-patch+json" : "application/json");
  const response = await transport({
    method,
    path,
    headers: { "user-agent": userAgent, ...(body === undefined ? {} : { "content-type": type }) },
    ...(body === undefined ? {} : { body: stringifyJson(body) }),
    ...(options.signal ? { signal: options.signal } : {}),
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  const value = text === "" ? {} : parseJson(text);
  if (response.status >= 400) {
    const details = at(value, "details");
    throw new StatusError(
      response.status,
      stringAt(value, "reason") ?? "",
      stringAt(value, "message") ?? `answer ${response.status}`,
      isObject(details) ? details : undefined,
    );
  }
  return isObject(value) ? value : {};
}

/** True for a failure with one of the given codes. */
export function failedWith(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof StatusError && codes.includes(error.code);
}
