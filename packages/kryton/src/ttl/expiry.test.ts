import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock, systemEdges, type Clock, type Edges } from "@kontinuum/std";
import { start, until } from "../kryton.fixture.ts";
import type { MachineService } from "../service/machines.ts";
import { Change } from "../store/change.ts";
import { keys, timeKey } from "../store/keyspace.ts";
import { Leadership } from "../store/leadership.ts";
import { ReplicaSession } from "../store/session.ts";
import { Expiry } from "./expiry.ts";

/** The machine's clock, moved by `offsetMs`. */
class ShiftedClock implements Clock {
  offsetMs = 0;
  now(): number {
    return systemClock.now() + this.offsetMs;
  }
  monotonic(): number {
    return systemClock.monotonic();
  }
  timer(delayMs: number, callback: () => void) {
    return systemClock.timer(delayMs, callback);
  }
  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(delayMs, signal);
  }
}

test("an expired machine is deleted once, with an expired event and no deleted event", async () => {
  const clock = new ShiftedClock();
  await using api = await start({
    edges: { ...systemEdges(), clock },
    env: { KRYTON_RECONCILE_INTERVAL: "20ms" },
  });
  const short = await api.machine("short", { ttlMinutes: 1 });
  const long = await api.machine("long", { ttlMinutes: 600 });
  await api.machine("forever");
  assert.equal(Date.parse(short.expiresAt) - Date.parse(short.createdAt), 60_000);
  clock.offsetMs = 61_000;
  const items = await until(async () => {
    const listed = (await api.call("GET", "/api/v1/machines")).json.items;
    return listed.length === 2 ? listed : undefined;
  });
  assert.ok(items.some((machine: { id: string }) => machine.id === long.id));
  const events = (await api.call("GET", "/api/v1/events")).json.items;
  const about = events.filter((event: { data: { machineId: string } }) => event.data.machineId === short.id);
  assert.deepEqual(
    about.map((event: { type: string }) => event.type),
    ["io.kryton.machine.expired", "io.kryton.machine.created"],
  );
  assert.deepEqual(about[0].data, { project: "default", machineId: short.id, name: "short" });
  assert.match((await api.call("GET", "/metrics")).text, /kryton_machines_expired_total 1/);
});

test("one that cannot be expired does not hold up the others", async () => {
  const clock = new ShiftedClock();
  await using api = await start({
    edges: { ...systemEdges(), clock },
    env: { KRYTON_RECONCILE_INTERVAL: "20ms", KRYTON_PROJECTS: "ci,qa" },
  });
  // An index entry whose machine is gone, and a record that cannot be read.
  const stale = keys.expiry(timeKey(1), "qa", "00000000-0000-4000-8000-000000000000");
  const damaged = "00000000-0000-4000-8000-000000000001";
  await api.store.txn({
    success: [
      { type: "put", key: stale, value: "null" },
      { type: "put", key: keys.expiry(timeKey(2), "qa", damaged), value: "null" },
      { type: "put", key: keys.machine("qa", damaged), value: "\u0000broken" },
    ],
  });
  await api.machine("due", { project: "ci", ttlMinutes: 1 });
  clock.offsetMs = 120_000;
  await until(async () =>
    (await api.call("GET", "/api/v1/machines?project=ci")).json.items.length === 0 ? true : undefined,
  );
  const { count } = await api.store.range({ key: stale, countOnly: true });
  assert.equal(count, 0, "an entry without a machine is tidied up");
});

test("a machine whose time is extended while it expires lives on", async () => {
  await using api = await start();
  const { machines } = api.kryton.services;
  const { id } = await api.machine("kept", { ttlMinutes: 1 });
  const { edges, store } = api;
  const session = new ReplicaSession(store, edges);
  const leader = { key: "/kryton/leaders/test", revision: 0 };
  leader.revision = (await new Change().absent(leader.key).put(leader.key, {}).commit(store, edges)).revision;
  /** Late: between reading the index and deleting, the machine gets more time. */
  const extending: MachineService = Object.create(machines, {
    delete: {
      value: async (...args: Parameters<MachineService["delete"]>) => {
        await api.call("PATCH", `/api/v1/machines/${id}`, { ttlMinutes: 600 });
        return machines.delete(...args);
      },
    },
  });
  const later: Edges = { ...edges, clock: { ...systemClock, now: () => systemClock.now() + 61_000 } };
  const expiry = new Expiry({
    store,
    edges: later,
    leadership: new Leadership(store, edges, session),
    machines: extending,
    intervalMs: 1_000,
  });
  await expiry.sweep(leader, new AbortController().signal);
  const kept = await api.call("GET", `/api/v1/machines/${id}`);
  assert.equal(kept.json.state, "running");
  assert.equal(kept.json.operation, undefined);
});
