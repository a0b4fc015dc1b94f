/**
 * JSON object to protobuf message, byte for byte as Go's generated encoders write it: ascending field
 * numbers, map keys sorted, plain scalars and messages always, pointers and lists only when set.
 *
 * The input is a normalised object (see `kinds/normalize.ts`); a value of a wrong type is written as the zero
 * value instead of failing, so that any stored object can be answered.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import {
  message as messageNamed,
  type Field,
  type Message,
  type Scalar,
  type ValueType,
} from "./messages.ts";
import { specialMessages, type Recursion, type SpecialMessage } from "./special.ts";
import type { WireWriter } from "./wire.ts";

const recursion: Recursion = {
  decode: () => undefined,
  encode: (name, value, writer) => encodeMessage(messageNamed(name), value, writer),
  decodeEnvelope: () => undefined,
  message: messageNamed,
};

const specials = new Map<Message, SpecialMessage | undefined>();

/** Remembered by identity: looking a long name up for every message costs more than writing most of them. */
function specialOf(message: Message): SpecialMessage | undefined {
  let special = specials.get(message);
  if (special === undefined && !specials.has(message)) {
    special = specialMessages.get(message.name);
    specials.set(message, special);
  }
  return special;
}

/** Writes the fields of a message. */
export function encodeMessage(message: Message, value: unknown, writer: WireWriter): void {
  const special = specialOf(message);
  if (special !== undefined) {
    special.encode(value, writer, recursion);
    return;
  }
  const object: JsonObject = isObject(value) ? value : {};
  for (const field of message.fields) encodeField(field, object, writer);
}

/** Writes a list message whose items come some at a time; its other fields are those of `head`. */
export async function encodeListMessage(
  message: Message,
  head: JsonObject,
  items: AsyncIterable<readonly JsonObject[]>,
  writer: WireWriter,
): Promise<void> {
  for (const field of message.fields) {
    if (field.json === "items") {
      for await (const some of items)
        for (const item of some) encodeValue(field.number, field.value, item, writer);
    } else encodeField(field, head, writer);
  }
}

function encodeField(field: Field, object: JsonObject, writer: WireWriter): void {
  if (field.json === null) {
    if (field.inline && "message" in field.value) nested(field.number, field.value.message, object, writer);
    return;
  }
  const value = object[field.json];
  if (field.shape === "list") {
    if (Array.isArray(value)) for (const item of value) encodeValue(field.number, field.value, item, writer);
  } else if (field.shape === "map") {
    if (isObject(value)) encodeMap(field, value, writer);
  } else if (value !== undefined && value !== null) encodeValue(field.number, field.value, value, writer);
  else if (!field.pointer && !unsetWrapper(field)) encodeValue(field.number, field.value, undefined, writer);
}

const wrappers: ReadonlySet<string> = new Set([
  "apimachinery.pkg.apis.meta.v1.Verbs",
  "api.authentication.v1.ExtraValue",
  "api.authorization.v1.ExtraValue",
  "api.certificates.v1.ExtraValue",
]);

/** Absent lists in a wrapper message and absent bytes are not written at all. */
const unsetWrapper = (field: Field): boolean =>
  "message" in field.value ? wrappers.has(field.value.message.name) : field.value.scalar === "bytes";

function encodeMap(field: Field, map: JsonObject, writer: WireWriter): void {
  for (const key of Object.keys(map).toSorted(byBytes)) {
    tag(field.number, 2, writer);
    const start = writer.open();
    writer.byte(0x0a);
    writer.string(key);
    const value = map[key];
    if (value !== null && value !== undefined) encodeValue(2, field.value, value, writer);
    else if ("message" in field.value || field.value.scalar !== "bytes") {
      encodeValue(2, field.value, undefined, writer);
    }
    writer.close(start);
  }
}

/** Byte order of UTF-8, which differs from the order of UTF-16 units beyond the basic plane. */
function byBytes(a: string, b: string): number {
  if (/[\ud800-\udfff]/.test(a + b)) return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

function nested(number: number, message: Message, value: unknown, writer: WireWriter): void {
  tag(number, 2, writer);
  const start = writer.open();
  encodeMessage(message, value, writer);
  writer.close(start);
}

function encodeValue(number: number, type: ValueType, value: unknown, writer: WireWriter): void {
  if ("message" in type) {
    nested(number, type.message, value, writer);
    return;
  }
  tag(number, wireTypes[type.scalar], writer);
  switch (type.scalar) {
    case "string":
      writer.string(typeof value === "string" ? value : "");
      break;
    case "bool":
      writer.byte(value === true ? 1 : 0);
      break;
    case "double":
      writer.double(typeof value === "number" ? value : Number(value ?? 0));
      break;
    case "bytes":
      writer.bytes(typeof value === "string" ? Buffer.from(value, "base64") : new Uint8Array());
      break;
    default:
      writer.int64(integer(value));
  }
}

function integer(value: unknown): number | bigint {
  if (typeof value === "bigint") return value;
  return typeof value === "number" && Number.isInteger(value) ? value : 0;
}

const wireTypes: Readonly<Record<Scalar, number>> = {
  string: 2,
  bytes: 2,
  double: 1,
  bool: 0,
  int32: 0,
  int64: 0,
};

function tag(number: number, wireType: number, writer: WireWriter): void {
  writer.uint32(number * 8 + wireType);
}
