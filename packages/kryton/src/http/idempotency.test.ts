import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage/client";
import { Change } from "../store/change.ts";
import { keys } from "../store/keyspace.ts";
import { ReplicaSession } from "../store/session.ts";
import { Idempotency } from "./idempotency.ts";

test("a request whose reservation ran out makes no change: a repeat elsewhere has the key by now", async () => {
  const edges = systemEdges();
  const store = await openStore("memory://", edges);
  const [first, second] = [new ReplicaSession(store, edges), new ReplicaSession(store, edges)];
  const keyed = { caller: "ci", key: "k", fingerprint: "f" };
  const accepted = { machineId: "m" };
  const change = new Change().put(keys.machine("ci", "first"), {});
  const late = new Idempotency(store, edges, first);
  const reservation = await late.reserve(keyed);
  assert.ok(reservation.kind === "new");
  // The first replica is away for longer than its lease lives; the client asks another one.
  await store.leaseRevoke((await first.lease()).id);
  const repeat = await new Idempotency(store, edges, second).reserve(keyed);
  assert.ok(repeat.kind === "new");
  reservation.record(change, accepted);
  assert.equal((await change.commit(store, edges)).succeeded, false);
  // Nor does the end of the late request touch the key that is not its own any more.
  await late.finish(reservation, keyed, { status: 201, json: { id: "first" } });
  const taken = new Change().put(keys.machine("ci", "second"), {});
  repeat.record(taken, accepted);
  assert.equal((await taken.commit(store, edges)).succeeded, true);
  const { count } = await store.range({ key: keys.machine("ci", "first"), countOnly: true });
  assert.equal(count, 0);
  await first.stop();
  await second.stop();
  await store.close();
});
