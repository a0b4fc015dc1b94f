/**
 * Request bodies: bounded reading, then decoding by content type.
 *
 * A body is read only after the request was authorized. JSON keeps 64-bit integers; duplicate keys are found for
 * field validation; protobuf goes through `codec/`.
 */
import type { Readable } from "node:stream";
import { isObject, type JsonObject } from "@kontinuum/std";
import { parseJson, measure } from "../json/json.ts";
import { duplicateFields } from "../json/duplicates.ts";
import { badRequest, tooLarge, unsupportedCoding, unsupportedMediaType } from "../status/status.ts";
import { parseMediaType } from "./media-type.ts";
import { header, type WireRequest } from "./request.ts";
import { readYaml } from "./yaml-reader.ts";

/** Largest request body, in bytes (Kubernetes' own limit). */
export const maxBodyBytes = 3 * 1024 * 1024;

/** Reads a body up to `limit` bytes. Fails with 413, and with 415 for a compressed one. */
export async function readBody(request: WireRequest, limit: number = maxBodyBytes): Promise<Buffer> {
  const coding = header(request, "content-encoding")?.trim().toLowerCase() ?? "";
  if (coding !== "" && coding !== "identity") throw unsupportedCoding(coding);
  const announced = Number(header(request, "content-length") ?? 0);
  if (announced > limit) throw tooLarge(limit);
  const { body } = request;
  const chunks = isReadable(body) ? await readEvents(body, limit) : await readChunks(body, limit);
  const only = chunks[0];
  if (chunks.length === 1 && only) return Buffer.from(only.buffer, only.byteOffset, only.byteLength);
  return Buffer.concat(chunks);
}

function isReadable(body: AsyncIterable<Uint8Array>): body is Readable {
  return "on" in body && typeof body.on === "function";
}

async function readChunks(body: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return chunks;
}

/** The same for a socket's stream, without the price of an iterator for a body that is one chunk. */
function readEvents(body: Readable, limit: number): Promise<Uint8Array[]> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    let done = false;
    const finish = (error?: Error): void => {
      if (done) return;
      done = true;
      body.off("data", onData);
      // What still comes is read and dropped: the client is listening for its answer only after it has sent all.
      if (error) body.resume();
      if (error) reject(error);
      else resolve(chunks);
    };
    const onData = (chunk: Uint8Array): void => {
      size += chunk.byteLength;
      if (size > limit) finish(tooLarge(limit));
      else chunks.push(chunk);
    };
    // Also told of the close of a body that was read to its end: an error is made only when it is one.
    const broken = (): void => {
      if (!done) finish(badRequest("the request's body ended early"));
    };
    if (body.destroyed && !body.readableEnded) return broken();
    body.on("data", onData);
    body.once("end", () => finish());
    body.once("error", broken);
    body.once("close", broken);
  });
}

/** A decoded body. */
export interface DecodedBody {
  readonly value: unknown;
  /** Paths of keys that stood twice. */
  duplicates(): readonly string[];
  /** The same with their lines, as readers of YAML say it. */
  repeated(): readonly string[];
}

const none = (): readonly string[] => [];

/** Decodes JSON bytes. Fails with 400. */
export function decodeJson(bytes: Buffer): DecodedBody {
  const text = bytes.toString("utf8");
  const value = parseJson(text);
  measure(value);
  const duplicates = (): readonly string[] => duplicateFields(text, value);
  const repeated = (): readonly string[] =>
    duplicates().map((path) => `key ${JSON.stringify(path.split(".").at(-1))} already set in map`);
  return { value, duplicates, repeated };
}

/** Decodes YAML (or JSON, which most senders of YAML types really send). Fails with 400. */
export async function decodeYaml(bytes: Buffer): Promise<DecodedBody> {
  const first = bytes.find((byte) => byte > 0x20);
  if (first === 0x7b) {
    try {
      return decodeJson(bytes);
    } catch {
      // Not JSON after all: a YAML flow mapping starts with a brace too.
    }
  }
  const { value, duplicates, repeated } = await readYaml(bytes.toString("utf8"));
  return { value, duplicates: () => duplicates, repeated: () => repeated };
}

/** Content types of bodies that hold an object. */
export function objectTypes(protobuf: boolean): readonly string[] {
  return [
    "application/json",
    "application/yaml",
    ...(protobuf ? ["application/vnd.kubernetes.protobuf"] : []),
  ];
}

/** Decodes protobuf; injected so that this room does not depend on the codec. */
export type ProtobufDecoder = (bytes: Uint8Array) => JsonObject;

/**
 * Reads and decodes the body of a create, update or delete. `undefined` for an empty body. Fails with 400, 413, 415.
 */
export async function readObjectBody(
  request: WireRequest,
  protobuf: ProtobufDecoder | undefined,
  limit: number = maxBodyBytes,
): Promise<(DecodedBody & { readonly value: JsonObject }) | undefined> {
  const type = parseMediaType(header(request, "content-type") ?? "application/json").type;
  const kind = type === "" || type === "*/*" ? "application/json" : type;
  const isProtobuf = kind === "application/vnd.kubernetes.protobuf";
  if (kind !== "application/json" && kind !== "application/yaml" && !(isProtobuf && protobuf)) {
    throw unsupportedMediaType(objectTypes(protobuf !== undefined));
  }
  const bytes = await readBody(request, limit);
  if (bytes.length === 0) return undefined;
  if (isProtobuf && protobuf) return { value: protobuf(bytes), duplicates: none, repeated: none };
  const decoded = kind === "application/yaml" ? await decodeYaml(bytes) : decodeJson(bytes);
  const { value } = decoded;
  if (!isObject(value)) throw badRequest("the body must be one JSON object");
  return { ...decoded, value };
}
