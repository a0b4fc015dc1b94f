/**
 * Reading response bodies: as a whole with a bound, or line by line.
 */
import { CodedError } from "@kontinuum/std";

/** All bytes of a body as text. Fails with `payload_too_large` beyond `limit` bytes. */
export async function readText(body: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > limit) throw new CodedError("payload_too_large", `the answer is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString("utf8");
}

/** Parses an answer as JSON; an empty or unreadable one is `undefined`. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The non-empty lines of a body, as they arrive. Fails with `payload_too_large` when one exceeds `limit` bytes. */
export async function* readLines(body: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const take = (last: Uint8Array): string => {
    const line = Buffer.concat([...parts, last]).toString("utf8");
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of body) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line = take(chunk.subarray(from, end));
      from = end + 1;
      if (line.trim() !== "") yield line;
    }
    const rest = chunk.subarray(from);
    size += rest.byteLength;
    if (size > limit) throw new CodedError("payload_too_large", `a line is longer than ${limit} bytes`);
    if (rest.byteLength > 0) parts.push(rest);
  }
  const line = take(new Uint8Array());
  if (line.trim() !== "") yield line;
}
