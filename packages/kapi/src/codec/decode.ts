/**
 * Protobuf message to the JSON object Go would print for it (rules: third_party/kubernetes/facts/protobuf.json).
 *
 * Fields come in any order, unknown ones are skipped, the last occurrence of a single field wins. Work is
 * bounded: nesting by {@link maxDepth}, and the number of messages by {@link maxMessages}, because an empty
 * message takes two bytes on the wire and many in memory.
 */
import { setOwn } from "../json/json.ts";
import { CodedError, type JsonObject } from "@kontinuum/std";
import { message as messageNamed, type Field, type Message, type ValueType } from "./messages.ts";
import { specialMessages, type Recursion, type SpecialMessage } from "./special.ts";
import type { WireReader } from "./wire.ts";
import { absent, fillAbsent } from "./zero.ts";

/** Deepest nesting of messages that is decoded (JSON schemas are the deepest real case). */
export const maxDepth = 128;
/** Most messages decoded from one body: a full list of the largest body has fewer. */
export const maxMessages = 400_000;

/** What decoding needs of a message, looked up once. */
interface Plan {
  readonly message: Message;
  readonly special: SpecialMessage | undefined;
  /** By field number. */
  readonly fields: readonly (FieldPlan | undefined)[];
}

interface FieldPlan {
  readonly field: Field;
  readonly wireType: number;
  /** Plan of the field's message; made when first met, because types are recursive. */
  plan: Plan | undefined;
}

const plans = new Map<Message, Plan>();

function planOf(message: Message): Plan {
  const known = plans.get(message);
  if (known !== undefined) return known;
  const fields: (FieldPlan | undefined)[] = [];
  for (const field of message.fields) {
    fields[field.number] = { field, wireType: wireTypeOf(field), plan: undefined };
  }
  const made: Plan = { message, special: specialMessages.get(message.name), fields };
  plans.set(message, made);
  return made;
}

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
    return this.#planned(planOf(message), reader, end);
  }

  #planned(plan: Plan, reader: WireReader, end: number): unknown {
    if (++this.#messages > maxMessages) {
      throw new CodedError("payload_too_large", `protobuf: more than ${maxMessages} messages in one body`);
    }
    if (++this.#depth > maxDepth) {
      throw new CodedError("invalid_argument", `protobuf: nested deeper than ${maxDepth} messages`);
    }
    const outer = reader.end;
    reader.end = end;
    let value: unknown;
    if (plan.special !== undefined) value = plan.special.decode(reader, end, this.#recursion);
    else {
      const object: JsonObject = {};
      this.#fields(plan, reader, object);
      fillAbsent(plan.message, object);
      value = object;
    }
    reader.position = end;
    reader.end = outer;
    this.#depth--;
    return value;
  }

  #fields(plan: Plan, reader: WireReader, object: JsonObject): void {
    while (reader.position < reader.end) {
      const tag = reader.uint32();
      const found = plan.fields[tag >>> 3];
      if (found === undefined) {
        reader.skip(tag & 7);
        continue;
      }
      if ((tag & 7) !== found.wireType) {
        throw new CodedError(
          "invalid_argument",
          `protobuf: wrong wire type ${tag & 7} for field ${tag >>> 3}`,
        );
      }
      this.#field(found, reader, object);
    }
  }

  #field(found: FieldPlan, reader: WireReader, object: JsonObject): void {
    const { field } = found;
    if (field.json === null) {
      if (!field.inline || !("message" in field.value)) reader.skip(found.wireType);
      else {
        const inlined = this.message(field.value.message, reader, reader.delimited());
        if (typeof inlined === "object" && inlined !== null) Object.assign(object, inlined);
      }
      return;
    }
    if (field.shape === "map") {
      this.#entry(found, reader, object);
      return;
    }
    const value = this.#value(found, reader);
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

  #entry(found: FieldPlan, reader: WireReader, object: JsonObject): void {
    const { field } = found;
    const outer = reader.end;
    const end = reader.delimited();
    reader.end = end;
    let key = "";
    let value: unknown;
    const wireType = valueWireType(field.value);
    while (reader.position < end) {
      const tag = reader.uint32();
      if (tag === 0x0a) key = reader.string();
      else if (tag >>> 3 === 2 && (tag & 7) === wireType) value = this.#value(found, reader);
      else reader.skip(tag & 7);
    }
    reader.end = outer;
    const name = field.json ?? "";
    const known = object[name];
    const map: JsonObject = typeof known === "object" && known !== null ? (known as JsonObject) : {};
    object[name] = map;
    setOwn(map, key, value ?? emptyValue(field.value));
  }

  #value(found: FieldPlan, reader: WireReader): unknown {
    const type = found.field.value;
    if ("message" in type) {
      return this.#planned((found.plan ??= planOf(type.message)), reader, reader.delimited());
    }
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

const wireTypeOf = (field: Field): number => (field.shape === "map" ? 2 : valueWireType(field.value));

function valueWireType(type: ValueType): number {
  if ("message" in type) return 2;
  return type.scalar === "string" || type.scalar === "bytes" ? 2 : type.scalar === "double" ? 1 : 0;
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
