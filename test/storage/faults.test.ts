/**
 * Two replicas over one database, each behind a network that cuts, stalls and refuses: what their clients saw must
 * be one history, and a watch through the faults must be complete.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom, systemEdges } from "@kontinuum/std";
import { openStore, prefixRange, type Store, type StoreEvent } from "@kontinuum/storage";
import { checkHistory, History } from "@kontinuum/storage/history";
import { findEtcd, startEtcd } from "../services/etcd.ts";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { skipUnless, waitFor } from "../services/service.ts";
import { startFlakyProxy, type FlakyProxy } from "./flaky-proxy.ts";
import { collect, recordedClient } from "./recorded-clients.ts";

const faults = 12;
const clientsPerReplica = 4;

async function runFaults(port: number, url: (port: number) => string, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const proxies = [await startFlakyProxy(port), await startFlakyProxy(port)];
  const replicas = await Promise.all(
    proxies.map((proxy) => openStore(url(proxy.port), systemEdges(), { retention: { intervalMs: 0 } })),
  );
  const history = new History();
  const stop = new AbortController();
  let counter = 0;
  /** Writes begun on each replica. */
  const begun = [0, 0];
  const clients = replicas.flatMap((store, replica) =>
    Array.from({ length: clientsPerReplica }, (_, id) =>
      recordedClient(store, history, replica * clientsPerReplica + id, random, stop.signal, () => {
        begun[replica] = (begun[replica] ?? 0) + 1;
        return `v${counter++}`;
      }),
    ),
  );
  // A fault lasts until the other replica's clients have done something in it.
  const progress = async (replica: number): Promise<void> => {
    const target = (begun[replica] ?? 0) + 60;
    await waitFor("the other replica to go on", () => (begun[replica] ?? 0) >= target, 60_000);
  };
  const seen: StoreEvent[][] = [[], []];
  const watching = replicas.map((store, i) => follow(store, seen[i] ?? [], stop.signal));
  try {
    for (let fault = 0; fault < faults; fault++) {
      const target = history.finished.length + 40;
      await waitFor("clients to go on", () => history.finished.length >= target, 60_000);
      const [hit, other] = random.integer(2) === 0 ? [0, 1] : [1, 0];
      await disturb(proxies[hit], random.integer(3), () => progress(other));
    }
    const target = history.finished.length + 40;
    await waitFor("clients to recover", () => history.finished.length >= target, 60_000);
  } finally {
    stop.abort();
    await Promise.all(clients);
  }
  const direct = await openStore(url(port), systemEdges(), { retention: { intervalMs: 0 } });
  const everything: StoreEvent[] = [];
  const end = new AbortController();
  const reading = collect(direct, everything, end.signal);
  const newest = (await direct.range(prefixRange("/crash/"))).kvs.reduce(
    (most, kv) => Math.max(most, kv.modRevision),
    0,
  );
  await waitFor("the whole log", () => (everything.at(-1)?.kv.modRevision ?? 0) >= newest);
  end.abort();
  await reading;
  assert.deepEqual(checkHistory(history, everything, { contiguous: true }), []);
  // Each watch that lived through the faults is a beginning of the same log.
  for (const events of seen) {
    assert.deepEqual(
      events.map(({ kv }) => kv.modRevision),
      everything.slice(0, events.length).map(({ kv }) => kv.modRevision),
    );
    assert.ok(events.length > faults * 10, `${events.length} events`);
  }
  await Promise.all([...watching, direct.close(), ...replicas.map((store) => store.close())]);
  await Promise.all(proxies.map((proxy) => proxy.close()));
}

/** A watch is opened again after the last revision seen when it ends, as the contract says. */
async function follow(store: Store, events: StoreEvent[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await collect(store, events, signal);
}

async function disturb(
  proxy: FlakyProxy | undefined,
  kind: number,
  passes: () => Promise<void>,
): Promise<void> {
  if (kind === 0) proxy?.cut();
  else if (kind === 1) {
    proxy?.pause();
    await passes();
    proxy?.resume();
  } else {
    proxy?.refuse(true);
    proxy?.cut();
    await passes();
    proxy?.refuse(false);
  }
}

test("PostgreSQL", { skip: skipUnless(await findPostgres()), timeout: 180_000 }, async () => {
  const postgres = await startPostgres();
  try {
    await runFaults(postgres.port, (port) => `postgres://postgres@127.0.0.1:${port}/postgres`, 11);
  } finally {
    await postgres.stop();
  }
});

test("etcd", { skip: skipUnless(await findEtcd()), timeout: 180_000 }, async () => {
  const etcd = await startEtcd();
  try {
    await runFaults(Number(etcd.endpoint.split(":")[1]), (port) => `etcd://127.0.0.1:${port}`, 12);
  } finally {
    await etcd.stop();
  }
});
