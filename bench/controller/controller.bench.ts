/**
 * What the controller runtime costs: the work queue, a cached read, and reconciles through a real API server in
 * this process.
 */
import {
  configMaps,
  defineController,
  Manager,
  parseKey,
  watchOf,
  WorkQueue,
  type ConfigMap,
} from "@kontinuum/controller";
import { createServer } from "@kontinuum/kapi";
import { systemClock, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { machine, measure, table } from "../storage/measure.ts";

const edges = systemEdges();
const objects = 2_000;

console.log(machine());
const queue = new WorkQueue({ clock: systemClock });
const queued = await measure(200_000, 1, async (i) => {
  queue.add(`k${i % 1000}`);
  const key = (await queue.take()) ?? "";
  queue.done(key);
});

const storage = await openStore("memory://", edges);
const server = createServer({ storage, auth: { authenticators: [], authorizers: [] }, rbac: false });
await server.start();
const stop = new AbortController();
let reconciled = 0;
const stamp = defineController({
  name: "stamp",
  watches: [watchOf(configMaps)],
  concurrency: 4,
  async reconcile(key, { client }) {
    const object = await client.find(configMaps, parseKey(key));
    if (!object || object.metadata.namespace !== "default" || object.data?.["stamped"] === "yes") return;
    await client.update(configMaps, { ...object, data: { ...object.data, stamped: "yes" } });
    reconciled++;
  },
});
const manager = new Manager({
  name: "bench",
  transport: server.transport(server.loopback),
  edges,
  controllers: [stamp.definition],
});
const running = manager.run(stop.signal);
await manager.informer(configMaps).synced();
const object = (i: number): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: `c${i}`, namespace: "default" },
  data: { text: "x".repeat(800) },
});
const started = performance.now();
const created = await measure(objects, 8, (i) => manager.client.create(configMaps, object(i)));
while (reconciled < objects) await systemClock.sleep(5);
const settledMs = performance.now() - started;
const cached = await measure(200_000, 1, (i) =>
  manager.client.get(configMaps, { namespace: "default", name: `c${i % objects}` }),
);
const live = await measure(5_000, 8, (i) =>
  manager.client.live.get(configMaps, { namespace: "default", name: `c${i % objects}` }),
);
table(
  "controller runtime (objects of 1 kB, memory store, in process)",
  ["", "per second", "p50 ms", "p99 ms", "CPU µs each"],
  [
    ["work queue: add, take, done", queued.perSecond, queued.p50, queued.p99, queued.cpuPerOperation],
    ["cached get (a copy)", cached.perSecond, cached.p50, cached.p99, cached.cpuPerOperation],
    ["live get", live.perSecond, live.p50, live.p99, live.cpuPerOperation],
    [
      "create, 8 at once, while reconciling",
      created.perSecond,
      created.p50,
      created.p99,
      created.cpuPerOperation,
    ],
  ],
);
console.log(
  `${objects} objects created, seen, updated: ${settledMs.toFixed(0)} ms, ${Math.round((objects / settledMs) * 1000)} reconciles a second`,
);
stop.abort();
await running;
await server.stop();
await storage.close();
