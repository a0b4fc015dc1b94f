/**
 * A primary that dies and a standby that takes its place, with two replicas of the store in between: what was acknowledged is
 * there, nothing is done twice, watches miss nothing, and nobody has to be restarted. Replication is synchronous: without
 * that PostgreSQL itself loses acknowledged commits.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded, seededRandom, silentLog, systemEdges } from "@kontinuum/std";
import {
  openStore,
  prefixRange,
  verifyStore,
  type Store,
  type StoreEvent,
  type WatchBatch,
} from "@kontinuum/storage";
import { checkHistory, History } from "@kontinuum/storage/history";
import pg from "pg";
import { findPostgres, startPostgres, startStandby } from "../services/postgres.ts";
import { skipUnless, waitFor } from "../services/service.ts";
import { collect, recordedClient } from "./recorded-clients.ts";

const skip = skipUnless(await findPostgres());
const options = { retention: { intervalMs: 0 } };

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows.flatMap((row) => Object.values(row));
  } finally {
    await client.end();
  }
}

test("a standby takes over in the middle of writes", { skip, timeout: 180_000 }, async () => {
  const primary = await startPostgres();
  const standby = await startStandby(primary);
  const stop = new AbortController();
  try {
    await query(primary.url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await query(primary.url, "SELECT pg_reload_conf()");
    await waitFor("the standby to be in step", async () =>
      (await query(primary.url, "SELECT sync_state FROM pg_stat_replication")).includes("sync"),
    );
    const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
    // Either may be named first: a standby is not taken for the primary.
    const urls = [hosts, hosts.split(",").toReversed().join(",")].map(
      (names) => `postgres://postgres@${names}/postgres`,
    );
    const errors: string[] = [];
    const log = { ...silentLog, error: (message: string) => void errors.push(message) };
    const replicas = await Promise.all(urls.map((url) => openStore(url, systemEdges({ log }), options)));
    const history = new History();
    const random = seededRandom(5);
    let counter = 0;
    const clients = replicas.flatMap((store, replica) =>
      [0, 1, 2, 3].map((id) =>
        recordedClient(store, history, replica * 4 + id, random, stop.signal, () => `v${counter++}`),
      ),
    );
    const seen: StoreEvent[][] = replicas.map(() => []);
    const watching = replicas.map(async (store, i) => {
      while (!stop.signal.aborted) await collect(store, seen[i] ?? [], stop.signal);
    });
    await waitFor("clients to be under way", () => history.finished.length >= 200);
    await primary.kill();
    assert.deepEqual(await query(standby.url, "SELECT pg_promote()"), [true]);
    const since = history.finished.length;
    await waitFor(
      "clients to go on with the new primary",
      () => history.finished.length >= since + 200,
      60_000,
    );
    stop.abort();
    await Promise.all(clients);

    const everything: StoreEvent[] = [];
    const end = new AbortController();
    const direct = await openStore(standby.url, systemEdges(), options);
    const reading = collect(direct, everything, end.signal);
    const newest = Math.max(...(await direct.range(prefixRange("/crash/"))).kvs.map((kv) => kv.modRevision));
    await waitFor("the whole log", () => (everything.at(-1)?.kv.modRevision ?? 0) >= newest);
    end.abort();
    await reading;
    assert.deepEqual(checkHistory(history, everything, { contiguous: true }), []);
    const revisions = (events: readonly StoreEvent[]): number[] => events.map(({ kv }) => kv.modRevision);
    for (const events of seen) {
      assert.ok(events.length > 100, `${events.length} events`);
      assert.deepEqual(revisions(events), revisions(everything.slice(0, events.length)));
    }
    assert.deepEqual((await verifyStore(direct)).problems, []);
    // What both had seen is shown to be kept, so no watch had to begin anew.
    assert.deepEqual(errors, []);
    await Promise.all([...watching, direct.close(), ...replicas.map((store) => store.close())]);
  } finally {
    stop.abort();
    await standby.stop();
    await primary.stop();
  }
});

test(
  "a standby that lacks acknowledged writes takes over: watches are told, and nothing old is served or written on",
  { skip, timeout: 120_000 },
  async () => {
    const primary = await startPostgres();
    const standby = await startStandby(primary);
    const put = (to: Store, key: string, value: string) => to.txn({ success: [{ type: "put", key, value }] });
    try {
      const url = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres`;
      const store = await openStore(url, systemEdges(), options);
      for (let i = 0; i < 100; i++) await put(store, `/k/${i}`, "kept");
      const { revision: kept } = await put(store, "/last", "kept");
      const replayed = "SELECT revision::int FROM kontinuum_meta";
      await waitFor("the standby", async () => (await query(standby.url, replayed))[0] === kept);
      await standby.kill();
      const lost = store.watch({ ...prefixRange("/"), startRevision: 2 });
      const seen: number[] = [];
      const watching = (async () => {
        for await (const { events } of lost) seen.push(...events.map(({ kv }) => kv.modRevision));
      })();
      watching.catch(() => {});
      for (let i = 0; i < 5; i++) await put(store, `/k/${i}`, "lost");
      await waitFor("the watch", () => seen.at(-1) === kept + 5);
      // In the cache of ranges as well.
      assert.equal((await store.range(prefixRange("/k/"))).kvs[0]?.value.toString(), "lost");
      await primary.kill();
      await standby.restart();
      await query(standby.url, "SELECT pg_promote()");
      // Somebody else is quicker, and gives the same revisions out again, and more.
      const other = await openStore(standby.url, systemEdges(), options);
      for (let i = 0; i < 9; i++) await put(other, `/k/${i}`, "again");
      await assert.rejects(watching, (error) => isCoded(error, "gone"));
      const { kvs, revision } = await waitFor("reads", () => store.range(prefixRange("/k/")));
      assert.equal(revision, kept + 9);
      assert.deepEqual(kvs, (await other.range(prefixRange("/k/"))).kvs);
      assert.equal(kvs.filter(({ value }) => value.toString() === "lost").length, 0);
      const after = store.watch({ ...prefixRange("/"), startRevision: revision + 1 });
      await put(store, "/k/0", "after");
      const batch: WatchBatch | void = (await after[Symbol.asyncIterator]().next()).value;
      const [event] = batch?.events ?? [];
      assert.deepEqual([event?.kv.value.toString(), event?.kv.version], ["after", 3]);
      assert.deepEqual((await verifyStore(store)).problems, []);
      await Promise.all([store.close(), other.close()]);
    } finally {
      await standby.stop();
      await primary.stop();
    }
  },
);
