import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { LeasePool } from "./lease-pool.ts";

test("leases are shared for a while and replaced when they are gone", async () => {
  const clock = new SimulatedClock();
  const store = await openStore("memory://", systemEdges({ clock }));
  const pool = new LeasePool(store, clock);
  const put = (key: string) => (lease: bigint) =>
    store.txn({ success: [{ type: "put", key, value: "v", lease }] }).then(() => lease);
  assert.equal(await pool.bind(0, put("/none")), 0n);
  const first = await pool.bind(3600, put("/a"));
  assert.equal(await pool.bind(3600, put("/b")), first);
  await store.leaseRevoke(first);
  const second = await pool.bind(3600, put("/c"));
  assert.notEqual(second, first);
  await clock.advance(61_000);
  assert.notEqual(await pool.bind(3600, put("/d")), second);
  // The lease outlives what was asked for, also for those who joined it last.
  assert.ok((await store.leaseTimeToLive(second)).ttl >= 3600 - 61);
  await store.close();
});
