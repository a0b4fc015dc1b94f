/**
 * Reads a bounded JSON answer of an outside server; what it says is never quoted in an error.
 */
import type { IncomingMessage } from "node:http";
import { CodedError } from "@kontinuum/std";
import { measure, parseJson } from "../json/json.ts";

/** The parsed body of a 200 answer. Fails with `unavailable`. */
export async function readJsonAnswer(
  response: IncomingMessage,
  host: string,
  limit: number,
): Promise<unknown> {
  if (response.statusCode !== 200) {
    response.resume();
    throw new CodedError("unavailable", `${host} answered with status ${response.statusCode ?? 0}`);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const bytes: Buffer = chunk;
    size += bytes.length;
    if (size > limit)
      throw new CodedError("unavailable", `the answer of ${host} is larger than ${limit} bytes`);
    chunks.push(bytes);
  }
  try {
    const value = parseJson(Buffer.concat(chunks).toString("utf8"));
    measure(value);
    return value;
  } catch (cause) {
    throw new CodedError("unavailable", `the answer of ${host} is no valid JSON`, { cause });
  }
}
