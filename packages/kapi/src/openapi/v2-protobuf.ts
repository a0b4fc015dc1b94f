/**
 * The OpenAPI v2 document as a gnostic protobuf message (github.com/google/gnostic, openapiv2/OpenAPIv2.proto;
 * its field numbers are the numbers below): what older kubectl commands, Argo CD and Pulumi read.
 *
 * Proto3: empty texts, zeros and false are not written. Values of any shape travel as YAML text, of which JSON
 * is a part.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { WireWriter } from "../codec/wire.ts";
import { stringifyJson } from "../json/json.ts";

/** Media type of the protobuf form. Clients ask for the form with `@`, too, but cannot parse it in an answer. */
export const openapiV2ProtobufType = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

type Write = (writer: Sink) => void;

/** Writes fields of a proto3 message. */
class Sink {
  readonly writer: WireWriter;

  constructor(writer: WireWriter) {
    this.writer = writer;
  }

  message(number: number, write: Write): void {
    this.writer.uint32(number * 8 + 2);
    const start = this.writer.open();
    write(this);
    this.writer.close(start);
  }

  text(number: number, value: unknown): void {
    if (typeof value !== "string" || value === "") return;
    this.writer.uint32(number * 8 + 2);
    this.writer.string(value);
  }

  texts(number: number, value: unknown): void {
    if (Array.isArray(value)) for (const item of value) this.text(number, item);
  }

  flag(number: number, value: unknown): void {
    if (value !== true) return;
    this.writer.uint32(number * 8);
    this.writer.byte(1);
  }

  integer(number: number, value: unknown): void {
    if (typeof value !== "number" || !Number.isInteger(value) || value === 0) return;
    this.writer.uint32(number * 8);
    this.writer.int64(value);
  }

  double(number: number, value: unknown): void {
    if (typeof value !== "number" || value === 0) return;
    this.writer.uint32(number * 8 + 1);
    this.writer.double(value);
  }

  any(number: number, value: unknown): void {
    if (value !== undefined) this.message(number, (sink) => sink.text(2, stringifyJson(value)));
  }

  /** `{name=1, value=2}` for every entry. */
  named(number: number, map: unknown, write: (sink: Sink, value: unknown) => void): void {
    if (!isObject(map)) return;
    for (const [name, value] of Object.entries(map)) {
      this.message(number, (sink) => {
        sink.text(1, name);
        sink.message(2, (inner) => write(inner, value));
      });
    }
  }

  extensions(number: number, object: JsonObject): void {
    for (const [name, value] of Object.entries(object)) {
      if (!name.startsWith("x-")) continue;
      this.message(number, (sink) => {
        sink.text(1, name);
        sink.any(2, value);
      });
    }
  }
}

const object = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** The bytes of a v2 document. */
export function encodeOpenapiV2(document: JsonObject): Uint8Array {
  const sink = new Sink(new WireWriter(4 * 1024 * 1024));
  const info = object(document.info);
  sink.text(1, document.swagger);
  sink.message(2, (inner) => {
    inner.text(1, info.title);
    inner.text(2, info.version);
  });
  sink.message(8, (paths) => paths.named(2, document.paths, writePath));
  sink.message(9, (definitions) => definitions.named(1, document.definitions, writeSchema));
  for (const requirement of Array.isArray(document.security) ? document.security : []) {
    sink.message(12, (inner) => inner.named(1, requirement, (scopes, value) => scopes.texts(1, value)));
  }
  sink.message(13, (definitions) => definitions.named(1, document.securityDefinitions, writeSecurity));
  return sink.writer.finish();
}

function writeSecurity(sink: Sink, value: unknown): void {
  const security = object(value);
  sink.message(2, (key) => {
    key.text(1, security.type);
    key.text(2, security.name);
    key.text(3, security.in);
    key.text(4, security.description);
  });
}

const operations = { get: 2, put: 3, post: 4, delete: 5, patch: 8 } as const;

function writePath(sink: Sink, value: unknown): void {
  const path = object(value);
  for (const [method, number] of Object.entries(operations)) {
    const operation = path[method];
    if (isObject(operation)) sink.message(number, (inner) => writeOperation(inner, operation));
  }
  writeParameters(sink, 9, path.parameters);
  sink.extensions(10, path);
}

function writeOperation(sink: Sink, operation: JsonObject): void {
  sink.texts(1, operation.tags);
  sink.text(3, operation.description);
  sink.text(5, operation.operationId);
  sink.texts(6, operation.produces);
  sink.texts(7, operation.consumes);
  writeParameters(sink, 8, operation.parameters);
  sink.message(9, (responses) =>
    responses.named(1, operation.responses, (value, response) =>
      value.message(1, (inner) => writeResponse(inner, object(response))),
    ),
  );
  sink.texts(10, operation.schemes);
  sink.extensions(13, operation);
}

function writeResponse(sink: Sink, response: JsonObject): void {
  sink.text(1, response.description);
  if (isObject(response.schema))
    sink.message(2, (item) => item.message(1, (inner) => writeSchema(inner, response.schema)));
}

function writeParameters(sink: Sink, number: number, list: unknown): void {
  for (const item of Array.isArray(list) ? list : []) {
    const parameter = object(item);
    sink.message(number, (outer) => outer.message(1, (inner) => writeParameter(inner, parameter)));
  }
}

function writeParameter(sink: Sink, parameter: JsonObject): void {
  if (parameter.in === "body") {
    sink.message(1, (body) => {
      body.text(1, parameter.description);
      body.text(2, parameter.name);
      body.text(3, parameter.in);
      body.flag(4, parameter.required);
      body.message(5, (inner) => writeSchema(inner, parameter.schema));
    });
    return;
  }
  // Query and path parameters differ by one field, which moves the numbers behind it.
  const inPath = parameter.in === "path";
  const shift = inPath ? 0 : 1;
  sink.message(2, (nonBody) =>
    nonBody.message(inPath ? 4 : 3, (inner) => {
      inner.flag(1, parameter.required);
      inner.text(2, parameter.in);
      inner.text(3, parameter.description);
      inner.text(4, parameter.name);
      inner.text(5 + shift, parameter.type);
      inner.text(6 + shift, parameter.format);
      inner.flag(19 + shift, parameter.uniqueItems);
    }),
  );
}

function writeSchema(sink: Sink, value: unknown): void {
  const schema = object(value);
  sink.text(1, schema.$ref);
  sink.text(2, schema.format);
  sink.text(3, schema.title);
  sink.text(4, schema.description);
  sink.any(5, schema.default);
  sink.double(6, schema.multipleOf);
  sink.double(7, schema.maximum);
  sink.flag(8, schema.exclusiveMaximum);
  sink.double(9, schema.minimum);
  sink.flag(10, schema.exclusiveMinimum);
  sink.integer(11, schema.maxLength);
  sink.integer(12, schema.minLength);
  sink.text(13, schema.pattern);
  sink.integer(14, schema.maxItems);
  sink.integer(15, schema.minItems);
  sink.flag(16, schema.uniqueItems);
  sink.integer(17, schema.maxProperties);
  sink.integer(18, schema.minProperties);
  sink.texts(19, schema.required);
  for (const item of Array.isArray(schema.enum) ? schema.enum : []) sink.any(20, item);
  const { additionalProperties: additional } = schema;
  if (isObject(additional))
    sink.message(21, (item) => item.message(1, (inner) => writeSchema(inner, additional)));
  else if (additional === true) sink.message(21, (item) => item.flag(2, true));
  if (typeof schema.type === "string") sink.message(22, (type) => type.text(1, schema.type));
  if (isObject(schema.items))
    sink.message(23, (list) => list.message(1, (inner) => writeSchema(inner, schema.items)));
  if (isObject(schema.properties)) {
    sink.message(25, (properties) => properties.named(1, schema.properties, writeSchema));
  }
  sink.any(30, schema.example);
  sink.extensions(31, schema);
}
