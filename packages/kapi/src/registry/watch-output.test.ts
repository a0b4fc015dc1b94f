/**
 * The bytes of watches as they are on the wire: chunks that every HTTP/1.1 client reads, made once for many.
 */
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import { startServer, type ServerFixture } from "../server.fixture.ts";
import { Pieces } from "./watch-output.ts";

const path = "/api/v1/namespaces/default/configmaps";
let fixture: ServerFixture;
before(async () => {
  fixture = await startServer({ listen: { port: 0 } });
});
after(() => fixture.stop());

/** Everything one answer sends until it ends, and how to wait for a part of it. */
async function get(
  url: string,
  agent?: http.Agent,
): Promise<{
  text: () => string;
  ended: Promise<unknown>;
  response: http.IncomingMessage;
  localPort: number | undefined;
}> {
  const { port } = fixture.server;
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    http
      .get({ port, host: "127.0.0.1", path: url, ...(agent ? { agent } : {}) }, resolve)
      .on("error", reject);
  });
  const { localPort } = response.socket;
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const ended = new Promise((resolve, reject) => response.on("end", resolve).on("error", reject));
  return { text: () => text, ended, response, localPort };
}

async function until(what: () => boolean): Promise<void> {
  for (let i = 0; i < 5000 && !what(); i++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(what());
}

test("many watchers get the same lines, in order", async () => {
  const watches = await Promise.all(
    Array.from({ length: 20 }, () => get(`${path}?watch=1&labelSelector=many`)),
  );
  for (let i = 0; i < 50; i++)
    await fixture.ask("POST", path, { metadata: { name: `many-${i}`, labels: { many: "" } } });
  const names = (text: string): unknown[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name);
  const expected = Array.from({ length: 50 }, (_, i) => `many-${i}`);
  for (const { text, response } of watches) {
    await until(() => text().endsWith("\n") && names(text()).length === 50);
    assert.deepEqual(names(text()), expected);
    response.destroy();
  }
});

test("a watch that ends leaves its connection fit for the next request", async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const watch = await get(`${path}?watch=1&timeoutSeconds=1&labelSelector=kept&resourceVersion=0`, agent);
  await fixture.ask("POST", path, { metadata: { name: "kept", labels: { kept: "" } } });
  await watch.ended;
  assert.match(watch.text(), /"type":"ADDED".*"name":"kept"/);
  const next = await get(`${path}/kept`, agent);
  await next.ended;
  assert.equal(next.response.statusCode, 200);
  assert.equal(next.localPort, watch.localPort);
  agent.destroy();
});

test("a client of HTTP/1.0 gets no chunks", async () => {
  const socket = net.connect(fixture.server.port, "127.0.0.1");
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  socket.write(`GET ${path}?watch=1&labelSelector=old HTTP/1.0\r\nhost: localhost\r\n\r\n`);
  await until(() => text.includes("\r\n\r\n"));
  await fixture.ask("POST", path, { metadata: { name: "old", labels: { old: "" } } });
  await until(() => text.endsWith("}\n"));
  assert.match(text.slice(text.indexOf("\r\n\r\n")), /^\r\n\r\n\{"type":"ADDED"/);
  assert.doesNotMatch(text, /transfer-encoding/i);
  socket.destroy();
});

test("the same lines are joined once", () => {
  const pieces = new Pieces();
  const [a, b] = [Buffer.from("a\n"), Buffer.from("bc\n")];
  assert.equal(pieces.join([a], false), a);
  const framed = pieces.join([a, b], true);
  assert.equal(framed.toString(), "5\r\na\nbc\n\r\n");
  assert.equal(pieces.join([a, b], true), framed);
  assert.equal(pieces.join([a, b], false).toString(), "a\nbc\n");
  for (let i = 0; i < 20; i++) pieces.join([a, Buffer.from(String(i))], true);
  assert.notEqual(pieces.join([a, b], true), framed);
  assert.deepEqual(pieces.join([a, b], true), framed);
});
