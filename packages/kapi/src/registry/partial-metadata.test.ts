/**
 * Metadata alone in protobuf: what metadata informers ask for first, and get of every kind.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { decodeProtobuf } from "../codec/index.ts";
import { widgetCrd } from "../crd/widget.fixture.ts";
import { startServer, type ServerFixture } from "../server.fixture.ts";

let fixture: ServerFixture;
const cms = "/api/v1/namespaces/default/configmaps";
const widgets = "/apis/example.io/v1/namespaces/default/widgets";

before(async () => {
  fixture = await startServer({
    kinds: ["namespaces", "configmaps", "customresourcedefinitions.apiextensions.k8s.io"],
    crds: [widgetCrd()],
  });
  const labels = { a: "b" };
  assert.equal((await fixture.ask("POST", cms, { metadata: { name: "one", labels } })).status, 201);
  const widget = { apiVersion: "example.io/v1", kind: "Widget", metadata: { name: "one", labels }, spec: {} };
  const made = await fixture.ask("POST", widgets, widget);
  assert.equal(made.status, 201, made.text);
});
after(() => fixture.stop());

/** Asks as client-go's metadata client does; answers the content type and the first bytes of the body. */
async function ask(
  path: string,
  as: string,
): Promise<{ readonly type: string; readonly chunks: AsyncIterator<Uint8Array> }> {
  const form = `as=${as};g=meta.k8s.io;v=v1`;
  const accept = `application/vnd.kubernetes.protobuf;${form},application/json;${form},application/json`;
  const transport = fixture.server.transport(fixture.server.loopback);
  const response = await transport({ method: "GET", path, headers: { accept } });
  assert.equal(response.status, 200);
  return {
    type: String(response.headers["content-type"]),
    chunks: response.body[Symbol.asyncIterator](),
  };
}

async function whole(path: string, as: string): Promise<JsonObject> {
  const { type, chunks } = await ask(path, as);
  assert.equal(type, "application/vnd.kubernetes.protobuf");
  const parts: Uint8Array[] = [];
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) parts.push(next.value);
  return decodeProtobuf(Buffer.concat(parts));
}

for (const [what, url] of [
  ["a built-in kind", cms],
  ["a custom kind", widgets],
] as const) {
  test(`metadata of ${what}, one and all`, async () => {
    const list = await whole(`${url}?labelSelector=a=b`, "PartialObjectMetadataList");
    assert.equal(list["kind"], "PartialObjectMetadataList");
    const items = at(list, "items");
    assert.ok(Array.isArray(items) && isObject(items[0]));
    assert.deepEqual(Object.keys(items[0]), ["metadata"]);
    const one = await whole(`${url}/one`, "PartialObjectMetadata");
    assert.deepEqual(at(one, "metadata"), at(items, 0, "metadata"));
    assert.deepEqual(at(one, "metadata", "labels"), { a: "b" });
  });

  test(`a watch of the metadata of ${what}`, async () => {
    const { type, chunks } = await ask(`${url}?watch=1&labelSelector=a=b`, "PartialObjectMetadata");
    assert.equal(type, "application/vnd.kubernetes.protobuf;stream=watch");
    const { value } = await chunks.next();
    assert.ok(value instanceof Uint8Array);
    const text = Buffer.from(value).toString("latin1");
    assert.match(text, /ADDED[^]*meta\.k8s\.io\/v1[^]*PartialObjectMetadata[^]*one/);
    await chunks.return?.();
  });
}
