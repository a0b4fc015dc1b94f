/**
 * The network edge against real sockets.
 */
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { isCoded } from "./errors.ts";
import { systemNetwork } from "./net.ts";

async function listen(): Promise<{ server: net.Server; port: number }> {
  const server = net.createServer((socket) => socket.end("hello"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return { server, port: address.port };
}

test("dial connects, and names what it could not reach", async () => {
  const { server, port } = await listen();
  const socket = await systemNetwork.dial({ host: "127.0.0.1", port });
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  assert.equal(text, "hello");
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(systemNetwork.dial({ host: "127.0.0.1", port }), (error) => {
    return isCoded(error, "unavailable") && error.message.includes(`127.0.0.1:${port}`);
  });
});

test("an aborted dial is cancelled", async () => {
  await assert.rejects(
    systemNetwork.dial({ host: "127.0.0.1", port: 1, signal: AbortSignal.abort() }),
    (error) => isCoded(error, "cancelled"),
  );
});

test("addresses resolve to themselves, unknown names fail", async () => {
  assert.deepEqual(await systemNetwork.resolve("192.0.2.7"), ["192.0.2.7"]);
  await assert.rejects(systemNetwork.resolve("no-such-host.invalid"), (error) =>
    isCoded(error, "unavailable"),
  );
});
