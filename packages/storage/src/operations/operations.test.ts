import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isCoded, seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { scratchRoot } from "../contract/scratch.ts";
import { prefixRange, type Store } from "../contract.ts";
import { connectEtcd } from "../drivers/etcd/etcd-store.ts";
import { KeyRing } from "../encryption/key-file.ts";
import { serveEtcd } from "../etcd/services.ts";
import { openStore } from "../open.ts";
import { verifyBackup } from "./backup-file.ts";
import { writeBackup } from "./backup.ts";
import { backupToFile, compactStore, verifyStore } from "./operations.ts";
import { copyStore, defaultRevisionGap, restoreBackup } from "./restore.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(scratchRoot, "operations-"));
});
after(() => rm(folder, { recursive: true }));

const random = seededRandom(3);
const edges = () => systemEdges({ clock: new SimulatedClock(), random });
const open = (url = "memory://") => openStore(url, edges());
const put = (store: Store, key: string, value: string, lease = 0n) =>
  store.txn({ success: [{ type: "put", key, value, lease }] });
const dump = async (store: Store) =>
  (await store.range(prefixRange(""))).kvs.map(
    (kv) =>
      `${kv.key.toString()}=${kv.value.toString()} ${kv.createRevision}/${kv.modRevision}/${kv.version}/${kv.lease}`,
  );

async function filled(): Promise<Store> {
  const store = await open();
  const lease = await store.leaseGrant(500, 77n);
  for (let i = 0; i < 1_200; i++) await put(store, `/k/${i % 900}`, `value ${i}`);
  await put(store, "/leased", "x", lease.id);
  await store.txn({ success: [{ type: "delete", key: "/k/5" }] });
  return store;
}

test("a backup restored into another driver has the same pairs, revisions and leases", async () => {
  const store = await filled();
  const path = join(folder, "a.backup");
  const summary = await backupToFile(store, path);
  assert.deepEqual([summary.pairs, summary.leases, summary.driver], [900, 1, "memory"]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal(((await stat(path)).size - 32) % 512, 0);
  const target = await open(`sqlite://${folder}/restored.db`);
  assert.equal((await restoreBackup(path, target)).exact, true);
  assert.deepEqual(await dump(target), await dump(store));
  assert.equal(await target.revision(), summary.revision + defaultRevisionGap);
  assert.equal((await target.leaseTimeToLive(77n, true)).keys[0]?.toString(), "/leased");
  assert.equal((await target.hash()).hash, (await store.hash()).hash);
  assert.deepEqual((await verifyStore(target)).problems, []);
  await put(target, "/after", "x");
  await target.close();
  const again = await open(`sqlite://${folder}/restored.db`);
  assert.equal((await again.range({ key: "/after" })).count, 1);
  await again.close();
  await store.close();
});

test("a backup at a revision is of that revision", async () => {
  const store = await open();
  const { revision } = await put(store, "/a", "then");
  await put(store, "/a", "now");
  const path = join(folder, "past.backup");
  await backupToFile(store, path, { revision });
  const target = await open();
  await restoreBackup(path, target);
  assert.equal((await target.range({ key: "/a" })).kvs[0]?.value.toString(), "then");
  await Promise.all([store.close(), target.close()]);
});

test("a backup taken while writing is of one revision", async () => {
  const store = await open();
  for (let i = 0; i < 2_000; i++) await put(store, `/k/${String(i).padStart(4, "0")}`, "old");
  const revision = await store.revision();
  const chunks: Uint8Array[] = [];
  for await (const chunk of writeBackup(store)) {
    chunks.push(chunk);
    for (let i = 0; i < 50; i++) await put(store, `/k/${String(1_999 - i).padStart(4, "0")}`, "new");
  }
  const target = await open();
  await restoreBackup(async function* () {
    yield* chunks;
  }, target);
  assert.equal((await store.hash(revision)).hash, (await target.hash()).hash);
  await Promise.all([store.close(), target.close()]);
});

test("a damaged backup is refused before the target is touched", async () => {
  const store = await filled();
  const path = join(folder, "whole.backup");
  await backupToFile(store, path);
  const whole = await readFile(path);
  const flipped = Buffer.from(whole);
  flipped[9_000] = (flipped[9_000] ?? 0) ^ 0x10;
  const cases: [Buffer, RegExp][] = [
    [Buffer.alloc(0), /empty/],
    [whole.subarray(0, whole.length - 1), /cut off/],
    [whole.subarray(0, 512 * 4 + 32), /damaged/],
    [flipped, /damaged/],
    [Buffer.from("SQLite format 3\0".repeat(40)), /damaged/],
    [Buffer.concat([whole, whole]), /damaged/],
  ];
  for (const [bytes, pattern] of cases) {
    const bad = join(folder, "bad.backup");
    await writeFile(bad, bytes);
    const target = await open();
    await assert.rejects(restoreBackup(bad, target), (error) => {
      assert.ok(isCoded(error, "data_loss"), String(error));
      assert.match(error.message, pattern);
      return true;
    });
    assert.equal(await target.revision(), 1);
    await target.close();
  }
  await store.close();
});

test("a store that is not empty is not restored into, a file not written over", async () => {
  const store = await filled();
  const path = join(folder, "once.backup");
  await backupToFile(store, path);
  await assert.rejects(restoreBackup(path, store), (error) => isCoded(error, "failed_precondition"));
  await assert.rejects(backupToFile(store, path), (error) => isCoded(error, "already_exists"));
  assert.ok((await verifyBackup(path)).pairs > 0);
  await store.close();
});

test("a failed backup leaves nothing behind", async () => {
  const store = await open();
  const before = await readdir(folder);
  await assert.rejects(backupToFile(store, join(folder, "none.backup"), { revision: 99 }));
  assert.deepEqual(await readdir(folder), before);
  await store.close();
});

test("an encrypted store's backup stays sealed and says which key it needs", async () => {
  const keys = new KeyRing([{ id: "k1", secret: Buffer.from(random.bytes(32)) }]);
  const encryption = { keys, prefixes: ["/"] };
  const store = await openStore("memory://", edges(), { encryption });
  await put(store, "/secret", "do-not-show");
  const path = join(folder, "sealed.backup");
  const summary = await backupToFile(store, path);
  assert.deepEqual(summary.encryptionKeys, ["k1"]);
  assert.ok(!(await readFile(path)).includes("do-not-show"));
  const target = await openStore("memory://", edges(), { encryption });
  const other = new KeyRing([{ id: "k1", secret: Buffer.from(random.bytes(32)) }]);
  await assert.rejects(restoreBackup(path, target), /needs encryption key k1/);
  await assert.rejects(restoreBackup(path, target, { keys: other }), (error) => isCoded(error, "data_loss"));
  await restoreBackup(path, target, { keys });
  assert.equal((await target.range({ key: "/secret" })).kvs[0]?.value.toString(), "do-not-show");
  await Promise.all([store.close(), target.close()]);
});

test("copying into a remote store carries keys, values and leases", async () => {
  const store = await filled();
  const behind = await open();
  const server = await serveEtcd(behind);
  const remote = connectEtcd({ endpoints: [`127.0.0.1:${server.port}`] }, systemEdges());
  assert.equal((await copyStore(store, remote)).exact, false);
  const values = async (from: Store) =>
    (await from.range(prefixRange(""))).kvs.map(
      (kv) => `${kv.key.toString()}=${kv.value.toString()} ${kv.lease}`,
    );
  assert.deepEqual(await values(remote), await values(store));
  await remote.close();
  await server.close();
  await Promise.all([behind.close(), store.close()]);
});

test("compacting removes history and keeps what was asked for", async () => {
  const store = await open(`sqlite://${folder}/compact.db`);
  for (let i = 0; i < 100; i++) await put(store, "/a", String(i).repeat(100));
  const revision = await store.revision();
  assert.equal(await compactStore(store, { keep: 10 }), revision - 10);
  assert.equal((await store.range({ key: "/a", revision: revision - 10 })).count, 1);
  await assert.rejects(store.range({ key: "/a", revision: revision - 11 }), (error) =>
    isCoded(error, "gone"),
  );
  assert.deepEqual((await verifyStore(store)).problems, []);
  await store.close();
});
