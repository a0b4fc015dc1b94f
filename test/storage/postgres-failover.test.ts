/**
 * A primary that dies and a standby that takes its place, with two replicas of the store in between: what was acknowledged is
 * there, nothing is done twice, watches miss nothing, and nobody has to be restarted. Replication is synchronous: without
 * that PostgreSQL itself loses acknowledged commits.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom, systemEdges } from "@kontinuum/std";
import { openStore, prefixRange, verifyStore, type StoreEvent } from "@kontinuum/storage";
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
    const replicas = await Promise.all(urls.map((url) => openStore(url, systemEdges(), options)));
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
    await Promise.all([...watching, direct.close(), ...replicas.map((store) => store.close())]);
  } finally {
    stop.abort();
    await standby.stop();
    await primary.stop();
  }
});
