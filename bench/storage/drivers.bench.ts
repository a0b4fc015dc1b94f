/**
 * Every driver that this machine can run: durable writes of 1 KiB, reads, watches. Servers run on a core of their own.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemEdges } from "@kontinuum/std";
import { openStore, prefixRange, type Store } from "@kontinuum/storage";
import { findEtcd, startEtcd } from "../../test/services/etcd.ts";
import { findPostgres, startPostgres } from "../../test/services/postgres.ts";
import { separate, together } from "./cores.ts";
import { flushCost, machine, measure, median, table, type Measured } from "./measure.ts";

const value = Buffer.alloc(1_024, 0x61);
const edges = systemEdges();
const put = (store: Store, key: string) => store.txn({ success: [{ type: "put", key, value }] });

interface Row {
  readonly name: string;
  readonly many: Measured;
  readonly one: Measured;
  readonly get: Measured;
  readonly range10k: number;
  readonly page500: number;
  readonly pageInPast: number;
  readonly watch: { readonly p99: number; readonly cpu: number };
}

async function run(name: string, store: Store): Promise<Row> {
  await measure(2_000, 64, (i) => put(store, `/warm/${i % 500}`));
  const many = await measure(20_000, 64, (i) => put(store, `/list/${String(i % 10_000).padStart(6, "0")}`));
  const one = await measure(400, 1, (i) => put(store, `/one/${i % 100}`));
  const get = await measure(4_000, 16, (i) =>
    store.range({ key: `/list/${String((i * 7_919) % 10_000).padStart(6, "0")}` }),
  );
  const all = prefixRange("/list/");
  const range10k = await median(7, () => store.range(all));
  const page500 = await median(15, () => store.range({ ...all, limit: 500, uncounted: true }));
  const revision = await store.revision();
  await measure(2_000, 64, (i) => put(store, `/list/${String(i % 700).padStart(6, "0")}`));
  const pageInPast = await median(15, () => store.range({ ...all, limit: 500, revision, uncounted: true }));
  return { name, many, one, get, range10k, page500, pageInPast, watch: await watchers(store) };
}

/** p99 from a write's start to each of 500 watchers, at 200 events/s, and what a delivery costs this process. */
async function watchers(store: Store): Promise<Row["watch"]> {
  const sent = new Map<string, number>();
  const latencies: number[] = [];
  const open = Array.from({ length: 500 }, () => store.watch(prefixRange("/watched/")));
  await Promise.all(open.map((watch) => watch.ready));
  const total = 200;
  const before = process.cpuUsage();
  const readers = open.map(async (watch) => {
    let seen = 0;
    for await (const { events } of watch) {
      for (const { kv } of events) latencies.push(performance.now() - (sent.get(kv.key.toString()) ?? 0));
      seen += events.length;
      if (seen >= total) return;
    }
  });
  for (let i = 0; i < total; i++) {
    sent.set(`/watched/${i}`, performance.now());
    await put(store, `/watched/${i}`);
    await edges.clock.sleep(4);
  }
  await Promise.all(readers);
  const { user, system } = process.cpuUsage(before);
  latencies.sort((a, b) => a - b);
  return {
    p99: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
    cpu: (user + system) / latencies.length,
  };
}

const folder = await mkdtemp(join(tmpdir(), "bench-storage-"));
const rows: Row[] = [];
async function bench(name: string, url: string): Promise<void> {
  const store = await openStore(url, edges);
  separate();
  rows.push(await run(name, store));
  await store.close();
  together();
}

process.stdout.write(`${machine()}; one flush of 4 KiB: ${flushCost(folder).toFixed(2)} ms\n`);
await bench("memory", "memory://");
await bench("sqlite (every group flushed)", `sqlite://${folder}/bench.db`);
const face = fork(new URL("./face-process.ts", import.meta.url), [`sqlite://${folder}/face.db`]);
const [port] = await once(face, "message");
await bench("face over sqlite", `grpc://127.0.0.1:${String(port)}`);
face.send("stop");
await once(face, "exit");
if (typeof (await findPostgres()) === "string") {
  const postgres = await startPostgres();
  await bench("postgres", postgres.url);
  await postgres.stop();
}
if (typeof (await findEtcd()) === "string") {
  const etcd = await startEtcd();
  await bench("etcd (on a memory disk)", etcd.url);
  await etcd.stop();
}
await rm(folder, { recursive: true });

table(
  "Durable writes of 1 KiB, 64 writers",
  ["driver", "writes/s", "limit", "CPU µs here", "CPU µs server", "p50 ms", "p99 ms", "loop late ms"],
  rows.map(({ name, many }) => [
    name,
    many.perSecond,
    many.limit,
    many.cpuPerOperation,
    many.serverCpu ?? "",
    many.p50,
    many.p99,
    many.loopLate,
  ]),
);
table(
  "One writer, reads, watches (ms unless said)",
  [
    "driver",
    "write p50",
    "gets/s ×16",
    "10k range",
    "page 500",
    "… in the past",
    "500 watchers p99",
    "µs a delivery",
  ],
  rows.map((r) => [
    r.name,
    r.one.p50,
    r.get.perSecond,
    r.range10k,
    r.page500,
    r.pageInPast,
    r.watch.p99,
    r.watch.cpu,
  ]),
);
process.exit(0);
