import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { CodedError, seededRandom, SimulatedClock, systemEdges, type Log } from "@kontinuum/std";
import { Client } from "./client.ts";
import { ownerKeys, TerminalError, watchOf, type ControllerDefinition } from "./controller-definition.ts";
import { configMaps, secrets, type ConfigMap } from "./core-resources.ts";
import { combineControllers, defineController } from "./manager.ts";
import type { Controller } from "./contract.ts";
import { parseKey } from "./resource.ts";
import { ScriptedApi } from "./scripted-api.fixture.ts";

function configMap(name: string, data: Record<string, string> = {}): ConfigMap {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "n" }, data };
}

function collector(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const log: Log = {
    debug: (message) => void lines.push(`debug ${message}`),
    info: (message) => void lines.push(`info ${message}`),
    warn: (message) => void lines.push(`warn ${message}`),
    error: (message) => void lines.push(`error ${message}`),
    with: () => log,
  };
  return { log, lines };
}

function start(t: TestContext, controller: Controller) {
  const api = new ScriptedApi();
  const clock = new SimulatedClock();
  const { log, lines } = collector();
  const edges = systemEdges({ clock, random: seededRandom(1), log });
  const abort = new AbortController();
  const running = controller.run({ transport: api.transport, edges, signal: abort.signal });
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    abort.abort();
    await clock.advance(60_000);
    await running;
  };
  t.after(stop);
  return { api, clock, lines, running, abort, stop, client: new Client(api.transport, { edges }) };
}

const watchingConfigMaps = (
  reconcile: ControllerDefinition["reconcile"],
  more: Partial<ControllerDefinition> = {},
) => defineController({ name: "test", watches: [watchOf(configMaps)], reconcile, ...more });

test("reconciles each object with what is there, and again on change", async (t) => {
  const seen: string[] = [];
  const controller = watchingConfigMaps(async (key, { client }) => {
    const object = await client.find(configMaps, parseKey(key));
    seen.push(`${key}=${object?.data?.["x"] ?? "gone"}`);
  });
  const { client, clock } = start(t, controller);
  await clock.advance(0);
  await client.create(configMaps, configMap("a", { x: "1" }));
  await clock.advance(0);
  await client.delete(configMaps, { namespace: "n", name: "a" });
  await clock.advance(0);
  assert.deepEqual(seen, ["n/a=1", "n/a=gone"]);
});

test("errors are retried with back-off and end nothing", async (t) => {
  let calls = 0;
  const controller = watchingConfigMaps(async () => {
    if (++calls < 4) throw new Error("not yet");
  });
  const { client, clock, lines } = start(t, controller);
  await client.create(configMaps, configMap("a"));
  await clock.advance(0);
  assert.equal(calls, 1);
  await clock.advance(5 + 10 + 20);
  assert.equal(calls, 4);
  assert.equal(lines.filter((line) => line === "warn reconcile failed").length, 3);
  await clock.advance(10_000_000);
  assert.equal(calls, 4);
});

test("a conflict is tried again without a warning", async (t) => {
  let calls = 0;
  const controller = watchingConfigMaps(async () => {
    if (++calls === 1) throw new CodedError("conflict", "modified");
  });
  const { client, clock, lines } = start(t, controller);
  await client.create(configMaps, configMap("a"));
  await clock.advance(100);
  assert.equal(calls, 2);
  assert.deepEqual(
    lines.filter((line) => line.startsWith("warn") || line.startsWith("error")),
    [],
  );
});

test("a terminal error waits for the next change", async (t) => {
  let calls = 0;
  const controller = watchingConfigMaps(async () => {
    calls++;
    throw new TerminalError("never");
  });
  const { client, clock } = start(t, controller);
  await client.create(configMaps, configMap("a"));
  await clock.advance(3_600_000);
  assert.equal(calls, 1);
  await client.patch(
    configMaps,
    { namespace: "n", name: "a" },
    { type: "merge", patch: { data: { x: "1" } } },
  );
  await clock.advance(0);
  assert.equal(calls, 2);
});

test("requeueAfterMs brings the key back", async (t) => {
  let calls = 0;
  const controller = watchingConfigMaps(async () => {
    calls++;
    return { requeueAfterMs: 1000 };
  });
  const { client, clock } = start(t, controller);
  await client.create(configMaps, configMap("a"));
  await clock.advance(3500);
  assert.equal(calls, 4);
});

test("one key never runs twice at once; other keys use the concurrency", async (t) => {
  const active = new Map<string, number>();
  let most = 0;
  let overlap = false;
  const controller = watchingConfigMaps(
    async (key, { edges }) => {
      active.set(key, (active.get(key) ?? 0) + 1);
      overlap ||= (active.get(key) ?? 0) > 1;
      most = Math.max(
        most,
        [...active.values()].reduce((a, b) => a + b, 0),
      );
      await edges.clock.sleep(100);
      active.set(key, (active.get(key) ?? 0) - 1);
    },
    { concurrency: 3 },
  );
  const { client, clock } = start(t, controller);
  for (const name of ["a", "b", "c", "d"]) await client.create(configMaps, configMap(name));
  await clock.advance(50);
  await client.patch(
    configMaps,
    { namespace: "n", name: "a" },
    { type: "merge", patch: { data: { x: "1" } } },
  );
  await clock.advance(1000);
  assert.equal(overlap, false);
  assert.equal(most, 3);
});

test("stop waits for the write under way, but not beyond the deadline", async (t) => {
  const events: string[] = [];
  const controller = combineControllers(
    "both",
    [
      watchingConfigMaps(async (_key, { edges }) => {
        events.push("began");
        await edges.clock.sleep(5_000);
        events.push("landed");
      }),
    ],
    { stopDeadlineMs: 10_000 },
  );
  const { client, clock, abort, running } = start(t, controller);
  await client.create(configMaps, configMap("a"));
  await clock.advance(0);
  abort.abort();
  void running.then(() => events.push("stopped"));
  await clock.advance(4_000);
  assert.deepEqual(events, ["began"]);
  await clock.advance(1_000);
  assert.deepEqual(events, ["began", "landed", "stopped"]);
});

test("a reconcile that never ends does not hold up the stop for ever", async (t) => {
  const controller = combineControllers("stuck", [watchingConfigMaps(() => new Promise(() => {}))], {
    stopDeadlineMs: 10_000,
  });
  const { client, clock, abort, running, lines } = start(t, controller);
  await client.create(configMaps, configMap("a"));
  await clock.advance(0);
  abort.abort();
  await clock.advance(10_001);
  await running;
  assert.ok(lines.includes("warn stopped without waiting for work under way"));
});

test("controllers of one manager share an informer", async (t) => {
  const seen: string[] = [];
  const controller = combineControllers("both", [
    watchingConfigMaps(async (key) => void seen.push(`one ${key}`)),
    watchingConfigMaps(async (key) => void seen.push(`two ${key}`), { name: "second" }),
  ]);
  const { api, client, clock } = start(t, controller);
  await client.create(configMaps, configMap("a"));
  await clock.advance(0);
  assert.deepEqual(seen.sort(), ["one n/a", "two n/a"]);
  assert.equal(api.watches, 1);
});

test("a mapped watch reconciles the keys before and after a change", async (t) => {
  const seen: string[] = [];
  const controller = defineController({
    name: "mapped",
    watches: [
      watchOf(configMaps, { map: ({ data }) => (data?.["for"] === undefined ? [] : [data["for"]]) }),
      watchOf(secrets),
    ],
    initialKeys: ["tick"],
    reconcile: async (key) => void seen.push(key),
  });
  const { client, clock } = start(t, controller);
  await clock.advance(0);
  await client.create(configMaps, configMap("a", { for: "x" }));
  await clock.advance(0);
  await client.patch(
    configMaps,
    { namespace: "n", name: "a" },
    { type: "merge", patch: { data: { for: "y" } } },
  );
  await clock.advance(0);
  assert.deepEqual(seen, ["tick", "x", "x", "y"]);
});

test("ownerKeys names the owners of a kind and group", () => {
  const owner = (apiVersion: string, kind: string, name: string) => ({ apiVersion, kind, name, uid: name });
  const keys = ownerKeys(
    "Deployment",
    "apps",
  )({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "p",
      namespace: "n",
      ownerReferences: [
        owner("apps/v1", "Deployment", "d"),
        owner("v1", "Deployment", "other"),
        owner("apps/v1", "X", "x"),
      ],
    },
  });
  assert.deepEqual(keys, ["n/d"]);
});
