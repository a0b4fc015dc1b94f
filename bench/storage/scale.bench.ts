/**
 * A large SQLite store: how long it takes to open, what it holds in memory, what lists cost.
 * `KEYS` changes the number of keys (default 1,000,000).
 */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemEdges } from "@kontinuum/std";
import { openStore, prefixRange } from "@kontinuum/storage";
import { machine, measure, median, table } from "./measure.ts";

const keys = Number(process.env["KEYS"] ?? 1_000_000);
const folder = await mkdtemp(join(tmpdir(), "bench-scale-"));
const url = `sqlite://${folder}/scale.db`;
const edges = systemEdges();
const value = Buffer.alloc(256, 0x61);
process.stdout.write(`${machine()}\n`);

let store = await openStore(url, edges);
const fill = await measure(keys / 100, 16, (i) =>
  store.txn({
    success: Array.from({ length: 100 }, (_, j) => ({
      type: "put",
      key: `/big/${String(i * 100 + j).padStart(8, "0")}`,
      value,
    })),
  }),
);
await store.close();
globalThis.gc?.();
const before = process.memoryUsage().rss;
const at = performance.now();
store = await openStore(url, edges);
await store.range({ key: "/big/00000000" });
const opened = performance.now() - at;
const grown = process.memoryUsage().rss - before;
const { size } = await stat(`${folder}/scale.db`);
const all = prefixRange("/big/");
const rows: [string, string | number][] = [
  ["keys", keys],
  ["filled, keys/s", fill.perSecond * 100],
  ["file, MiB", size / 2 ** 20],
  ["open and first read, ms", opened],
  ["memory grown by opening, MiB", Math.max(0, grown) / 2 ** 20],
  ["get, µs", (await median(200, () => store.range({ key: "/big/00500000" }))) * 1_000],
  ["page of 500 of all, ms", await median(9, () => store.range({ ...all, limit: 500, uncounted: true }))],
  ["… with the count of all, ms", await median(9, () => store.range({ ...all, limit: 500 }))],
  ["count, ms", await median(5, () => store.range({ ...all, countOnly: true }))],
  ["10,000 pairs, ms", await median(5, () => store.range({ key: "/big/00200000", end: "/big/00210000" }))],
];
await store.close();
await rm(folder, { recursive: true });
table("A large SQLite store", ["what", "value"], rows);
process.exit(0);
