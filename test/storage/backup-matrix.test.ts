/**
 * Backups from every driver into every driver: at the newest revision and at an earlier one, with leases. And a file of each
 * format version that was ever written, which must stay readable.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemEdges } from "@kontinuum/std";
import {
  backupToFile,
  openStore,
  prefixRange,
  restoreBackup,
  verifyBackup,
  verifyStore,
  type Store,
} from "@kontinuum/storage";
import pg from "pg";
import { findEtcd, startEtcd } from "../services/etcd.ts";
import { findPostgres, startPostgres, type Postgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";

const edges = systemEdges();
const drivers = ["memory", "sqlite", "postgres", "etcd"] as const;
type Driver = (typeof drivers)[number];
const found = { memory: "", sqlite: "", postgres: await findPostgres(), etcd: await findEtcd() };

/** Pairs as text. Revisions are kept by every driver but etcd, which counts by itself. */
async function dump(store: Store, revision = 0): Promise<string[]> {
  const { kvs } = await store.range({ ...prefixRange(""), revision });
  return kvs.map((kv) => `${kv.key.toString()}=${kv.value.toString("hex")} lease ${kv.lease}`);
}

describe("backups from every driver into every driver", () => {
  let folder: string;
  let postgres: Postgres | undefined;
  let made = 0;
  const ends: (() => Promise<void>)[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "matrix-"));
    if (typeof found.postgres === "string") postgres = await startPostgres({ fsync: "off" });
  });
  after(async () => {
    for (const end of ends) await end();
    await postgres?.stop();
    await rm(folder, { recursive: true });
  });

  /** A new, empty store. */
  async function open(driver: Driver): Promise<Store> {
    const name = `m${made++}`;
    let url = driver === "memory" ? "memory://" : `sqlite://${folder}/${name}.db`;
    if (driver === "postgres" && postgres) {
      const admin = new pg.Client({ connectionString: postgres.url });
      await admin.connect();
      await admin.query(`CREATE DATABASE ${name}`);
      await admin.end();
      url = postgres.url.replace(/postgres$/, name);
    }
    if (driver === "etcd") {
      const etcd = await startEtcd();
      ends.push(() => etcd.stop());
      ({ url } = etcd);
    }
    const store = await openStore(url, edges, { retention: { intervalMs: 0 } });
    ends.unshift(() => store.close());
    return store;
  }

  async function filled(driver: Driver): Promise<{ store: Store; past: number }> {
    const store = await open(driver);
    const { id } = await store.leaseGrant(5_000, 77n);
    for (let i = 0; i < 300; i++)
      await store.txn({
        success: [
          {
            type: "put",
            key: `/k/${i % 250}`,
            value: Buffer.from([i, 0, 255]),
            lease: i % 9 === 0 ? id : 0n,
          },
        ],
      });
    const { revision } = await store.txn({ success: [{ type: "delete", key: "/k/7" }] });
    await store.txn({ success: [{ type: "put", key: "/later", value: "x" }] });
    return { store, past: revision };
  }

  for (const from of drivers)
    test(`from ${from}`, { skip: skipUnless(found[from]), timeout: 120_000 }, async () => {
      const { store, past } = await filled(from);
      const files = [
        { path: join(folder, `${from}.backup`), revision: await store.revision() },
        { path: join(folder, `${from}-past.backup`), revision: past },
      ];
      for (const { path, revision } of files) await backupToFile(store, path, { revision });
      for (const to of drivers) {
        if (typeof found[to] !== "string") continue;
        for (const { path, revision } of files) {
          const target = await open(to);
          const { exact } = await restoreBackup(path, target);
          assert.equal(exact, to !== "etcd");
          assert.deepEqual(await dump(target), await dump(store, revision), `${from} into ${to}`);
          if (exact)
            assert.equal((await target.hash()).hash, (await store.hash(revision)).hash, `${from} into ${to}`);
          // Into etcd a lease is granted anew, for the time that it had left.
          const { grantedTtl } = await target.leaseTimeToLive(77n);
          assert.ok(exact ? grantedTtl === 5_000 : grantedTtl > 4_900, `${grantedTtl} seconds`);
          assert.deepEqual((await verifyStore(target)).problems, []);
        }
      }
    });
});

test("a backup of format version 1 is restored", async () => {
  const path = fileURLToPath(new URL("./fixtures/format-1.backup", import.meta.url));
  assert.deepEqual((await verifyBackup(path)).pairs, 3);
  const store = await openStore("memory://", edges);
  await restoreBackup(path, store);
  assert.deepEqual(await dump(store), [
    `/a=${Buffer.from("one").toString("hex")} lease 0`,
    `/b=${Buffer.from([0, 255]).toString("hex")} lease 7`,
    "/empty= lease 0",
  ]);
  const [kv] = (await store.range({ key: "/a" })).kvs;
  assert.deepEqual([kv?.createRevision, kv?.modRevision, kv?.version], [2, 3, 2]);
  await store.close();
});
