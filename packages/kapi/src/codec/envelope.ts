/**
 * The envelope around every protobuf body of the Kubernetes API: four magic bytes and an `Unknown` message
 * that names the kind (k8s.io/apimachinery, pkg/runtime/serializer/protobuf).
 *
 * Watch frames are length-prefixed `WatchEvent` messages whose object has its own envelope.
 */
import { CodedError, isObject, type JsonObject } from "@kontinuum/std";
import { Decoding } from "./decode.ts";
import { encodeListMessage, encodeMessage } from "./encode.ts";
import { message, messageOf } from "./messages.ts";
import { WireReader, WireWriter } from "./wire.ts";

/** Media type of protobuf bodies. */
export const protobufMediaType = "application/vnd.kubernetes.protobuf";

const magic = [0x6b, 0x38, 0x73, 0x00] as const;
/** Envelopes inside envelopes: a watch event of a list of objects is the deepest real case. */
const maxEnvelopes = 4;

/** Whether bytes begin like a protobuf body. */
const hasProtobufMagic = (bytes: Uint8Array): boolean => magic.every((byte, index) => bytes[index] === byte);

/**
 * The JSON object in a protobuf body. Throws `invalid_argument` for a wrong prefix, truncated data or a kind
 * that has no protobuf form, `payload_too_large` beyond the bounds of `decode.ts`.
 */
export function decodeProtobuf(bytes: Uint8Array): JsonObject {
  const value = decodeEnvelope(
    bytes,
    new Decoding((inner, decoding) => decodeEnvelope(inner, decoding, 1)),
    0,
  );
  if (!isObject(value)) throw new CodedError("invalid_argument", "protobuf: the body is not an object");
  return value;
}

function decodeEnvelope(bytes: Uint8Array, decoding: Decoding, depth = 1): unknown {
  if (depth > maxEnvelopes) throw new CodedError("invalid_argument", "protobuf: too many nested envelopes");
  if (!hasProtobufMagic(bytes)) {
    throw new CodedError(
      "invalid_argument",
      "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    );
  }
  const reader = new WireReader(bytes, magic.length);
  let apiVersion = "";
  let kind = "";
  let raw: Uint8Array = new Uint8Array();
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    if (tag === 0x0a) {
      const end = reader.delimited();
      while (reader.position < end) {
        const inner = reader.uint32();
        if (inner === 0x0a) apiVersion = reader.string();
        else if (inner === 0x12) kind = reader.string();
        else reader.skip(inner & 7);
      }
    } else if (tag === 0x12) raw = reader.view();
    else reader.skip(tag & 7);
  }
  // A watch event is the one object whose envelope names no kind.
  const type = kind === "" ? message(watchEvent) : messageOf(apiVersion, kind);
  if (type === undefined) {
    throw new CodedError("invalid_argument", `no kind "${kind}" is registered for version "${apiVersion}"`);
  }
  const value = decoding.message(type, new WireReader(raw), raw.length);
  if (!isObject(value)) return value;
  return { ...(kind === "" ? {} : { kind, apiVersion }), ...value };
}

const watchEvent = "apimachinery.pkg.apis.meta.v1.WatchEvent";

/** Writes the envelope up to its content; answers what {@link closeEnvelope} needs. */
function openEnvelope(apiVersion: string, kind: string, writer: WireWriter): number {
  for (const byte of magic) writer.byte(byte);
  writer.byte(0x0a);
  const meta = writer.open();
  writer.byte(0x0a);
  writer.string(apiVersion);
  writer.byte(0x12);
  writer.string(kind);
  writer.close(meta);
  writer.byte(0x12);
  return writer.open();
}

function closeEnvelope(content: number, writer: WireWriter): void {
  writer.close(content);
  // contentEncoding and contentType, always empty.
  writer.byte(0x1a);
  writer.byte(0);
  writer.byte(0x22);
  writer.byte(0);
}

/**
 * The protobuf body of an object, or `undefined` when its kind has none (custom resources, tables): answer
 * JSON or 406 then.
 */
export function encodeProtobuf(object: JsonObject): Uint8Array | undefined {
  const writer = new WireWriter();
  return writeObject(object, writer) ? writer.finish() : undefined;
}

function writeObject(object: JsonObject, writer: WireWriter): boolean {
  const apiVersion = typeof object.apiVersion === "string" ? object.apiVersion : "";
  const kind = typeof object.kind === "string" ? object.kind : "";
  const type = kind === "" ? undefined : messageOf(apiVersion, kind);
  if (type === undefined) return false;
  const content = openEnvelope(apiVersion, kind, writer);
  encodeMessage(type, object, writer);
  closeEnvelope(content, writer);
  return true;
}

/**
 * The protobuf body of a list whose items come some at a time, so that they are never in memory together. `head`: the list
 * without items. `undefined`, before an item is asked for, when its kind has no protobuf form.
 */
export async function encodeProtobufList(
  head: { readonly apiVersion: string; readonly kind: string; readonly metadata: JsonObject },
  items: AsyncIterable<readonly JsonObject[]>,
): Promise<Uint8Array | undefined> {
  const type = messageOf(head.apiVersion, head.kind);
  if (type === undefined) return undefined;
  const writer = new WireWriter();
  const content = openEnvelope(head.apiVersion, head.kind, writer);
  await encodeListMessage(type, head, items, writer);
  closeEnvelope(content, writer);
  return writer.finish();
}

/**
 * One frame of a protobuf watch: a big-endian length and a `WatchEvent`; `undefined` when the object has no
 * protobuf form.
 */
export function encodeWatchFrame(type: string, object: JsonObject): Uint8Array | undefined {
  const writer = new WireWriter();
  writer.raw(new Uint8Array(4));
  writer.byte(0x0a);
  writer.string(type);
  writer.byte(0x12);
  const extension = writer.open();
  writer.byte(0x0a);
  const raw = writer.open();
  if (!writeObject(object, writer)) return undefined;
  writer.close(raw);
  writer.close(extension);
  const frame = writer.finish();
  new DataView(frame.buffer, frame.byteOffset).setUint32(0, frame.length - 4);
  return frame;
}
