/**
 * Answers: one object or text, encoded as negotiated, indented for people, compressed when it pays.
 *
 * Compression runs on the thread pool, never on the event loop. Nothing here knows what an answer means.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { constants, createGzip, gzip } from "node:zlib";
import type { HttpResponse } from "../contract.ts";
import { stringifyJson } from "../json/json.ts";
import type { Encoding } from "./media-type.ts";
import { contentTypes } from "./media-type.ts";
import { pieceBytes, writePieces } from "./pieces.ts";
import { header, type WireRequest } from "./request.ts";
import { stringifyYaml } from "./yaml.ts";

const compress = promisify(gzip);

/** Answers larger than this many bytes are compressed for clients that offer it. */
export const gzipThreshold = 128 * 1024;

/** Greatest total length of `Warning` headers, in bytes. */
const maxWarningBytes = 4096;
/** Length a single warning is cut to once the total is exceeded. */
const cutWarning = 256;

/** What an answer needs of its request. */
export interface Answering {
  readonly request: WireRequest;
  readonly response: HttpResponse;
  /** Value of `pretty`, or undefined. */
  readonly pretty: string | undefined;
  readonly warnings: readonly string[];
  /** True for requests that never left the process. */
  readonly inProcess: boolean;
  /** True when the client is gone or the answer complete. */
  readonly isOver: boolean;
  /** What to do when the request's time is over while its answer is still being written. */
  onTimeout?: (() => void) | undefined;
}

const peopleAgents = /^(curl|Wget|Mozilla\/5\.0)/;

/** Whether the client is a person with a terminal or browser. */
export function wantsIndent(answering: Answering): boolean {
  if (answering.pretty !== undefined) return answering.pretty === "1" || answering.pretty === "true";
  return peopleAgents.test(header(answering.request, "user-agent") ?? "");
}

/** Values for the `Warning` header (RFC 9111 form, code 299 as Kubernetes uses it). */
export function warningHeaders(warnings: readonly string[]): readonly string[] {
  const unique = [...new Set(warnings)];
  const total = unique.reduce((sum, text) => sum + text.length, 0);
  const out: string[] = [];
  let used = 0;
  for (const text of unique) {
    const cut = total > maxWarningBytes ? Array.from(text).slice(0, cutWarning).join("") : text;
    used += cut.length;
    if (used > maxWarningBytes) break;
    // Header values hold visible ASCII and Latin-1 only; anything else would make the HTTP library throw.
    const safe = cut.replace(/[^\x20-\x7e]/g, (char) => (/\s/.test(char) ? " " : "?"));
    out.push(`299 - "${safe.replace(/[\\"]/g, "\\$&")}"`);
  }
  return out;
}

type Headers = Record<string, string | number | readonly string[]>;

/** Headers every answer has. */
function headOf(
  { warnings }: Answering,
  contentType: string,
  headers: Readonly<Record<string, string>>,
): Headers {
  return {
    "content-type": contentType,
    "cache-control": "no-cache, private",
    ...headers,
    ...(warnings.length > 0 ? { warning: warningHeaders(warnings) } : {}),
  };
}

/** Says in the head of a long answer that it varies, and that it is compressed when the client offers that. */
function compresses({ request }: Answering, head: Headers): boolean {
  head["vary"] = typeof head["vary"] === "string" ? `${head["vary"]}, Accept-Encoding` : "Accept-Encoding";
  if (!/\bgzip\b/.test(header(request, "accept-encoding") ?? "")) return false;
  head["content-encoding"] = "gzip";
  return true;
}

const compression = { level: constants.Z_BEST_SPEED, chunkSize: pieceBytes };

/** Bytes of an answer that may wait for their client without the request being counted as running. */
const restBytes = 64 * 1024;

/**
 * Waits until the client has taken an answer, or is gone. While it has not, the request keeps its place among those that
 * run at once, which bounds the memory of answers that nobody reads; when its time is over the connection goes.
 */
function taken(answering: Answering): Promise<void> | undefined {
  const { response, inProcess, isOver } = answering;
  if (inProcess || isOver || response.writableLength <= restBytes) return undefined;
  answering.onTimeout = () => response.destroy();
  return new Promise((resolve) => response.on("close", () => resolve()));
}

/** Sends bytes with a content type. Resolves when the client has all but a small rest of them, or is gone. */
export async function sendBytes(
  answering: Answering,
  status: number,
  contentType: string,
  body: Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { request, response } = answering;
  if (response.headersSent) return;
  const head = headOf(answering, contentType, headers);
  let bytes = body;
  if (body.length > gzipThreshold && compresses(answering, head)) {
    bytes = await compress(body, compression);
    if (response.headersSent) return;
  }
  head["content-length"] = bytes.length;
  response.writeHead(status, head);
  if (request.method === "HEAD") response.end();
  else response.end(bytes);
  await taken(answering);
}

/**
 * Sends a long answer piece by piece, each made when its turn comes; one that turns out short is sent at once. A client
 * that has not read it all when the request's time is over loses the connection.
 */
export async function sendPieces(
  answering: Answering,
  status: number,
  contentType: string,
  pieces: AsyncGenerator<Buffer, void>,
): Promise<void> {
  const { request, response } = answering;
  const first = await pieces.next();
  if (first.done === true) return sendBytes(answering, status, contentType, Buffer.alloc(0));
  const second = await pieces.next();
  if (second.done === true) return sendBytes(answering, status, contentType, first.value);
  if (response.headersSent) return;
  const head = headOf(answering, contentType, {});
  const gzips = compresses(answering, head);
  response.writeHead(status, head);
  if (request.method !== "HEAD") {
    answering.onTimeout = () => response.destroy();
    const all = concat([first.value, second.value], pieces);
    if (gzips) {
      await pipeline(Readable.from(all), createGzip(compression), (chunks: AsyncIterable<Uint8Array>) =>
        writePieces(response, chunks),
      );
    } else await writePieces(response, all);
  }
  response.end();
}

async function* concat(
  start: readonly Buffer[],
  rest: AsyncGenerator<Buffer, void>,
): AsyncGenerator<Buffer, void> {
  yield* start;
  yield* rest;
}

/** Encodes a value for people or programs. */
export function encodeValue(answering: Answering, encoding: Encoding, value: unknown): Buffer {
  if (encoding === "yaml") return Buffer.from(stringifyYaml(value));
  const indent = wantsIndent(answering) ? 2 : undefined;
  return Buffer.from(indent ? `${stringifyJson(value, indent)}\n` : `${stringifyJson(value)}\n`);
}

/** Sends a value as JSON or YAML. */
export function sendValue(
  answering: Answering,
  status: number,
  value: unknown,
  encoding: Encoding = "json",
  headers?: Readonly<Record<string, string>>,
): Promise<void> {
  const actual = encoding === "protobuf" ? "json" : encoding;
  return sendBytes(answering, status, contentTypes[actual], encodeValue(answering, actual, value), headers);
}

/** Sends a plain text. */
export function sendText(answering: Answering, status: number, text: string): Promise<void> {
  return sendBytes(answering, status, "text/plain; charset=utf-8", Buffer.from(text), {
    "x-content-type-options": "nosniff",
  });
}
