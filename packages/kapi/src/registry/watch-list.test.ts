/**
 * Watches whose initial state is larger than what a client may leave unread, over the network: nothing else wakes them.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startServer, type ServerFixture } from "../server.fixture.ts";

const count = 300;
let fixture: ServerFixture;
before(async () => {
  const seed: Record<string, string> = {};
  for (let i = 0; i < count; i++)
    seed[`/registry/configmaps/default/c${i}`] = JSON.stringify({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `c${i}`, namespace: "default", uid: String(i) },
      data: { text: "x".repeat(8000) },
    });
  fixture = await startServer(
    { kinds: ["namespaces", "configmaps"], listen: { port: 0 }, housekeeping: false },
    seed,
  );
});
after(() => fixture.stop());

test("a large initial state comes to its end without any further write", { timeout: 60_000 }, async () => {
  const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const abort = new AbortController();
  const response = await fetch(`${fixture.server.url}/api/v1/configmaps?${query}`, { signal: abort.signal });
  assert.ok(response.body);
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("k8s.io/initial-events-end") && text.endsWith("\n")) break;
  }
  abort.abort();
  const types = text
    .trim()
    .split("\n")
    .map((line) => /^\{"type":"(\w+)"/.exec(line)?.[1]);
  assert.equal(types.filter((type) => type === "ADDED").length, count);
  assert.equal(types.at(-1), "BOOKMARK");
});
