/**
 * The messages whose JSON form is not an object of their fields (Kubernetes API conventions; the rules are
 * listed under `special` in third_party/kubernetes/facts/protobuf.json).
 *
 * Each knows how to read itself from the wire, write itself to it, and what its zero value is in JSON.
 */
import { isObject } from "@kontinuum/std";
import { parseJson, stringifyJson } from "../json/json.ts";
import type { Message } from "./messages.ts";
import { formatDuration, formatTime, parseDuration, parseTime } from "./time.ts";
import type { WireReader, WireWriter } from "./wire.ts";

const utf8 = new TextDecoder();

/** How the recursive parts of a special message are read and written. */
export interface Recursion {
  decode(message: string, reader: WireReader, end: number): unknown;
  encode(message: string, value: unknown, writer: WireWriter): void;
  /** A complete object with its own envelope inside bytes. */
  decodeEnvelope(bytes: Uint8Array): unknown;
  message(name: string): Message;
}

/** One special message. */
export interface SpecialMessage {
  /** JSON form of the zero value. */
  readonly zero: unknown;
  decode(reader: WireReader, end: number, recursion: Recursion): unknown;
  encode(value: unknown, writer: WireWriter, recursion: Recursion): void;
}

/** Calls `take` for every field number until `end`; what it does not take is skipped. */
function eachField(reader: WireReader, end: number, take: (number: number) => boolean): void {
  const outer = reader.end;
  reader.end = end;
  while (reader.position < end) {
    const tag = reader.uint32();
    if (!take(tag >>> 3)) reader.skip(tag & 7);
  }
  reader.end = outer;
}

const timeOf = (micro: boolean): SpecialMessage => ({
  zero: null,
  decode(reader, end) {
    if (reader.position >= end) return null;
    let seconds = 0;
    let nanos = 0;
    eachField(reader, end, (number) => {
      if (number === 1) seconds = Number(reader.int64());
      else if (number === 2) nanos = reader.int32();
      else return false;
      return true;
    });
    return formatTime({ seconds, nanos: micro ? nanos : 0 }, micro);
  },
  encode(value, writer) {
    const time = typeof value === "string" ? parseTime(value) : undefined;
    if (time === undefined) return;
    writer.byte(0x08);
    writer.int64(time.seconds);
    writer.byte(0x10);
    writer.int64(micro ? time.nanos - (time.nanos % 1000) : 0);
  },
});

const quantity: SpecialMessage = {
  zero: "0",
  decode(reader, end) {
    let text = "";
    eachField(reader, end, (number) => number === 1 && ((text = reader.string()), true));
    return text === "" ? "0" : text;
  },
  encode(value, writer) {
    writer.byte(0x0a);
    writer.string(typeof value === "string" ? value : typeof value === "number" ? String(value) : "0");
  },
};

const intOrString: SpecialMessage = {
  zero: 0,
  decode(reader, end) {
    let type = 0;
    let number = 0;
    let text = "";
    eachField(reader, end, (field) => {
      if (field === 1) type = Number(reader.int64());
      else if (field === 2) number = reader.int32();
      else if (field === 3) text = reader.string();
      else return false;
      return true;
    });
    return type === 0 ? number : text;
  },
  encode(value, writer) {
    const text = typeof value === "string";
    writer.byte(0x08);
    writer.byte(text ? 1 : 0);
    writer.byte(0x10);
    writer.int64(typeof value === "number" ? value : 0);
    writer.byte(0x1a);
    writer.string(text ? value : "");
  },
};

/** `{raw=1}` that holds JSON text, or (in watch events and lists) a whole enveloped object. */
const rawJson: SpecialMessage = {
  zero: null,
  decode(reader, end, recursion) {
    let raw: Uint8Array | undefined;
    eachField(reader, end, (number) => number === 1 && ((raw = reader.view()), true));
    if (raw === undefined || raw.length === 0) return null;
    return raw[0] === 0x6b && raw[1] === 0x38 && raw[2] === 0x73 && raw[3] === 0
      ? recursion.decodeEnvelope(raw)
      : parseJson(utf8.decode(raw));
  },
  encode(value, writer) {
    if (value === undefined || value === null) return;
    writer.byte(0x0a);
    writer.string(stringifyJson(value));
  },
};

/** `{items: repeated string=1}` that is a plain array. */
const stringList: SpecialMessage = {
  zero: null,
  decode(reader, end) {
    const items: string[] = [];
    eachField(reader, end, (number) => number === 1 && (items.push(reader.string()), true));
    return items;
  },
  encode(value, writer) {
    for (const item of Array.isArray(value) ? value : []) {
      writer.byte(0x0a);
      writer.string(typeof item === "string" ? item : "");
    }
  },
};

const duration: SpecialMessage = {
  zero: "0s",
  decode(reader, end) {
    let nanoseconds = 0n;
    eachField(reader, end, (number) => number === 1 && ((nanoseconds = BigInt(reader.int64())), true));
    return formatDuration(nanoseconds);
  },
  encode(value, writer) {
    writer.byte(0x08);
    writer.int64(BigInt.asIntN(64, (typeof value === "string" ? parseDuration(value) : undefined) ?? 0n));
  },
};

const schemaName = "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

function writeSchema(value: unknown, tag: number, writer: WireWriter, recursion: Recursion): void {
  writer.byte(tag);
  const start = writer.open();
  recursion.encode(schemaName, value, writer);
  writer.close(start);
}

const schemaOrBool: SpecialMessage = {
  zero: false,
  decode(reader, end, recursion) {
    let allows = false;
    let schema: unknown;
    eachField(reader, end, (number) => {
      if (number === 1) allows = reader.int64() !== 0;
      else if (number === 2) schema = recursion.decode(schemaName, reader, reader.delimited());
      else return false;
      return true;
    });
    return schema ?? allows;
  },
  encode(value, writer, recursion) {
    writer.byte(0x08);
    writer.byte(value === true || isObject(value) ? 1 : 0);
    if (isObject(value)) writeSchema(value, 0x12, writer, recursion);
  },
};

const schemaOrArray: SpecialMessage = {
  zero: null,
  decode(reader, end, recursion) {
    let schema: unknown = null;
    const list: unknown[] = [];
    eachField(reader, end, (number) => {
      if (number === 1) schema = recursion.decode(schemaName, reader, reader.delimited());
      else if (number === 2) list.push(recursion.decode(schemaName, reader, reader.delimited()));
      else return false;
      return true;
    });
    return list.length > 0 ? list : schema;
  },
  encode(value, writer, recursion) {
    if (Array.isArray(value)) for (const item of value) writeSchema(item, 0x12, writer, recursion);
    else if (isObject(value)) writeSchema(value, 0x0a, writer, recursion);
  },
};

const schemaOrStrings: SpecialMessage = {
  zero: null,
  decode(reader, end, recursion) {
    let schema: unknown = null;
    const list: string[] = [];
    eachField(reader, end, (number) => {
      if (number === 1) schema = recursion.decode(schemaName, reader, reader.delimited());
      else if (number === 2) list.push(reader.string());
      else return false;
      return true;
    });
    return list.length > 0 ? list : schema;
  },
  encode(value, writer, recursion) {
    if (isObject(value)) writeSchema(value, 0x0a, writer, recursion);
    for (const item of Array.isArray(value) ? value : []) {
      writer.byte(0x12);
      writer.string(typeof item === "string" ? item : "");
    }
  },
};

const extensions = "apiextensions-apiserver.pkg.apis.apiextensions.v1";

/** Special messages by name. */
export const specialMessages: ReadonlyMap<string, SpecialMessage> = new Map([
  ["apimachinery.pkg.apis.meta.v1.Time", timeOf(false)],
  ["apimachinery.pkg.apis.meta.v1.MicroTime", timeOf(true)],
  ["apimachinery.pkg.apis.meta.v1.Duration", duration],
  ["apimachinery.pkg.apis.meta.v1.FieldsV1", rawJson],
  ["apimachinery.pkg.apis.meta.v1.Verbs", stringList],
  ["api.authentication.v1.ExtraValue", stringList],
  ["api.authorization.v1.ExtraValue", stringList],
  ["api.certificates.v1.ExtraValue", stringList],
  ["apimachinery.pkg.api.resource.Quantity", quantity],
  ["apimachinery.pkg.api.resource.QuantityValue", quantity],
  ["apimachinery.pkg.util.intstr.IntOrString", intOrString],
  ["apimachinery.pkg.runtime.RawExtension", rawJson],
  [`${extensions}.JSON`, rawJson],
  [`${extensions}.JSONSchemaPropsOrBool`, schemaOrBool],
  [`${extensions}.JSONSchemaPropsOrArray`, schemaOrArray],
  [`${extensions}.JSONSchemaPropsOrStringArray`, schemaOrStrings],
]);
