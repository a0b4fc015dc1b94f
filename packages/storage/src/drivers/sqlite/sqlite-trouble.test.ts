/** What can be wrong with a file, and what is said then. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isCoded, SimulatedClock, systemEdges, type ErrorCode } from "@kontinuum/std";
import { scratchRoot } from "../../contract/scratch.ts";
import type { Store } from "../../contract.ts";
import { verifyStore } from "../../operations/operations.ts";
import { openStore } from "../../open.ts";
import { applicationId, schemaVersion } from "./database.ts";
import { ownerFile } from "./ownership.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(scratchRoot, "sqlite-trouble-"));
});
after(() => rm(folder, { recursive: true }));

const path = (name: string): string => join(folder, name);
const at = (name: string, clock = new SimulatedClock()): Promise<Store> =>
  openStore(`sqlite://${path(name)}`, systemEdges({ clock }));
const put = (store: Store, key: string, value: string) =>
  store.txn({ success: [{ type: "put", key, value }] });

async function refused(work: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(isCoded(error, code), String(error));
    assert.match(error.message, message);
    return true;
  });
}

test("a file of another program is refused and not touched", async () => {
  const other = new DatabaseSync(path("foreign.db"));
  other.exec("CREATE TABLE theirs(x)");
  other.close();
  const before = await readFile(path("foreign.db"));
  await refused(at("foreign.db"), "data_loss", /another program/);
  assert.deepEqual(await readFile(path("foreign.db")), before);
});

test("what is no database is refused", async () => {
  await writeFile(path("text.db"), "this is not a database, and long enough to have a header\n".repeat(40));
  await refused(at("text.db"), "data_loss", /damaged or not a SQLite database/);
  await refused(openStore(`sqlite://${folder}`, systemEdges()), "invalid_argument", /not a file/);
});

test("a newer schema is refused with the remedy", async () => {
  const newer = new DatabaseSync(path("newer.db"));
  newer.exec(
    `CREATE TABLE log(x); PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion + 1}`,
  );
  newer.close();
  await refused(at("newer.db"), "failed_precondition", /use the newer release/);
});

test("a path that cannot be opened is named", async () => {
  await refused(
    at("no/such/folder/a.db"),
    "invalid_argument",
    /cannot be created: check that its folder exists/,
  );
});

test("damaged pages are found by verify, and reads of them say so", async () => {
  const store = await at("damaged.db");
  for (let i = 0; i < 300; i++) await put(store, `/k/${i}`, "x".repeat(2_000));
  assert.deepEqual((await verifyStore(store)).problems, []);
  await store.close();
  const file = await open(path("damaged.db"), "r+");
  const { size } = await file.stat();
  // Everything behind the first pages, so that the file still opens.
  for (let position = 4096 * 40; position + 4096 < size; position += 4096 * 7)
    await file.write(Buffer.alloc(4096, 0xa5), 0, 4096, position);
  await file.close();
  const again = await at("damaged.db");
  const { problems } = await verifyStore(again);
  assert.ok(problems.length > 0);
  assert.match(problems.join("\n"), /SQLite:|damaged/);
  await refused(again.range({ key: "\0", end: "\0" }), "data_loss", /restore it from a backup/);
  await again.close();
});

test("a live key that lost its log entry is named by verify", async () => {
  const store = await at("lost.db");
  await put(store, "/lost", "1");
  await put(store, "/kept", "1");
  await store.close();
  const raw = new DatabaseSync(path("lost.db"));
  raw.exec("DELETE FROM log WHERE key = CAST('/lost' AS BLOB)");
  raw.close();
  const again = await at("lost.db");
  assert.match(
    (await verifyStore(again)).problems.join("\n"),
    /a live key without its log entry: key "\/lost"/,
  );
  await again.close();
});

test("a second owner is refused and told the first one's process", async () => {
  const store = await at("owned.db");
  await refused(at("owned.db"), "failed_precondition", new RegExp(`in use by process ${process.pid}`));
  const program = `import { systemEdges } from "@kontinuum/std";
    const { openStore } = await import(${JSON.stringify(new URL("../../open.ts", import.meta.url).href)});
    await openStore(process.argv[1], systemEdges()).then(() => console.log("opened"), (error) => console.log(error.message));`;
  const child = spawn(
    process.execPath,
    ["--input-type=module", "-e", program, `sqlite://${path("owned.db")}`],
    {
      cwd: import.meta.dirname,
    },
  );
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await once(child, "close");
  assert.match(output, new RegExp(`in use by process ${process.pid}`));
  await store.close();
  // What a killed process leaves behind is not in the way.
  await writeFile(ownerFile(path("owned.db")), "999999\n");
  await (await at("owned.db")).close();
});

test("files are readable by their owner only", async () => {
  const store = await at("private.db");
  await put(store, "/a", "1");
  for (const name of ["private.db", "private.db-wal", "private.db-owner"])
    assert.equal((await stat(path(name))).mode & 0o777, 0o600, name);
  await store.close();
});

test("leases go by the wall clock across a restart, clamped, and by the monotonic one within a process", async () => {
  const start = Date.UTC(2026, 0, 1);
  const first = await at("lease.db", new SimulatedClock(start));
  const { id } = await first.leaseGrant(100, 5n);
  await first.txn({ success: [{ type: "put", key: "/a", value: "1", lease: id }] });
  await first.close();
  const later = new SimulatedClock(start + 40_000);
  const second = await at("lease.db", later);
  assert.equal((await second.leaseTimeToLive(id)).ttl, 60);
  await second.close();
  // The wall clock went back: never more than what was asked for.
  const third = await at("lease.db", new SimulatedClock(start - 3_600_000));
  assert.equal((await third.leaseTimeToLive(id)).ttl, 100);
  await third.close();
  const much = new SimulatedClock(start + 3_600_000);
  const fourth = await at("lease.db", much);
  assert.equal((await fourth.leaseTimeToLive(id)).ttl, -1);
  for (let turn = 0; turn < 10; turn++) await much.advance(1);
  assert.equal((await fourth.range({ key: "/a" })).count, 0);
  await fourth.close();
});

test("the file stays within twice its live data and the write-ahead log is bounded", async () => {
  const clock = new SimulatedClock();
  const store = await openStore(`sqlite://${path("bounded.db")}`, systemEdges({ clock }), {
    retention: { intervalMs: 1_000, retainMs: 1_000, retainRevisions: 50 },
  });
  const value = "x".repeat(1_500);
  let largestWal = 0;
  for (let round = 0; round < 12; round++) {
    await Promise.all(Array.from({ length: 400 }, (_, i) => put(store, `/k/${i}`, `${round}${value}`)));
    await clock.advance(1_000);
    largestWal = Math.max(largestWal, (await stat(path("bounded.db-wal"))).size);
  }
  const live = 400 * (1_500 + 60);
  const fileBytes = async (): Promise<number> =>
    (await store.status()).sizeBytes - (await stat(path("bounded.db-wal"))).size;
  // Flushes take real time, which the simulated clock does not wait for.
  for (let turn = 0; turn < 5_000 && (await fileBytes()) >= 2 * live; turn++) await clock.advance(50);
  await store.close();
  const { size } = await stat(path("bounded.db"));
  assert.ok(size < 2 * live, `${size} bytes for ${live} live ones`);
  assert.ok(largestWal < 48 * 1024 * 1024, `write-ahead log of ${largestWal} bytes`);
});
