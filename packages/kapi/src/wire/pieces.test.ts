/**
 * Long lists on the wire: the same objects whatever the form, clients that leave or do not read, and short ones.
 */
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { at } from "@kontinuum/std";
import { decodeProtobuf, encodeProtobuf } from "../codec/index.ts";
import { startServer, type ServerFixture } from "../server.fixture.ts";
import { PieceBuilder, pieceBytes, writePieces } from "./pieces.ts";

const path = "/api/v1/namespaces/default/configmaps";
const count = 1500;
let fixture: ServerFixture;
before(async () => {
  const seed: Record<string, string> = {};
  for (let i = 0; i < count; i++) {
    const metadata = { name: `c${String(i).padStart(5, "0")}`, namespace: "default", uid: String(i) };
    seed[`/registry/configmaps/default/${metadata.name}`] = JSON.stringify({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata,
      data: { text: `${i}é`.repeat(200) },
    });
  }
  fixture = await startServer({ listen: { port: 0 }, housekeeping: false }, seed);
});
after(() => fixture.stop());

function get(headers: Record<string, string>): Promise<http.IncomingMessage> {
  const { port } = fixture.server;
  return new Promise((resolve, reject) => {
    http.get({ port, host: "127.0.0.1", path, headers }, resolve).on("error", reject);
  });
}

async function bytesOf(response: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function names(body: unknown, key: string, ...below: string[]): unknown[] {
  const items = at(body, key);
  assert.ok(Array.isArray(items));
  return items.map((item: unknown) => at(item, ...below, "metadata", "name"));
}

test("a long list is the same in every form", async () => {
  const plain = await get({});
  assert.equal(plain.headers["content-length"], undefined);
  const bytes = await bytesOf(plain);
  assert.ok(bytes.length > 4 * pieceBytes);
  const list: unknown = JSON.parse(bytes.toString());
  const expected = Array.from({ length: count }, (_, i) => `c${String(i).padStart(5, "0")}`);
  assert.deepEqual(names(list, "items"), expected);
  assert.equal(at(list, "items", 7, "data", "text"), "7é".repeat(200));
  const zipped = await get({ "accept-encoding": "gzip" });
  assert.equal(zipped.headers["content-encoding"], "gzip");
  assert.deepEqual(await promisify(gunzip)(await bytesOf(zipped)), bytes);
  const table = await bytesOf(await get({ accept: "application/json;as=Table;v=v1;g=meta.k8s.io" }));
  assert.deepEqual(names(JSON.parse(table.toString()), "rows", "object"), names(list, "items"));
  const partial = await bytesOf(
    await get({ accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" }),
  );
  assert.deepEqual(names(JSON.parse(partial.toString()), "items"), names(list, "items"));
  const binary = await bytesOf(await get({ accept: "application/vnd.kubernetes.protobuf" }));
  const decoded = decodeProtobuf(binary);
  assert.deepEqual(names(decoded, "items"), names(list, "items"));
  assert.deepEqual(Buffer.from(encodeProtobuf(decoded) ?? []), binary);
  const inside = await fixture.ask("GET", path);
  assert.equal(inside.text, bytes.toString());
});

test("a client that leaves in the middle harms nobody", async () => {
  for (const headers of [{}, { "accept-encoding": "gzip" }]) {
    const response = await get(headers);
    await new Promise((resolve) => response.once("data", resolve));
    response.destroy();
  }
  assert.equal((await fixture.ask("GET", `${path}/c00000`)).status, 200);
});

for (const what of ["list", "object"]) {
  test(`whoever reads nothing of a large ${what} loses the connection when the request's time is over`, async () => {
    const { port } = fixture.server;
    await fixture.put(
      "/registry/configmaps/default/large",
      JSON.stringify({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "large", namespace: "default", uid: "large" },
        data: { text: "x".repeat(1_000_000) },
      }),
    );
    const socket = net.connect(port, "127.0.0.1");
    socket.pause();
    const isClosed = new Promise<void>((resolve) => socket.on("close", resolve).on("error", () => {}));
    const ask = (target: string): boolean =>
      socket.write(`GET ${target}?timeout=1s HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    // More than the kernel's buffers hold.
    for (let i = 0; i < 40; i++) ask(what === "list" ? path : `${path}/large`);
    // Only writing shows a client that does not read that its connection is gone.
    const timer = setInterval(() => ask("/healthz"), 50);
    try {
      await isClosed;
    } finally {
      clearInterval(timer);
      socket.destroy();
    }
  });
}

test("a short list says its length", async () => {
  const { port } = fixture.server;
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/namespaces`);
  assert.ok(Number(response.headers.get("content-length")) > 0);
  assert.ok(Array.isArray(at(await response.json(), "items")));
});

test("pieces are the parts in order, whatever their sizes", () => {
  const builder = new PieceBuilder(10);
  const pieces: Buffer[] = [];
  let expected = "";
  for (const size of [0, 5, 20, pieceBytes, pieceBytes - 1, 1, 3 * pieceBytes, 7]) {
    const part = "x".repeat(size);
    expected += `,${part}`;
    const piece = builder.add(",", Buffer.from(part));
    if (piece) pieces.push(piece);
  }
  pieces.push(builder.rest());
  assert.ok(pieces.every(({ length }) => length > 0));
  assert.equal(Buffer.concat(pieces).toString(), expected);
});

test("no piece is made before the client took the one before", async () => {
  const listeners: Record<string, () => void> = {};
  const written: number[] = [];
  let made = 0;
  const response = {
    write: (piece: Uint8Array) => {
      written.push(piece.length);
      return false;
    },
    on: (event: string, listener: () => void) => (listeners[event] = listener),
  };
  function* pieces(): Generator<Buffer> {
    for (;;) yield Buffer.alloc(++made);
  }
  const writing = writePieces(response as never, pieces());
  const settle = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));
  await settle();
  assert.deepEqual([made, written], [1, [1]]);
  listeners["drain"]?.();
  await settle();
  assert.deepEqual([made, written], [2, [1, 2]]);
  listeners["close"]?.();
  await writing;
  assert.equal(written.length, 2);
});
