/**
 * The API server over HTTP, client on the other core: lists, gets, durable creates, patches, applies, watches, start,
 * memory. Prints a table with the target of each row.
 */
import { fork, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { RawClient } from "./raw-client.ts";

const objects = Number(process.env["BENCH_OBJECTS"] ?? 10_000);
const seconds = Number(process.env["BENCH_SECONDS"] ?? 3);
const folder = await mkdtemp(path.join(os.tmpdir(), "kapi-bench-"));
const store = `sqlite://${path.join(folder, "store.db")}`;
const rows: { what: string; result: string; target: string }[] = [];

interface Running {
  readonly child: ChildProcess;
  readonly port: number;
  readonly startMs: number;
}

function startServer(): Promise<Running> {
  const child = fork(path.join(import.meta.dirname, "server-process.ts"), [store], {
    execArgv: ["--expose-gc"],
  });
  return new Promise((resolve) =>
    child.once("message", (message: { port: number; startMs: number }) => resolve({ child, ...message })),
  );
}

/** Resident bytes and processor time (microseconds) of the server. */
function usage({ child }: Running): Promise<{ memory: number; cpu: number }> {
  return new Promise((resolve) => {
    child.once("message", ({ memory, cpu }: { memory: number; cpu: NodeJS.CpuUsage }) =>
      resolve({ memory, cpu: cpu.user + cpu.system }),
    );
    child.send("memory");
  });
}

function stopServer({ child }: Running): Promise<void> {
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.send("stop");
  });
}

const clients = (port: number, count: number): Promise<RawClient[]> =>
  Promise.all(Array.from({ length: count }, () => RawClient.connect(port)));

/**
 * Runs `work` on every client for a while; answers how often per second and the server's processor time for each, which
 * other work on the machine does not change.
 */
async function rate(
  count: number,
  work: (client: RawClient, turn: number) => Promise<{ status: number }>,
): Promise<string> {
  const list = await clients(server.port, count);
  const before = await usage(server);
  let done = 0;
  const began = performance.now();
  const until = began + seconds * 1000;
  await Promise.all(
    list.map(async (client, lane) => {
      for (let turn = lane; performance.now() < until; turn += count) {
        const { status } = await work(client, turn);
        if (status >= 300) throw new Error(`answer ${status}`);
        done++;
      }
    }),
  );
  const per = done / ((performance.now() - began) / 1000);
  const after = await usage(server);
  for (const client of list) client.close();
  return `${Math.round(per).toLocaleString("en")}/s, ${Math.round((after.cpu - before.cpu) / done)} µs of CPU each`;
}

const cms = "/api/v1/namespaces/default/configmaps";
/** Text that compresses like configuration does: about four to one. */
const filler = Array.from(
  { length: 70 },
  (_, i) => `key${(i * 7919) % 1000}: v${((i * 104_729) % 997).toString(36)}\n`,
)
  .join("")
  .slice(0, 700);
const body = (name: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, labels: { app: "bench" } },
    data: { filler },
  });

let server = await startServer();
rows.push({
  what: "idle memory",
  result: `${Math.round((await usage(server)).memory / 2 ** 20)} MB`,
  target: "120 MB",
});

let created = 0;
const creates = await rate(64, (client) => client.ask("POST", cms, body(`o${created++}`)));
rows.push({ what: "durable creates, 64 clients, SQLite", result: creates, target: "4,000/s" });
const filling = await clients(server.port, 64);
await Promise.all(
  filling.map(async (client) => {
    while (created < objects) await client.ask("POST", cms, body(`o${created++}`));
  }),
);
for (const client of filling) client.close();

const gets = await rate(32, (client, turn) => client.ask("GET", `${cms}/o${turn % 1000}`));
rows.push({ what: "gets, 32 connections", result: gets, target: "20,000/s" });

const patches = await rate(32, (client, turn) =>
  client.ask(
    "PATCH",
    `${cms}/o${turn % 1000}`,
    `{"metadata":{"labels":{"n":"${turn}"}}}`,
    "application/merge-patch+json",
  ),
);
rows.push({ what: "merge patches, 32 connections", result: patches, target: "2,000/s" });
const applies = await rate(32, (client, turn) =>
  client.ask(
    "PATCH",
    `${cms}/a${turn % 1000}?fieldManager=b&force=true`,
    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a${turn % 1000}"},"data":{"n":"${turn}"}}`,
    "application/apply-patch+yaml",
  ),
);
rows.push({ what: "server-side applies, 32 connections", result: applies, target: "2,000/s" });

async function listTime(more: string): Promise<{ ms: number; bytes: number }> {
  const client = await RawClient.connect(server.port);
  const times: number[] = [];
  let bytes = 0;
  for (let i = 0; i < 7; i++) {
    const began = performance.now();
    bytes = (await client.ask("GET", `${cms}?labelSelector=app%3Dbench&limit=${objects}`, "", "", more))
      .bytes;
    times.push(performance.now() - began);
  }
  client.close();
  return { ms: times.sort((a, b) => a - b)[3] ?? 0, bytes };
}
const plain = await listTime("");
rows.push({
  what: `list of ${objects.toLocaleString("en")} objects (${(plain.bytes / 2 ** 20).toFixed(1)} MB)`,
  result: `${plain.ms.toFixed(0)} ms`,
  target: "60 ms",
});
const zipped = await listTime("accept-encoding: gzip\r\n");
rows.push({
  what: `… gzip (${(zipped.bytes / 2 ** 20).toFixed(1)} MB)`,
  result: `${zipped.ms.toFixed(0)} ms`,
  target: "250 ms",
});

rows.push(await watchLag());
await stopServer(server);
server = await startServer();
const began = performance.now();
const first = await RawClient.connect(server.port);
await first.ask("GET", `${cms}?limit=1`);
rows.push({
  what: `start with ${objects.toLocaleString("en")} objects, first list answered`,
  result: `${(server.startMs + performance.now() - began).toFixed(0)} ms`,
  target: "1,000 ms",
});
first.close();
await stopServer(server);
await rm(folder, { recursive: true, force: true });
console.table(rows);

/** 500 watchers, 200 writes a second for a few seconds: delay from the write's request to each watcher. */
async function watchLag(): Promise<{ what: string; result: string; target: string }> {
  const watchers = 500;
  const writes = 200 * seconds;
  const sent: number[] = [];
  const mark = Buffer.from('"tick":"');
  const lags: number[] = [];
  const sockets: net.Socket[] = [];
  let open = 0;
  for (let i = 0; i < watchers; i++) {
    const socket = net.connect({ port: server.port, host: "127.0.0.1" });
    socket.write(
      "GET /api/v1/namespaces/kube-public/configmaps?watch=1&resourceVersion=0 HTTP/1.1\r\nhost: b\r\nauthorization: Bearer bench\r\n\r\n",
    );
    socket.once("data", () => open++);
    socket.on("data", (chunk: Buffer) => {
      const now = performance.now();
      for (let i = chunk.indexOf(mark); i !== -1; i = chunk.indexOf(mark, i + 1)) {
        const at = sent[Number(chunk.toString("latin1", i + mark.length, i + mark.length + 7))];
        if (at !== undefined) lags.push(now - at);
      }
    });
    socket.on("error", () => {});
    sockets.push(socket);
  }
  while (open < watchers) await new Promise((resolve) => setTimeout(resolve, 10));
  const writer = await clients(server.port, 8);
  const url = "/api/v1/namespaces/kube-public/configmaps";
  await writer[0]?.ask("POST", url, JSON.stringify({ metadata: { name: "ticker" }, data: {} }));
  const start = performance.now();
  let turn = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(writes, Math.floor(((performance.now() - start) / 1000) * 200));
      for (; turn < due; turn++) {
        const id = String(turn).padStart(7, "0");
        sent[turn] = performance.now();
        const client = writer[turn % writer.length];
        void client?.ask(
          "PATCH",
          `${url}/ticker`,
          `{"data":{"tick":"${id}"}}`,
          "application/merge-patch+json",
        );
      }
      if (turn >= writes) {
        clearInterval(timer);
        resolve();
      }
    }, 2);
  });
  const until = performance.now() + 5000;
  while (lags.length < writes * watchers && performance.now() < until)
    await new Promise((resolve) => setTimeout(resolve, 20));
  for (const socket of sockets) socket.destroy();
  for (const client of writer) client.close();
  lags.sort((a, b) => a - b);
  const at = (part: number): string => (lags[Math.floor(lags.length * part)] ?? 0).toFixed(0);
  const share = ((100 * lags.length) / (writes * watchers)).toFixed(1);
  return {
    what: `${watchers} watchers × 200 writes/s, lag p50 / p99 (${share} % seen)`,
    result: `${at(0.5)} / ${at(0.99)} ms`,
    target: "p99 50 ms",
  };
}
