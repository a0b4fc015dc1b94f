/**
 * The API server over HTTP, client on the other core: lists, gets, durable creates, patches, applies, watches, start,
 * memory. Prints a table with the target of each row, the server's processor time for each operation, which other work
 * on the machine hardly changes, and how busy the client was: near 100 % it is the client that was measured.
 *
 * `BENCH_ONLY=get,patch` runs some rows, `BENCH_SECONDS` and `BENCH_OBJECTS` change the size, and `BENCH_PROFILE=<folder>`
 * samples the server in each row into a file that a browser's developer tools open.
 */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { RawClient, requestBytes, type Answer } from "./raw-client.ts";
import { RunningServer } from "./running-server.ts";
import { watchLags } from "./watch-lag.ts";

const objects = Number(process.env["BENCH_OBJECTS"] ?? 10_000);
const seconds = Number(process.env["BENCH_SECONDS"] ?? 3);
const only = process.env["BENCH_ONLY"]?.split(",");
const profiles = process.env["BENCH_PROFILE"];
const folder = await mkdtemp(path.join(os.tmpdir(), "kapi-bench-"));
const store = `sqlite://${path.join(folder, "store.db")}`;

interface Row {
  readonly what: string;
  readonly result: string;
  readonly target: string;
  /** Processor time of the server for each operation, in microseconds. */
  readonly "server µs": number | string;
  readonly "client busy": string;
}
const rows: Row[] = [];
let server = await RunningServer.start(store);

/** How long a server has nothing to do before its memory is read. */
const idleMs = 3000;
if (!only || only.includes("idle")) {
  const resident = async (): Promise<string> => {
    await new Promise((resolve) => setTimeout(resolve, idleMs));
    return `${Math.round((await server.usage()).memory / 2 ** 20)} MB`;
  };
  // What makes the first start of a store dear (certificates, roles) comes once in its life.
  const first = await resident();
  await server.stop();
  server = await RunningServer.start(store);
  rows.push({
    what: "idle memory (first start of a store)",
    result: `${await resident()} (${first})`,
    target: "120 MB",
    "server µs": "",
    "client busy": "",
  });
}

const clients = (count: number): Promise<RawClient[]> =>
  Promise.all(Array.from({ length: count }, () => RawClient.connect(server.port)));

interface Work {
  readonly result: string;
  readonly operations: number;
}
/** How long a rate runs before it is measured: the first thousands of requests run code that is not compiled yet. */
const warmSeconds = 1;

/** A row of how often something can be done in a second. */
async function rateRow(
  name: string,
  what: string,
  target: string,
  count: number,
  request: (turn: number) => string,
): Promise<void> {
  if (!only || only.includes(name)) await rate(count, warmSeconds, request);
  await row(name, what, target, () => rate(count, seconds, request));
}

/** Runs one row, unless it is not wanted; `work` answers the result and how many operations it was. */
async function row(name: string, what: string, target: string, work: () => Promise<Work>): Promise<void> {
  if (only && !only.includes(name)) return;
  await server.sampled(profiles, name, async () => {
    const before = await server.usage();
    const own = process.cpuUsage();
    const began = performance.now();
    const { result, operations } = await work();
    const { user, system } = process.cpuUsage(own);
    const busy = (user + system) / 10 / (performance.now() - began);
    const after = await server.usage();
    rows.push({
      what,
      result,
      target,
      "server µs": Math.round((after.cpu - before.cpu) / operations),
      "client busy": `${Math.round(busy)} %`,
    });
  });
}

/** Every client asks again and again for a while. */
async function rate(count: number, forSeconds: number, request: (turn: number) => string): Promise<Work> {
  const list = await clients(count);
  let operations = 0;
  const began = performance.now();
  const until = began + forSeconds * 1000;
  await Promise.all(
    list.map(async (client, lane) => {
      for (let turn = lane; performance.now() < until; turn += count) {
        const { status } = await client.send(request(turn));
        if (status >= 300) throw new Error(`answer ${status}`);
        operations++;
      }
    }),
  );
  const per = operations / ((performance.now() - began) / 1000);
  for (const client of list) client.close();
  return { result: `${Math.round(per).toLocaleString("en")}/s`, operations };
}

const cms = "/api/v1/namespaces/default/configmaps";
/** Text that compresses like configuration does: about four to one. */
const filler = Array.from(
  { length: 70 },
  (_, i) => `key${(i * 7919) % 1000}: v${((i * 104_729) % 997).toString(36)}\n`,
)
  .join("")
  .slice(0, 700);
let created = 0;
function creation(): string {
  const metadata = { name: `o${created++}`, labels: { app: "bench" } };
  return requestBytes(
    "POST",
    cms,
    JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { filler } }),
  );
}

await rateRow("create", "durable creates, 64 clients, SQLite", "4,000/s", 64, creation);
const filling = await clients(64);
await Promise.all(
  filling.map(async (client) => {
    while (created < objects) await client.send(creation());
  }),
);
for (const client of filling) client.close();

const reads = Array.from({ length: 1000 }, (_, i) => requestBytes("GET", `${cms}/o${i}`));
await rateRow("get", "gets, 32 connections", "20,000/s", 32, (turn) => reads[turn % 1000] ?? "");

let patched = 0;
await rateRow("patch", "merge patches, 32 connections", "2,000/s", 32, () =>
  requestBytes(
    "PATCH",
    `${cms}/o${patched++ % 1000}`,
    `{"metadata":{"labels":{"n":"${patched}"}}}`,
    "application/merge-patch+json",
  ),
);
let applied = 0;
await rateRow("apply", "server-side applies, 32 connections", "2,000/s", 32, () => {
  const name = `a${applied++ % 1000}`;
  return requestBytes(
    "PATCH",
    `${cms}/${name}?fieldManager=b&force=true`,
    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"},"data":{"n":"${applied}"}}`,
    "application/apply-patch+yaml",
  );
});

/** Median of some lists of all objects. */
async function lists(more: string): Promise<Work> {
  const client = await RawClient.connect(server.port);
  const request = requestBytes("GET", `${cms}?labelSelector=app%3Dbench&limit=${objects}`, "", "", more);
  const times: number[] = [];
  let last: Answer = { status: 0, bytes: 0 };
  for (let i = 0; i < 11; i++) {
    const began = performance.now();
    last = await client.send(request);
    times.push(performance.now() - began);
  }
  client.close();
  const median = times.toSorted((a, b) => a - b)[5] ?? 0;
  return { result: `${median.toFixed(0)} ms, ${(last.bytes / 2 ** 20).toFixed(1)} MB`, operations: 11 };
}
const count = objects.toLocaleString("en");
await row("list", `list of ${count} objects of 1 KiB`, "60 ms", () => lists(""));
await row("gzip", "… gzip", "250 ms", () => lists("accept-encoding: gzip\r\n"));
await row("protobuf", "… protobuf", "–", () => lists("accept: application/vnd.kubernetes.protobuf\r\n"));
await row("table", "… table", "–", () => lists("accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"));

await row("watch", "500 watchers × 200 writes/s, lag p50 / p99", "p99 50 ms", async () => {
  const { sorted, seen } = await watchLags(server.port, 500, 200, seconds);
  const at = (part: number): string => (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(0);
  return {
    result: `${at(0.5)} / ${at(0.99)} ms, ${(100 * seen).toFixed(1)} % seen`,
    operations: 200 * seconds,
  };
});

if (!only || only.includes("start")) {
  await server.stop();
  server = await RunningServer.start(store);
  const began = performance.now();
  const first = await RawClient.connect(server.port);
  await first.send(requestBytes("GET", `${cms}?limit=1`));
  const list = performance.now() - began;
  first.close();
  rows.push({
    what: `start with ${count} objects: process, then first list`,
    result: `${server.bootMs.toFixed(0)} + ${list.toFixed(0)} ms`,
    target: "1,000 ms",
    "server µs": (await server.usage()).cpu,
    "client busy": "",
  });
}
await server.stop();
await rm(folder, { recursive: true, force: true });
console.table(rows);
