/**
 * Every driver that this machine can run, in one table: durable writes of 1 KiB, reads, watches.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemEdges } from "@kontinuum/std";
import { openStore, prefixRange, serveEtcd, type Store } from "@kontinuum/storage";
import { findEtcd, startEtcd } from "../../test/services/etcd.ts";
import { findPostgres, startPostgres } from "../../test/services/postgres.ts";
import { flushCost, machine, measure, median, table } from "./measure.ts";

const value = Buffer.alloc(1_024, 0x61);
const edges = systemEdges();
const put = (store: Store, key: string) => store.txn({ success: [{ type: "put", key, value }] });

interface Row {
  readonly name: string;
  readonly writes64: number;
  readonly cpu: number;
  readonly p50of64: number;
  readonly single: number;
  readonly get: number;
  readonly range10k: number;
  readonly page500: number;
  readonly pageInPast: number;
  readonly watch: number;
}

async function run(name: string, store: Store): Promise<Row> {
  await measure(2_000, 64, (i) => put(store, `/warm/${i % 500}`));
  const many = await measure(10_000, 64, (i) => put(store, `/list/${String(i).padStart(6, "0")}`));
  const one = await measure(400, 1, (i) => put(store, `/one/${i % 100}`));
  const get = await measure(4_000, 16, (i) =>
    store.range({ key: `/list/${String((i * 7_919) % 10_000).padStart(6, "0")}` }),
  );
  const all = prefixRange("/list/");
  const range10k = await median(7, () => store.range(all));
  const page500 = await median(15, () => store.range({ ...all, limit: 500 }));
  const revision = await store.revision();
  await measure(2_000, 64, (i) => put(store, `/list/${String(i % 700).padStart(6, "0")}`));
  const pageInPast = await median(15, () => store.range({ ...all, limit: 500, revision }));
  return {
    name,
    writes64: many.perSecond,
    cpu: many.cpuPerOperation,
    p50of64: many.p50,
    single: one.p50,
    get: get.perSecond,
    range10k,
    page500,
    pageInPast,
    watch: await watchers(store),
  };
}

/** p99 from the write's start to the last of 500 watchers, at 200 events/s. */
async function watchers(store: Store): Promise<number> {
  const sent = new Map<string, number>();
  const latencies: number[] = [];
  const open = Array.from({ length: 500 }, () => store.watch(prefixRange("/watched/")));
  await Promise.all(open.map((watch) => watch.ready));
  const total = 200;
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
  latencies.sort((a, b) => a - b);
  return latencies[Math.floor(latencies.length * 0.99)] ?? 0;
}

const folder = await mkdtemp(join(tmpdir(), "bench-storage-"));
const rows: Row[] = [];
async function bench(name: string, url: string): Promise<void> {
  const store = await openStore(url, edges);
  rows.push(await run(name, store));
  await store.close();
}

process.stdout.write(`${machine()}; one flush of 4 KiB: ${flushCost(folder).toFixed(2)} ms\n`);
await bench("memory", "memory://");
await bench("sqlite (FULL)", `sqlite://${folder}/bench.db`);
const behind = await openStore(`sqlite://${folder}/face.db`, edges);
const server = await serveEtcd(behind);
await bench("face over sqlite, one process", `grpc://127.0.0.1:${server.port}`);
await server.close();
await behind.close();
if (typeof (await findPostgres()) === "string") {
  const postgres = await startPostgres();
  await bench("postgres", postgres.url);
  await postgres.stop();
}
if (typeof (await findEtcd()) === "string") {
  const etcd = await startEtcd();
  await bench("etcd", etcd.url);
  await etcd.stop();
}
await rm(folder, { recursive: true });

table(
  "Durable writes of 1 KiB, reads and watches (ms unless said)",
  [
    "driver",
    "writes/s ×64",
    "CPU µs",
    "p50 ×64",
    "p50 ×1",
    "gets/s ×16",
    "10k range",
    "page 500",
    "… in the past",
    "500 watchers p99",
  ],
  rows.map((r) => [
    r.name,
    r.writes64,
    r.cpu,
    r.p50of64,
    r.single,
    r.get,
    r.range10k,
    r.page500,
    r.pageInPast,
    r.watch,
  ]),
);
process.exit(0);
