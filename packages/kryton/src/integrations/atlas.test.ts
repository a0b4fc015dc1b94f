import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { OutboundClient, systemEdges } from "@kontinuum/std";
import { testAtlas, type AtlasResult } from "./atlas.ts";

const edges = systemEdges();
const outbound = new OutboundClient(edges.network, edges.clock, { allow: ["127.0.0.1"] });

/** An Atlas over real HTTP that answers each path with a status and a body; a status of 0 cuts the connection. */
async function ask(
  answers: Readonly<Record<string, readonly [number, string]>>,
): Promise<{ result: AtlasResult; seen: http.IncomingMessage[] }> {
  const seen: http.IncomingMessage[] = [];
  const server = http.createServer((incoming, outgoing) => {
    seen.push(incoming);
    const [status, body] = answers[incoming.url ?? ""] ?? [404, ""];
    if (status === 0) return void incoming.socket.destroy();
    outgoing.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const settings = { enabled: true, baseUrl, token: "tok", product: "kryton", preferAtlas: true };
  try {
    return { result: await testAtlas(settings, outbound, edges.clock), seen };
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const good = {
  "/readyz": [200, "ok"],
  "/version": [200, '{"version":"1"}'],
  "/api/atlas/v1/storage-classes": [200, '[{"name":"zyvor-rbd","is_ceph":true},{"name":"fast"}]'],
} as const;

async function statuses(
  changed: Readonly<Record<string, readonly [number, string]>>,
): Promise<[string, string, boolean]> {
  const { result } = await ask({ ...good, ...changed });
  const status = (name: string): string =>
    result.probes.find((probe) => probe.name === name)?.status ?? "none";
  return [`${status("readyz")}/${status("version")}`, status("storage-classes"), result.healthy];
}

test("a healthy Atlas tells its classes, and is asked with token and product", async () => {
  const { result, seen } = await ask(good);
  assert.equal(result.healthy, true);
  assert.deepEqual(result.storageClasses, ["zyvor-rbd", "fast"]);
  assert.deepEqual(
    result.probes.map(({ name }) => name),
    ["readyz", "version", "storage-classes"],
  );
  for (const { headers } of seen) {
    assert.equal(headers.authorization, "Bearer tok");
    assert.equal(headers["x-atlas-product"], "kryton");
  }
});

test("each probe fails or warns as its answer says", async () => {
  const classes = "/api/atlas/v1/storage-classes";
  assert.deepEqual(await statuses({ "/readyz": [503, ""] }), ["fail/pass", "pass", false]);
  assert.deepEqual(await statuses({ "/readyz": [401, ""] }), ["warn/pass", "pass", true]);
  assert.deepEqual(await statuses({ "/readyz": [0, ""] }), ["fail/pass", "pass", false]);
  assert.deepEqual(await statuses({ "/version": [404, ""] }), ["pass/warn", "pass", true]);
  assert.deepEqual(await statuses({ "/version": [0, ""], "/api/atlas/v1/version": [200, "{}"] }), [
    "pass/pass",
    "pass",
    true,
  ]);
  assert.deepEqual(await statuses({ [classes]: [401, ""] }), ["pass/pass", "fail", false]);
  assert.deepEqual(await statuses({ [classes]: [403, ""] }), ["pass/pass", "fail", false]);
  assert.deepEqual(await statuses({ [classes]: [502, ""] }), ["pass/pass", "warn", true]);
  assert.deepEqual(await statuses({ [classes]: [404, ""] }), ["pass/pass", "warn", true]);
  assert.deepEqual(await statuses({ [classes]: [200, "not json"] }), ["pass/pass", "warn", true]);
  assert.deepEqual(await statuses({ [classes]: [200, "x".repeat(1_100_000)] }), ["pass/pass", "warn", true]);
});

test("off is a warning, on without a URL a failure; both are unhealthy and nobody is asked", async () => {
  const settings = { enabled: false, baseUrl: "", token: "", product: "kryton", preferAtlas: false };
  const off = await testAtlas(settings, outbound, edges.clock);
  assert.deepEqual([off.healthy, off.configured, off.probes[0]?.status], [false, false, "warn"]);
  const nowhere = await testAtlas({ ...settings, enabled: true }, outbound, edges.clock);
  assert.deepEqual([nowhere.healthy, nowhere.probes[0]?.status], [false, "fail"]);
});
