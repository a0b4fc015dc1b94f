import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { Client } from "./client.ts";
import { leases, type Lease } from "./core-resources.ts";
import { LeaderElection, type Leadership } from "./leader-election.ts";
import { ScriptedApi } from "./scripted-api.fixture.ts";
import { ZoneLease, zoneKey, zoneLeaseName } from "./zone-lease.ts";

const namespace = "kontinuum-system";

function setup() {
  const api = new ScriptedApi();
  const clock = new SimulatedClock();
  const edges = systemEdges({ clock, random: seededRandom(3) });
  const client = new Client(api.transport, { edges });
  const zone = (holder: string, ownKey = ""): ZoneLease => new ZoneLease({ client, edges, holder, ownKey });
  const spec = async (key: string): Promise<Lease["spec"]> =>
    (await client.get(leases, { namespace, name: zoneLeaseName(key) })).spec;
  return { api, clock, edges, client, zone, spec };
}

test("keys and names", () => {
  assert.equal(zoneKey("eu", "a"), "eu-a");
  assert.equal(zoneKey("", "a"), "");
  assert.equal(zoneKey("eu", undefined), "");
  assert.equal(zoneLeaseName(""), "zonelock-global");
  assert.equal(zoneLeaseName("eu-a"), "zonelock-eu-a");
});

test("a free zone and the free global key are acquired, with namespace and all fields", async () => {
  const { api, zone, spec } = setup();
  assert.equal(await zone("hub").tryAcquire("eu-a"), true);
  assert.equal(await zone("hub").tryAcquire(""), true);
  assert.ok(api.stored(`/api/v1/namespaces/${namespace}`));
  assert.deepEqual(await spec("eu-a"), {
    holderIdentity: "hub",
    leaseDurationSeconds: 45,
    acquireTime: "2026-01-01T00:00:00.000000Z",
    renewTime: "2026-01-01T00:00:00.000000Z",
  });
});

test("held by me: renewed; held by another: refused until it expired, then taken over and counted", async () => {
  const { clock, zone, spec } = setup();
  await zone("one").tryAcquire("eu-a");
  await clock.advance(30_000);
  assert.equal(await zone("one").tryAcquire("eu-a"), true);
  assert.equal((await spec("eu-a"))?.renewTime, "2026-01-01T00:00:30.000000Z");
  await clock.advance(45_000);
  assert.equal(await zone("two").tryAcquire("eu-a"), false, "exactly at the duration it still holds");
  await clock.advance(1);
  assert.equal(await zone("two").tryAcquire("eu-a"), true);
  const taken = await spec("eu-a");
  assert.equal(taken?.holderIdentity, "two");
  assert.equal(taken?.leaseTransitions, 1);
  assert.equal(taken?.acquireTime, taken?.renewTime);
});

test("a lease without renew time is free; its own duration counts", async () => {
  const { client, clock, zone, edges } = setup();
  const make = (name: string, spec: NonNullable<Lease["spec"]>) =>
    client.create(leases, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace },
      spec,
    });
  await make("zonelock-x", { holderIdentity: "other" });
  assert.equal(await zone("me").tryAcquire("x"), true);
  const renewTime = new Date(edges.clock.now()).toISOString();
  await make("zonelock-y", { holderIdentity: "other", leaseDurationSeconds: 300, renewTime });
  await clock.advance(200_000);
  assert.equal(await zone("me").tryAcquire("y"), false);
});

test("a worker asks nothing for its own key and the global one, and may take another zone", async () => {
  const { api, zone } = setup();
  const worker = zone("worker", "eu-a");
  assert.equal(await worker.tryAcquire("eu-a"), false);
  assert.equal(await worker.tryAcquire(""), false);
  assert.equal(api.requests.length, 0);
  assert.equal(await worker.tryAcquire("eu-b"), true);
});

test("lost races are false, not errors", async () => {
  const { api, zone, clock } = setup();
  api.failNext(/^POST .*leases/, 409, "AlreadyExists");
  assert.equal(await zone("one").tryAcquire("eu-a"), false);
  await zone("one").tryAcquire("eu-a");
  api.failNext(/^PUT .*leases/, 409, "Conflict");
  assert.equal(await zone("one").tryAcquire("eu-a"), false);
  await clock.advance(50_000);
  api.failNext(/^PUT .*leases/, 409, "Conflict");
  assert.equal(await zone("two").tryAcquire("eu-a"), false);
});

test("of many processes that race exactly one wins", async () => {
  const { zone } = setup();
  const won = await Promise.all(["a", "b", "c", "d", "e"].map((holder) => zone(holder).tryAcquire("eu-a")));
  assert.equal(won.filter(Boolean).length, 1);
});

test("the wait after a refusal is in [base/2, base]", () => {
  const { zone } = setup();
  const lease = zone("one");
  const waits = Array.from({ length: 200 }, () => lease.retryAfterMs(10_000));
  assert.ok(Math.min(...waits) >= 5_000 && Math.max(...waits) <= 10_000);
  assert.ok(Math.max(...waits) - Math.min(...waits) > 3_000);
});

test("election: one leads; after its crash another does, with a higher token, never both at once", async () => {
  const { api, clock, edges } = setup();
  const leading = new Map<string, Leadership>();
  const candidates = ["a", "b"].map((holder) => {
    const abort = new AbortController();
    const reach = { up: true };
    const client = new Client((request) => (reach.up ? api.transport(request) : new Promise(() => {})), {
      edges,
    });
    const election = new LeaderElection({ client, edges, namespace, name: "leader", holder });
    const running = election.run(abort.signal, async (leadership) => {
      assert.equal(leading.size, 0, "two leaders at once");
      leading.set(holder, leadership);
      await new Promise((resolve) => leadership.signal.addEventListener("abort", resolve, { once: true }));
      assert.throws(() => leadership.check(), /no longer leads/);
      leading.delete(holder);
    });
    return { holder, abort, reach, running };
  });
  await clock.advance(60_000);
  assert.equal(leading.size, 1);
  const [first] = [...leading.keys()];
  const token = leading.get(first ?? "")?.token ?? -1;
  leading.get(first ?? "")?.check();
  const cut = candidates.find(({ holder }) => holder === first);
  assert.ok(cut);
  cut.reach.up = false;
  await clock.advance(10_001);
  assert.equal(leading.size, 0, "the leader that can't renew stops before anybody may follow");
  await clock.advance(20_000);
  const [second] = [...leading.keys()];
  assert.notEqual(second, first);
  assert.ok((leading.get(second ?? "")?.token ?? -1) > token);
  for (const candidate of candidates) candidate.abort.abort();
  await clock.advance(60_000);
  assert.equal(leading.size, 0);
});

test("election: an orderly stop hands over at once", async () => {
  const { clock, edges, client } = setup();
  const order: string[] = [];
  const run = (holder: string) => {
    const abort = new AbortController();
    const running = new LeaderElection({ client, edges, namespace, name: "leader", holder }).run(
      abort.signal,
      async ({ signal }) => {
        order.push(holder);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    );
    return { abort, running };
  };
  const one = run("one");
  await clock.advance(5_000);
  const two = run("two");
  await clock.advance(5_000);
  one.abort.abort();
  await clock.advance(3_000);
  assert.deepEqual(order, ["one", "two"]);
  two.abort.abort();
  await clock.advance(5_000);
  await Promise.all([one.running, two.running]);
});
