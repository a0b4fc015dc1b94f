import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { Client } from "./client.ts";
import { configMaps, type ConfigMap } from "./core-resources.ts";
import { Informer, type InformerOptions } from "./informer.ts";
import type { CacheChange } from "./object-cache.ts";
import { ScriptedApi } from "./scripted-api.fixture.ts";

function configMap(name: string, data: Record<string, string> = {}): ConfigMap {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "n" }, data };
}

function start(t: TestContext, options: Partial<InformerOptions<ConfigMap>> = {}) {
  const api = new ScriptedApi();
  const clock = new SimulatedClock();
  const edges = systemEdges({ clock, random: seededRandom(1) });
  const client = new Client(api.transport, { edges });
  const informer = new Informer(client, configMaps, { edges, ...options });
  const stop = new AbortController();
  const seen: string[] = [];
  informer.onChange(({ key, before, after }: CacheChange<ConfigMap>) => {
    seen.push(`${before ? (after ? "~" : "-") : "+"}${key}`);
  });
  let running = Promise.resolve();
  const run = async (): Promise<void> => {
    running = informer.run(stop.signal);
    await clock.advance(0);
  };
  t.after(async () => {
    stop.abort();
    await clock.advance(1000);
    await running;
    assert.equal(api.watches, 0, "no watch is left open");
  });
  return { api, clock, client, informer, seen, run };
}

test("lists, then follows changes", async (t) => {
  const { client, informer, seen, run, clock } = start(t);
  await client.create(configMaps, configMap("a"));
  assert.equal(informer.hasSynced, false);
  await run();
  assert.equal(informer.hasSynced, true);
  await client.create(configMaps, configMap("b"));
  await client.patch(
    configMaps,
    { namespace: "n", name: "a" },
    { type: "merge", patch: { data: { x: "1" } } },
  );
  await client.delete(configMaps, { namespace: "n", name: "b" });
  await clock.advance(0);
  assert.deepEqual(seen, ["+n/a", "+n/b", "~n/a", "-n/b"]);
  assert.deepEqual(informer.get({ namespace: "n", name: "a" })?.data, { x: "1" });
});

test("what it hands out is a copy", async (t) => {
  const { client, informer, run } = start(t);
  await client.create(configMaps, configMap("a", { x: "1" }));
  await run();
  const copy = informer.get({ namespace: "n", name: "a" });
  assert.ok(copy?.data);
  copy.data["x"] = "changed";
  assert.equal(informer.get({ namespace: "n", name: "a" })?.data?.["x"], "1");
});

test("resumes a watch that ended from the last version, without a list", async (t) => {
  const { api, client, informer, run, clock } = start(t);
  await run();
  await client.create(configMaps, configMap("a"));
  await clock.advance(0);
  const lists = (): number =>
    api.requests.filter(({ path: p }) => p.startsWith("/api/v1/configmaps?limit")).length;
  assert.equal(lists(), 1);
  api.cut();
  await clock.advance(1000);
  await client.create(configMaps, configMap("b"));
  await clock.advance(1000);
  assert.equal(informer.size, 2);
  assert.equal(lists(), 1);
});

test("a bookmark moves the resume point", async (t) => {
  const { api, informer, run, clock } = start(t);
  await run();
  api.inject({
    type: "BOOKMARK",
    object: { kind: "ConfigMap", apiVersion: "v1", metadata: { resourceVersion: "500" } },
  });
  await clock.advance(0);
  assert.equal(informer.version, "500");
});

test("a compacted version leads to a fresh list that finds deletions", async (t) => {
  const { api, client, informer, seen, run, clock } = start(t);
  await client.create(configMaps, configMap("a"));
  await run();
  api.hold();
  await client.delete(configMaps, { namespace: "n", name: "a" });
  await client.create(configMaps, configMap("b"));
  api.compact();
  api.cut();
  await clock.advance(0);
  api.release();
  await clock.advance(30_000);
  assert.deepEqual(
    [...informer.peekAll()].map(({ metadata }) => metadata.name),
    ["b"],
  );
  assert.deepEqual(seen, ["+n/a", "+n/b", "-n/a"]);
});

test("an ERROR event 410 relists after a back-off, not at once", async (t) => {
  const { api, run, clock } = start(t);
  await run();
  const before = api.requests.length;
  api.inject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired", message: "too old" } });
  await clock.advance(50);
  assert.equal(api.requests.length, before);
  await clock.advance(30_000);
  assert.ok(api.requests.slice(before).some(({ path: p }) => !p.includes("watch=true")));
});

test("failing lists back off up to half a minute and recover", async (t) => {
  const { api, informer, run, clock } = start(t);
  for (let i = 0; i < 4; i++) api.failNext(/GET/, 500, "InternalError");
  await run();
  assert.equal(api.requests.length, 1);
  await clock.advance(60_000);
  assert.equal(informer.hasSynced, true);
});

test("an unreadable object is left out, the others stay visible", async (t) => {
  const { api, informer, run, clock } = start(t);
  await run();
  api.inject({ type: "ADDED", object: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: 7 } } });
  api.inject({
    type: "ADDED",
    object: { ...configMap("good"), metadata: { name: "good", namespace: "n", resourceVersion: "900" } },
  });
  await clock.advance(0);
  assert.deepEqual(
    [...informer.peekAll()].map(({ metadata }) => metadata.name),
    ["good"],
  );
});

test("a watch that says nothing beyond its time is given up", async (t) => {
  const { api, run, clock } = start(t);
  await run();
  const watches = (): number => api.requests.filter(({ path: p }) => p.includes("watch=true")).length;
  assert.equal(watches(), 1);
  await clock.advance(700_000);
  assert.ok(watches() >= 2);
});

test("indexes follow changes; an index function that throws hides only that object", async (t) => {
  const { client, informer, run, clock } = start(t, {
    indexes: {
      colour: (object) => {
        if (object.data?.["colour"] === "bad") throw new Error("no");
        return object.data?.["colour"] === undefined ? [] : [object.data["colour"]];
      },
    },
  });
  await run();
  await client.create(configMaps, configMap("a", { colour: "red" }));
  await client.create(configMaps, configMap("b", { colour: "bad" }));
  await clock.advance(0);
  assert.deepEqual(
    informer.byIndex("colour", "red").map(({ metadata }) => metadata.name),
    ["a"],
  );
  await client.patch(
    configMaps,
    { namespace: "n", name: "a" },
    { type: "merge", patch: { data: { colour: "blue" } } },
  );
  await clock.advance(0);
  assert.deepEqual(informer.byIndex("colour", "red"), []);
  assert.equal(informer.byIndex("colour", "blue").length, 1);
  assert.equal(informer.list({ namespace: "n" }).length, 2);
  assert.equal(informer.list({ namespace: "other" }).length, 0);
});

test("a handler that throws stops neither the informer nor other handlers", async (t) => {
  const { client, informer, seen, run } = start(t);
  informer.onChange(() => {
    throw new Error("broken handler");
  });
  await client.create(configMaps, configMap("a"));
  await run();
  assert.deepEqual(seen, ["+n/a"]);
});
