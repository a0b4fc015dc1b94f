import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { systemClock } from "./clock.ts";
import { isCoded } from "./errors.ts";
import { systemNetwork, type Network } from "./net.ts";
import { AddressRules, OutboundClient } from "./outbound.ts";

async function served(
  handler: http.RequestListener,
): Promise<{ url: string; port: number; close(): Promise<void> }> {
  const server = http.createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  };
}

const get = { method: "GET", timeoutMs: 2_000, maxBytes: 1_000 };

test("addresses of the machine, the link and metadata services are refused", () => {
  const rules = new AddressRules([]);
  for (const address of [
    "127.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "::1",
    "fe80::1",
    "::ffff:127.0.0.1",
    "224.0.0.1",
    "::",
    "ff02::1",
    "255.255.255.255",
    "127.9.9.9",
    "fd00:ec2::254",
    "100.100.100.200",
    "64:ff9b::7f00:1",
    "localhost",
    "",
  ]) {
    assert.equal(rules.permits("x", address), false, address);
  }
  for (const address of ["10.0.0.9", "192.168.1.1", "93.184.216.34", "2606:2800::1"]) {
    assert.equal(rules.permits("x", address), true, address);
  }
  assert.equal(new AddressRules(["127.0.0.0/8"]).permits("x", "127.9.9.9"), true);
  assert.equal(new AddressRules(["localhost"]).permits("localhost", "::1"), true);
  assert.throws(() => new AddressRules(["1.2.3.4/99"]), /no address range/);
});

test("a name that resolves to loopback is refused, whatever it is called", async () => {
  const rebinding: Network = { ...systemNetwork, resolve: () => Promise.resolve(["127.0.0.1"]) };
  const client = new OutboundClient(rebinding, systemClock, { allow: [] });
  await assert.rejects(client.request({ ...get, url: "http://harmless.example/" }), (error) =>
    isCoded(error, "permission_denied"),
  );
});

test("an allowed address answers; size and time are bounded", async () => {
  const server = await served((incoming, outgoing) => {
    if (incoming.url === "/slow") return;
    outgoing.end(incoming.url === "/big" ? "x".repeat(5_000) : "hello");
  });
  try {
    const client = new OutboundClient(systemNetwork, systemClock, { allow: ["127.0.0.1"] });
    assert.equal((await client.request({ ...get, url: server.url })).body.toString(), "hello");
    await assert.rejects(client.request({ ...get, url: `${server.url}/big` }), (error) =>
      isCoded(error, "payload_too_large"),
    );
    await assert.rejects(client.request({ ...get, url: `${server.url}/slow`, timeoutMs: 50 }), (error) =>
      isCoded(error, "deadline_exceeded"),
    );
  } finally {
    await server.close();
  }
});

test("redirects drop credentials at another host and are bounded", async () => {
  const seen: (string | undefined)[] = [];
  const second = await served((incoming, outgoing) => {
    seen.push(incoming.headers.authorization);
    outgoing.end("there");
  });
  const first = await served((incoming, outgoing) => {
    const to = incoming.url === "/loop" ? "/loop" : second.url;
    outgoing.writeHead(302, { location: to }).end();
  });
  try {
    const client = new OutboundClient(systemNetwork, systemClock, { allow: ["127.0.0.1"] });
    const headers = { authorization: "Bearer x" };
    assert.equal((await client.request({ ...get, url: first.url, headers })).status, 302);
    const followed = await client.request({ ...get, url: first.url, headers, redirects: 3 });
    assert.equal(followed.body.toString(), "there");
    assert.deepEqual(seen, [undefined]);
    await assert.rejects(client.request({ ...get, url: `${first.url}/loop`, redirects: 3 }), /too often/);
    await assert.rejects(client.request({ ...get, url: first.url, httpsOnly: true }), /must be https/);
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
});

test("own listeners are refused even in an allowed-by-default range", async () => {
  const local: Network = { ...systemNetwork, resolve: () => Promise.resolve(["10.1.2.3"]) };
  const client = new OutboundClient(local, systemClock, { allow: [], ownListeners: () => ["10.1.2.3:8080"] });
  await assert.rejects(client.request({ ...get, url: "http://me.example:8080/" }), (error) =>
    isCoded(error, "permission_denied"),
  );
});
