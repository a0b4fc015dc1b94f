/**
 * How fast the machine API is: creations, first pages, event streams, memory at rest.
 *
 * A real krytond process with the demo provider, called over real HTTP. Run it alone:
 * `node bench/kryton/kryton.bench.ts [STORAGE-URL]` (default `memory://`).
 */
import http from "node:http";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@kontinuum/std";
import { KrytondProcess } from "../../test/kryton/krytond-process.ts";

const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });
const storage = process.argv[2] ?? "memory://";

interface Row {
  readonly what: string;
  readonly result: string;
  readonly target: string;
}

/** One request; the answer's text. */
function request(url: string, method: string, path: string, body?: unknown): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = http.request(`${url}${path}`, { method, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () =>
        (response.statusCode ?? 500) < 300
          ? resolve(text)
          : reject(new Error(`${response.statusCode} ${text}`)),
      );
    });
    outgoing.once("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** CPU the process has used so far, milliseconds (Linux counts in hundredths of a second). */
async function cpuMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).replace(/^.*\) /s, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Runs `count` jobs, so many at a time; the result is the milliseconds it took. */
async function together(
  count: number,
  width: number,
  job: (index: number) => Promise<unknown>,
): Promise<number> {
  const startedAt = systemClock.monotonic();
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let index = next++; index < count; index = next++) await job(index);
    }),
  );
  return systemClock.monotonic() - startedAt;
}

const create = (url: string, name: string): Promise<string> =>
  request(url, "POST", "/api/v1/machines", {
    name,
    image: "debian-13",
    compute: { cpu: 1, memoryMiB: 1024 },
    disk: { sizeGiB: 20 },
  });

/** 500 subscribers, 200 events a second: lag from the answer's time in the event to its arrival. */
async function streams(
  url: string,
  subscribers: number,
  perSecond: number,
  seconds: number,
): Promise<number[]> {
  const lags: number[] = [];
  const open: http.ClientRequest[] = [];
  let sampled = 0;
  await Promise.all(
    Array.from({ length: subscribers }, () => {
      const mine = sampled++ % 10 === 0;
      return new Promise<void>((resolve, reject) => {
        const outgoing = http.get(`${url}/api/v1/events/stream`, { agent: false }, (response) => {
          resolve();
          response.on("error", () => {});
          response.on("data", (chunk: Buffer) => {
            // Only some subscribers measure: reading the clock of all would measure this process.
            if (!mine) return;
            const now = systemClock.now();
            for (const match of chunk.toString("latin1").matchAll(/"time":"([^"]+)"/g)) {
              lags.push(now - Date.parse(match[1] ?? ""));
            }
          });
        });
        outgoing.once("error", reject);
        open.push(outgoing);
      });
    }),
  );
  const machine: unknown = JSON.parse(await create(url, "streamed"));
  const id = typeof machine === "object" && machine !== null && "id" in machine ? String(machine.id) : "";
  lags.length = 0;
  const startedAt = systemClock.monotonic();
  const calls: Promise<unknown>[] = [];
  for (let i = 0; i < perSecond * seconds; i++) {
    const due = startedAt + (i * 1000) / perSecond;
    const wait = due - systemClock.monotonic();
    if (wait > 1) await systemClock.sleep(wait);
    calls.push(request(url, "PATCH", `/api/v1/machines/${id}`, { labels: { n: String(i) } }));
    if (calls.length > 64) await calls.shift();
  }
  await Promise.all(calls);
  await systemClock.sleep(500);
  for (const outgoing of open) outgoing.destroy();
  return lags;
}

const home = await mkdtemp(join(tmpdir(), "kryton-bench-"));
const rows: Row[] = [];
const env = { HOME: home, KRYTON_STORAGE: storage.replace("$HOME", home) };
// Once for the compile cache: the first start after a change of the program compiles, and holds what it took.
await (await KrytondProcess.start(env)).stop();
const krytond = await KrytondProcess.start(env);
try {
  await systemClock.sleep(1_500);
  rows.push({
    what: "memory at rest",
    result: `${(await residentMiB(krytond.pid)).toFixed(0)} MiB`,
    target: "<= 80 MB",
  });
  const before = await cpuMs(krytond.pid);
  const thousand = await together(1_000, 32, (i) => create(krytond.url, `a${i}`));
  rows.push({
    what: "1,000 machines created",
    result: `${(thousand / 1000).toFixed(2)} s`,
    target: "<= 2 s",
  });
  const beforeMore = await cpuMs(krytond.pid);
  await together(9_000, 32, (i) => create(krytond.url, `b${i}`));
  const afterMore = await cpuMs(krytond.pid);
  rows.push({
    what: "CPU a creation (first 1,000 / next 9,000)",
    result: `${((beforeMore - before) / 1000).toFixed(2)} / ${((afterMore - beforeMore) / 9000).toFixed(2)} ms`,
    target: "",
  });
  const pages: number[] = [];
  for (let i = 0; i < 200; i++) {
    const startedAt = systemClock.monotonic();
    await request(krytond.url, "GET", "/api/v1/machines?limit=50");
    pages.push(systemClock.monotonic() - startedAt);
  }
  rows.push({
    what: "first page of 10,000 (p50 / p99)",
    result: `${percentile(pages, 0.5).toFixed(1)} / ${percentile(pages, 0.99).toFixed(1)} ms`,
    target: "<= 10 ms",
  });
  const beforeStreams = await cpuMs(krytond.pid);
  rows.push({
    what: "CPU a first page",
    result: `${((beforeStreams - afterMore) / pages.length).toFixed(2)} ms`,
    target: "",
  });
  const lags = await streams(krytond.url, 500, 200, 5);
  rows.push({
    what: `500 streams x 200 events/s, lag (p50 / p99, ${lags.length} samples)`,
    result: `${percentile(lags, 0.5).toFixed(0)} / ${percentile(lags, 0.99).toFixed(0)} ms`,
    target: "p99 <= 100 ms",
  });
  rows.push({
    what: "CPU an event to 500 streams, its change included",
    result: `${(((await cpuMs(krytond.pid)) - beforeStreams) / 1_000).toFixed(2)} ms`,
    target: "",
  });
  rows.push({
    what: "memory with 10,000 machines",
    result: `${(await residentMiB(krytond.pid)).toFixed(0)} MiB`,
    target: "",
  });
} finally {
  agent.destroy();
  await krytond.stop();
  await rm(home, { recursive: true, force: true });
}
const width = Math.max(...rows.map(({ what }) => what.length));
console.log(`kryton on ${storage}`);
for (const { what, result, target } of rows)
  console.log(`  ${what.padEnd(width)}  ${result.padEnd(16)} ${target}`);
