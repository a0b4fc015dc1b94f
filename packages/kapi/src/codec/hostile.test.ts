import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { CodedError, isObject, seededRandom, type JsonObject } from "@kontinuum/std";
import { decodeProtobuf, encodeProtobuf, encodeWatchFrame } from "./index.ts";
import { maxDepth, maxMessages } from "./decode.ts";
import { WireWriter } from "./wire.ts";

const roundtrip = new URL("../../../../third_party/kubernetes/testdata/roundtrip/", import.meta.url);
const vectors = readdirSync(roundtrip)
  .filter((name) => name.endsWith(".pb"))
  .map((name) => readFileSync(new URL(name, roundtrip)));

/** Decoding either works or fails in the way a client can be told. */
function decodes(bytes: Uint8Array): boolean {
  try {
    assert.ok(isObject(decodeProtobuf(bytes)));
    return true;
  } catch (error) {
    assert.ok(error instanceof CodedError, String(error));
    assert.ok(error.code === "invalid_argument" || error.code === "payload_too_large", error.code);
    return false;
  }
}

test("random bytes behind the magic are refused, never fatal", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      decodes(Buffer.concat([Buffer.from("k8s\0"), bytes]));
      decodes(bytes);
    }),
    { numRuns: 500 },
  );
});

test("damaged bodies are refused or read, never fatal", () => {
  const random = seededRandom(7);
  for (let round = 0; round < 3000; round++) {
    const original = vectors[random.integer(vectors.length)] ?? new Uint8Array();
    const bytes = Uint8Array.from(original);
    for (let flips = 1 + random.integer(4); flips > 0; flips--) {
      bytes[4 + random.integer(bytes.length - 4)] = random.integer(256);
    }
    decodes(bytes);
  }
});

test("a body cut anywhere is refused or read, never fatal", () => {
  const body = vectors.toSorted((a, b) => a.length - b.length)[40] ?? new Uint8Array();
  for (let end = 0; end < body.length; end++) decodes(body.subarray(0, end));
});

/** A body of a kind from its raw message. */
function body(apiVersion: string, kind: string, raw: Uint8Array): Uint8Array {
  const writer = new WireWriter();
  writer.raw(Buffer.from("k8s\0"));
  writer.byte(0x0a);
  const meta = writer.open();
  writer.byte(0x0a);
  writer.string(apiVersion);
  writer.byte(0x12);
  writer.string(kind);
  writer.close(meta);
  writer.byte(0x12);
  writer.bytes(raw);
  return writer.finish();
}

test("two bytes may not become unbounded memory", () => {
  // PodSpec.containers of a Pod: empty messages, two bytes each.
  const empty = Buffer.alloc(2 * (maxMessages + 10));
  for (let at = 0; at < empty.length; at += 2) empty[at] = 0x12;
  const spec = new WireWriter();
  spec.byte(0x12);
  spec.bytes(empty);
  assert.throws(
    () => decodeProtobuf(body("v1", "Pod", spec.finish())),
    (error) => error instanceof CodedError && error.code === "payload_too_large",
  );
});

test("nesting is bounded", () => {
  // JSONSchemaProps.not (field 28) inside itself.
  let schema: Uint8Array = new Uint8Array();
  for (let depth = 0; depth < maxDepth + 20; depth++) {
    const writer = new WireWriter();
    writer.uint32(28 * 8 + 2);
    writer.bytes(schema);
    schema = writer.finish();
  }
  const wrap = (number: number, inner: Uint8Array): Uint8Array => {
    const writer = new WireWriter();
    writer.uint32(number * 8 + 2);
    writer.bytes(inner);
    return writer.finish();
  };
  // CustomResourceDefinition.spec.versions.schema.openAPIV3Schema
  const raw = wrap(2, wrap(7, wrap(4, wrap(1, schema))));
  assert.throws(
    () => decodeProtobuf(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw)),
    (error) => error instanceof CodedError && /nested deeper/.test(error.message),
  );
});

test("what is not ours is named", () => {
  assert.throws(() => decodeProtobuf(Buffer.from('{"kind":"Pod"}')), /expected prefix/);
  assert.throws(
    () => decodeProtobuf(body("example.io/v1", "Widget", new Uint8Array())),
    /no kind "Widget" is registered for version "example.io\/v1"/,
  );
  assert.equal(encodeProtobuf({ apiVersion: "example.io/v1", kind: "Widget" }), undefined);
  assert.equal(encodeProtobuf({}), undefined);
  assert.equal(encodeWatchFrame("ADDED", { apiVersion: "example.io/v1", kind: "Widget" }), undefined);
});

test("options are read in whatever group version they come", () => {
  for (const apiVersion of ["v1", "meta.k8s.io/v1", "apps/v1", "batch/v1"]) {
    const bytes = encodeProtobuf({
      apiVersion,
      kind: "DeleteOptions",
      propagationPolicy: "Background",
      gracePeriodSeconds: 0,
    });
    assert.ok(bytes);
    assert.deepEqual(decodeProtobuf(bytes), {
      apiVersion,
      kind: "DeleteOptions",
      propagationPolicy: "Background",
      gracePeriodSeconds: 0,
    });
  }
});

test("a list carries its items without their type", () => {
  const list = {
    kind: "ConfigMapList",
    apiVersion: "v1",
    metadata: { resourceVersion: "5" },
    items: [
      { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" }, data: { b: "c" } },
      { metadata: { name: "b" } },
    ],
  };
  const bytes = encodeProtobuf(list);
  assert.ok(bytes);
  assert.deepEqual(decodeProtobuf(bytes)["items"], [
    { metadata: { name: "a" }, data: { b: "c" } },
    { metadata: { name: "b" } },
  ]);
  const none = encodeProtobuf({ kind: "ConfigMapList", apiVersion: "v1", metadata: {}, items: [] });
  assert.ok(none);
});

test("a watch frame holds an enveloped object behind its length", () => {
  const object: JsonObject = {
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { name: "a" },
    data: { a: "b" },
  };
  const frame = encodeWatchFrame("MODIFIED", object);
  assert.ok(frame);
  const buffer = Buffer.from(frame);
  assert.equal(buffer.readUInt32BE(0), buffer.length - 4);
  const event = decodeProtobuf(body("v1", "WatchEvent", buffer.subarray(4)));
  assert.equal(event["type"], "MODIFIED");
  assert.deepEqual(event["object"], object);
});

test("a map key named __proto__ is data", () => {
  const object = JSON.parse(
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{"__proto__":"x"}}',
  ) as JsonObject;
  const bytes = encodeProtobuf(object);
  assert.ok(bytes);
  assert.equal(JSON.stringify(decodeProtobuf(bytes)["data"]), '{"__proto__":"x"}');
});
