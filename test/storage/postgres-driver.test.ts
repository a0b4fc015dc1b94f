/** The storage contract over a real PostgreSQL, and what only a database can do to it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import { openStore, restoreBackup, verifyStore, writeBackup, type Store } from "@kontinuum/storage";
import pg from "pg";
import { testContract } from "@kontinuum/storage/contract-suite";
import { findPostgres, startPostgres, type Postgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";

const skip = skipUnless(await findPostgres());

describe("postgres driver", { skip }, () => {
  let postgres: Postgres;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres.stop());

  testContract("postgres", async () => {
    const edges = systemEdges();
    const store = await openStore(postgres.url, edges);
    return {
      store,
      pass: (ms) => edges.clock.sleep(ms),
      second: () => openStore(postgres.url, edges),
      close: () => store.close(),
    };
  });

  test("a database that is gone is a retryable failure in bounded time, and no restart is needed when it is back", async () => {
    const store = await openStore(postgres.url, systemEdges());
    const put = (value: string) => store.txn({ success: [{ type: "put", key: "/gone", value }] });
    await put("before");
    const watch = store.watch({ key: "/gone" });
    await watch.ready;
    await postgres.kill();
    const started = performance.now();
    await assert.rejects(store.range({ key: "/gone" }), (error) => isCoded(error, "unavailable"));
    await assert.rejects(put("lost"), (error) => isCoded(error, "unavailable"));
    assert.ok(performance.now() - started < 20_000);
    await postgres.restart();
    await put("after");
    assert.equal((await store.range({ key: "/gone" })).kvs[0]?.value.toString(), "after");
    const { value: batch } = await watch[Symbol.asyncIterator]().next();
    assert.equal(batch?.events.at(-1)?.kv.value.toString(), "after");
    await store.close();
  });

  test("a commit whose answer is lost is looked up, not guessed", async () => {
    // Every connection of the writer is ended by the server at an arbitrary moment, many times.
    const store = await openStore(postgres.url, systemEdges());
    const admin = new pg.Client({ connectionString: postgres.url });
    await admin.connect();
    const base = (await store.txn({ success: [{ type: "put", key: "/count", value: "0" }] })).revision;
    let done = 0;
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (let i = 0; i < 60; i++) {
        await store.txn({ success: [{ type: "put", key: `/count/${writer}/${i}`, value: "" }] });
        done++;
      }
    });
    while (done < 400) {
      await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kontinuum-storage' AND state <> 'idle'",
      );
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    await Promise.all(writers);
    // Each write was acknowledged once and done once: nothing twice, nothing lost.
    assert.equal(await store.revision(), base + 480);
    const { kvs } = await store.range({ key: "/count/", end: "/count0" });
    assert.deepEqual([kvs.length, kvs.every((kv) => kv.version === 1)], [480, true]);
    assert.deepEqual((await verifyStore(store)).problems, []);
    await admin.end();
    await store.close();
  });

  test("what a writer thinks it knows is never written on: two replicas, and one that knows nothing yet", async () => {
    const replicas = await Promise.all([1, 2].map(() => openStore(postgres.url, systemEdges())));
    const begun = (await replicas[0]?.revision()) ?? 0;
    // Phases of one writer (what it knows is right) and of both (it is wrong most of the time), on the same few keys.
    const rounds = 40;
    let writes = 0;
    const write = async (store: Store, key: string): Promise<void> => {
      for (;;) {
        const [kv] = (await store.range({ key })).kvs;
        const value = String(Number(kv?.value.toString() ?? 0) + 1);
        const { succeeded } = await store.txn({
          compare: [{ key, target: "mod", result: "equal", operand: kv?.modRevision ?? 0 }],
          success: [{ type: "put", key, value }],
        });
        if (!succeeded) continue;
        writes++;
        return;
      }
    };
    const keys = ["/known/a", "/known/b", "/known/c"];
    for (const group of [replicas.slice(0, 1), replicas, replicas.slice(1)])
      await Promise.all(
        group.flatMap((store) =>
          keys.map(async (key) => {
            for (let i = 0; i < rounds; i++) await write(store, key);
          }),
        ),
      );
    assert.equal(writes, keys.length * rounds * 4);
    // The newcomer guesses that a key it never saw is new: it is not, and then it is.
    const fresh = await openStore(postgres.url, systemEdges());
    const put = (key: string) => fresh.txn({ success: [{ type: "put", key, value: "0", prevKv: true }] });
    await put("/known/new");
    const [replaced] = (await put("/known/a")).results;
    assert.equal(replaced?.type === "put" && replaced.prev?.value.toString(), String(rounds * 4));
    await fresh.txn({ success: [{ type: "delete", key: "/known/a" }] });
    const [created] = (await put("/known/a")).results;
    assert.deepEqual(created, { type: "put" });
    for (const store of replicas) {
      const { kvs } = await store.range({ key: "/known/", end: "/known0" });
      const versions = kvs.map((kv) => [kv.key.toString(), kv.version, kv.value.toString()]);
      const counted = ["b", "c"].map((name) => [`/known/${name}`, rounds * 4, String(rounds * 4)]);
      assert.deepEqual(versions, [["/known/a", 1, "0"], ...counted, ["/known/new", 1, "0"]]);
    }
    assert.equal(await fresh.revision(), begun + writes + 4);
    assert.deepEqual((await verifyStore(fresh)).problems, []);
    await Promise.all([...replicas, fresh].map((store) => store.close()));
  });

  test("a backup restored into an empty database is exact", async () => {
    const admin = new pg.Client({ connectionString: postgres.url });
    await admin.connect();
    await admin.query("CREATE DATABASE restored");
    await admin.end();
    const source = await openStore("memory://", systemEdges());
    const { id } = await source.leaseGrant(500);
    for (let i = 0; i < 1_500; i++)
      await source.txn({
        success: [{ type: "put", key: `/k/${i % 1_000}`, value: `v${i}`, lease: i % 7 === 0 ? id : 0n }],
      });
    const chunks: Uint8Array[] = [];
    for await (const chunk of writeBackup(source)) chunks.push(chunk);
    const target = await openStore(postgres.url.replace(/postgres$/, "restored"), systemEdges());
    await restoreBackup(async function* () {
      yield* chunks;
    }, target);
    assert.equal((await target.hash()).hash, (await source.hash()).hash);
    assert.deepEqual((await verifyStore(target)).problems, []);
    const { revision } = await target.txn({ success: [{ type: "put", key: "/k/1", value: "after" }] });
    const [kv] = (await target.range({ key: "/k/1" })).kvs;
    assert.deepEqual([kv?.version, kv?.modRevision], [3, revision]);
    await target.close();
    await source.close();
  });

  test("a newer schema is refused", async () => {
    const admin = new pg.Client({ connectionString: postgres.url });
    await admin.connect();
    await admin.query("UPDATE kontinuum_meta SET version = 99");
    await assert.rejects(openStore(postgres.url, systemEdges()), (error) => {
      assert.ok(isCoded(error, "failed_precondition"));
      assert.match(error.message, /use the newer release/);
      return true;
    });
    await admin.query("UPDATE kontinuum_meta SET version = 1");
    await admin.end();
  });

  test("what the URL gets wrong is said without its password", async () => {
    for (const [url, code] of [
      [postgres.url.replace(/postgres$/, "nosuchdb"), "failed_precondition"],
      [postgres.url.replace("postgres@", "nobody:hunter2@"), "unauthenticated"],
    ] as const)
      await assert.rejects(openStore(url, systemEdges()), (error) => {
        assert.ok(isCoded(error, code), String(error));
        assert.doesNotMatch(String(error), /hunter2/);
        return true;
      });
  });
});
