import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { isObject } from "@kontinuum/std";
import { decodeProtobuf, encodeProtobuf } from "./index.ts";
import { parseJson } from "../json/json.ts";
import { encodeMessage } from "./encode.ts";
import { message } from "./messages.ts";
import { WireWriter } from "./wire.ts";

const roundtrip = new URL("../../../../third_party/kubernetes/testdata/roundtrip/", import.meta.url);
const samples = new URL("../../testdata/protobuf-samples/", import.meta.url);

const cases = [
  ...readdirSync(roundtrip)
    .filter((name) => name.endsWith(".pb"))
    .map((name) => ({ name, folder: roundtrip, json: name.replace(/\.pb$/, ".json") })),
  ...readdirSync(samples)
    .filter((name) => name.endsWith(".bin"))
    .map((name) => ({ name, folder: samples, json: name.replace(/\.bin$/, ".json") })),
];

test("every published vector and every recorded kubectl body is there", () => {
  assert.equal(cases.length, 93 + 35);
});

for (const { name, folder, json } of cases) {
  const bytes = readFileSync(new URL(name, folder));
  const expected = parseJson(readFileSync(new URL(json, folder), "utf8"));

  test(`decode ${name}`, () => {
    assert.deepEqual(decodeProtobuf(bytes), expected);
  });

  test(`encode ${name}`, () => {
    assert.ok(isObject(expected));
    if (name === "core.v1.WatchEvent.pb") {
      // Its envelope is empty, so only the message inside is ours to write.
      const writer = new WireWriter();
      encodeMessage(message("apimachinery.pkg.apis.meta.v1.WatchEvent"), expected, writer);
      assert.ok(bytes.includes(Buffer.from(writer.finish())));
      return;
    }
    const encoded = encodeProtobuf(expected);
    assert.ok(encoded !== undefined);
    assert.equal(Buffer.from(encoded).toString("hex"), bytes.toString("hex"));
  });
}
