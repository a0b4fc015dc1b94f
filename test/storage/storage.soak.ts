/**
 * A long run of writes over a small live set: file, write-ahead log, table and memory must stop growing.
 * `SOAK_MINUTES` per driver (default 5). Fails when a bound is broken.
 */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom, systemEdges } from "@kontinuum/std";
import { compactStore, openStore, prefixRange, verifyStore, type Store } from "@kontinuum/storage";
import { findEtcd, startEtcd } from "../services/etcd.ts";
import { findPostgres, startPostgres } from "../services/postgres.ts";

const minutes = Number(process.env["SOAK_MINUTES"] ?? 5);
const keys = 2_000;
const value = "x".repeat(2_000);
const live = keys * (value.length + 20);
const retention = { intervalMs: 5_000, retainMs: 10_000, retainRevisions: 1_000, maxRevisions: 20_000 };
const edges = systemEdges();
let failed = false;

function check(what: string, actual: number, bound: number): void {
  const ok = actual <= bound;
  failed ||= !ok;
  process.stdout.write(
    `${ok ? "ok  " : "FAIL"} ${what}: ${(actual / 2 ** 20).toFixed(1)} MiB, at most ${(bound / 2 ** 20).toFixed(1)}\n`,
  );
}

/** Hashes of what the same program left, by driver. */
const hashes = new Map<string, string>();

/** The same program on every driver: transactions of puts and deletes over few keys. What it leaves must be the same to the last revision. */
async function program(name: string, programmed: Store): Promise<void> {
  const random = seededRandom(42);
  for (let i = 0; i < 3_000; i++) {
    const names = new Set(
      Array.from({ length: 1 + random.integer(8) }, () => `/program/${random.integer(500)}`),
    );
    await programmed.txn({
      success: Array.from(names, (key) =>
        random.integer(5) === 0 ? { type: "delete", key } : { type: "put", key, value: `${i}` },
      ),
    });
  }
  const { hash, revision } = await programmed.hash();
  hashes.set(name, `${hash.toString(16)} at revision ${revision}`);
}

async function soak(store: Store, sample: () => Promise<void>): Promise<number> {
  const until = performance.now() + minutes * 60_000;
  const watch = store.watch(prefixRange("/soak/"));
  let seen = 0;
  const watching = (async () => {
    for await (const { events } of watch) seen += events.length;
  })();
  let written = 0;
  while (performance.now() < until) {
    await Promise.all(
      Array.from({ length: 32 }, () => {
        const key = `/soak/${written++ % keys}`;
        return written % 11 === 0
          ? store.txn({ success: [{ type: "delete", key }] })
          : store.txn({ success: [{ type: "put", key, value }] });
      }),
    );
    if (written % 3_200 === 0) await sample();
  }
  watch.close();
  await watching;
  process.stdout.write(`${written} writes, ${seen} events\n`);
  return written;
}

async function finish(store: Store): Promise<void> {
  await compactStore(store, { keep: 10 });
  const { problems } = await verifyStore(store);
  for (const problem of problems) process.stdout.write(`FAIL ${problem}\n`);
  failed ||= problems.length > 0;
}

const folder = await mkdtemp(join(tmpdir(), "soak-"));
const path = join(folder, "soak.db");
const store = await openStore(`sqlite://${path}`, edges, { retention });
let wal = 0;
let memory = 0;
process.stdout.write("SQLite\n");
await program("sqlite", store);
await soak(store, async () => {
  wal = Math.max(wal, (await stat(`${path}-wal`)).size);
  memory = process.memoryUsage().rss;
});
check("write-ahead log at its largest", wal, 48 * 2 ** 20);
check("memory of the process", memory, 400 * 2 ** 20);
await finish(store);
await store.close();
check("file", (await stat(path)).size, 2 * live);
await rm(folder, { recursive: true });

if (typeof (await findPostgres()) === "string") {
  const postgres = await startPostgres({ autovacuum_naptime: "5s" });
  const replica = await openStore(postgres.url, edges, { retention });
  process.stdout.write("PostgreSQL\n");
  await program("postgres", replica);
  let largest = 0;
  await soak(replica, async () => {
    largest = Math.max(largest, (await replica.status()).sizeBytes);
  });
  // Retained history, and as much again for what vacuum has not reached yet.
  check(
    "tables at their largest",
    largest,
    4 * (live + retention.maxRevisions * 1.25 * (value.length + 200)),
  );
  await finish(replica);
  await replica.close();
  await postgres.stop();
}
if (typeof (await findEtcd()) === "string") {
  const etcd = await startEtcd();
  const remote = await openStore(etcd.url, edges);
  await program("etcd", remote);
  await remote.close();
  await etcd.stop();
}
const inMemory = await openStore("memory://", edges);
await program("memory", inMemory);
await inMemory.close();
const same = new Set(hashes.values()).size === 1;
failed ||= !same;
for (const [name, hash] of hashes)
  process.stdout.write(`${same ? "ok  " : "FAIL"} hash on ${name}: ${hash}\n`);
process.exit(failed ? 1 : 0);
