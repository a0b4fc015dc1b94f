/**
 * Protobuf message to the JSON object Go would print for it (rules: third_party/kubernetes/facts/protobuf.json).
 *
 * Fields come in any order, unknown ones are skipped, the last occurrence of a single field wins. Work is
 * bounded: nesting by {@link maxDepth}, and the number of messages by {@link maxMessages}, because an empty
 * message takes two bytes on the wire and many in memory.
 */
import { CodedError, type JsonObject } from "@kontinuum/std";
import { message as messageNamed, type Field, type Message, type ValueType } from "./messages.ts";
import { specialMessages, type Recursion } from "./special.ts";
import type { WireReader } from "./wire.ts";
import { absent, fillAbsent, setKey } from "./zero.ts";

/** Deepest nesting of messages that is decoded (JSON schemas are the deepest real case). */
export const maxDepth = 128;
/** Most messages decoded from one body: a full list of the largest body has fewer. */
export const maxMessages = 400_000;

/** Decodes one body; holds the bounds across it. */
export class Decoding {
  readonly #recursion: Recursion;
  #depth = 0;
  #messages = 0;

  constructor(decodeEnvelope: (bytes: Uint8Array, decoding: Decoding) => unknown) {
    this.#recursion = {
      decode: (name, reader, end) => this.message(messageNamed(name), reader, end),
      encode: () => undefined,
      decodeEnvelope: (bytes) => decodeEnvelope(bytes, this),
      message: messageNamed,
    };
  }

  /** Reads the message that ends at `end`. */
  message(message: Message, reader: WireReader, end: number): unknown {
    if (++this.#messages > maxMessages) {
      throw new CodedError("payload_too_large", `protobuf: more than ${maxMessages} messages in one body`);
    }
    if (++this.#depth > maxDepth) {
      throw new CodedError("invalid_argument", `protobuf: nested deeper than ${maxDepth} messages`);
    }
    const outer = reader.end;
    reader.end = end;
    try {
      const special = specialMessages.get(message.name);
      if (special !== undefined) return special.decode(reader, end, this.#recursion);
      const object: JsonObject = {};
      this.#fields(message, reader, object);
      fillAbsent(message, object);
      return object;
    } finally {
      reader.position = end;
      reader.end = outer;
      this.#depth--;
    }
  }

  #fields(message: Message, reader: WireReader, object: JsonObject): void {
    while (reader.position < reader.end) {
      const tag = reader.uint32();
      const field = message.byNumber.get(tag >>> 3);
      if (field === undefined) reader.skip(tag & 7);
      else this.#field(field, tag & 7, reader, object);
    }
  }

  #field(field: Field, wireType: number, reader: WireReader, object: JsonObject): void {
    if (wireType !== wireTypeOf(field)) {
      throw new CodedError(
        "invalid_argument",
        `protobuf: wrong wire type ${wireType} for field ${field.number}`,
      );
    }
    if (field.json === null) {
      if (field.inline && "message" in field.value) this.#inline(field.value.message, reader, object);
      else reader.skip(wireType);
      return;
    }
    if (field.shape === "map") {
      this.#entry(field, reader, object);
      return;
    }
    const value = this.#value(field.value, reader);
    if (field.shape === "list") {
      const list = object[field.json];
      if (Array.isArray(list)) list.push(value);
      else object[field.json] = [value];
    } else if (!field.pointer && isZero(value, field)) {
      const shown = absent(field);
      if (shown === undefined) delete object[field.json];
      else object[field.json] = shown;
    } else object[field.json] = value;
  }

  #inline(message: Message, reader: WireReader, object: JsonObject): void {
    const value = this.message(message, reader, reader.delimited());
    if (typeof value === "object" && value !== null) Object.assign(object, value);
  }

  #entry(field: Field, reader: WireReader, object: JsonObject): void {
    const outer = reader.end;
    reader.end = reader.delimited();
    let key = "";
    let value: unknown;
    while (reader.position < reader.end) {
      const tag = reader.uint32();
      if (tag === 0x0a) key = reader.string();
      else if (tag >>> 3 === 2 && (tag & 7) === wireTypeOf(field)) value = this.#value(field.value, reader);
      else reader.skip(tag & 7);
    }
    reader.end = outer;
    const name = field.json ?? "";
    const known = object[name];
    const map: JsonObject = typeof known === "object" && known !== null ? (known as JsonObject) : {};
    object[name] = map;
    setKey(map, key, value ?? emptyValue(field.value));
  }

  #value(type: ValueType, reader: WireReader): unknown {
    if ("message" in type) return this.message(type.message, reader, reader.delimited());
    switch (type.scalar) {
      case "string":
        return reader.string();
      case "bool":
        return reader.int64() !== 0;
      case "int32":
        return reader.int32();
      case "int64":
        return reader.int64();
      case "double":
        return reader.double();
      case "bytes": {
        const view = reader.view();
        return Buffer.from(view.buffer, view.byteOffset, view.length).toString("base64");
      }
    }
  }
}

function wireTypeOf(field: Field): number {
  if (field.shape === "map" || "message" in field.value) return 2;
  const { scalar } = field.value;
  return scalar === "string" || scalar === "bytes" ? 2 : scalar === "double" ? 1 : 0;
}

const isZero = (value: unknown, field: Field): boolean =>
  value === "" || value === 0 || value === false || (value === null && field.omitZero);

/** A map value whose field is missing on the wire. */
function emptyValue(type: ValueType): unknown {
  if ("message" in type) {
    const special = specialMessages.get(type.message.name);
    if (special !== undefined) return special.zero;
    const object: JsonObject = {};
    fillAbsent(type.message, object);
    return object;
  }
  return type.scalar === "string" || type.scalar === "bytes" ? "" : type.scalar === "bool" ? false : 0;
}
