/**
 * One process acts per zone: taking, keeping, waiting, taking over; and keys that never meet by accident.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { leases as leaseKind } from "@kontinuum/controller";
import { isCoded, isDnsSubdomain, seededRandom, SimulatedClock } from "@kontinuum/std";
import { systemNamespace } from "../../kinds/index.ts";
import { instance, pool } from "../objects.fixture.ts";
import { startTestServer, type TestServer } from "../server.fixture.ts";
import { globalKey, labelKey, leaseRetry, objectKey, placementKey, ZoneLeases } from "./zone-leases.ts";

let server: TestServer;
before(async () => (server = await startTestServer()));
after(() => server.close());

const clock = new SimulatedClock();
const holderOf = (name: string): ZoneLeases =>
  new ZoneLeases({ edges: { ...server.edges, clock }, holder: () => name, durationMs: 45_000 });
const lease = (key: string) =>
  server.client.get(leaseKind, { namespace: systemNamespace, name: `zonelock-${key}` });

test("the first takes it, the second waits until it runs out, a kept one is renewed", async () => {
  const [a, b] = [holderOf("a"), holderOf("b")];
  assert.equal(await a.tryAcquire(server.cached, "eu-a"), true);
  assert.equal(await b.tryAcquire(server.cached, "eu-a"), false);
  await clock.advance(30_000);
  assert.equal(await a.tryAcquire(server.cached, "eu-a"), true);
  await clock.advance(30_000);
  assert.equal(await b.tryAcquire(server.cached, "eu-a"), false);
  await clock.advance(20_000);
  assert.equal(await b.tryAcquire(server.cached, "eu-a"), true);
  assert.equal((await lease("eu-a")).spec?.holderIdentity, "b");
  assert.equal((await lease("eu-a")).spec?.leaseTransitions, 1);
  assert.equal(await a.tryAcquire(server.cached, "eu-a"), false);
});

test("a kept lease is not written again before a third of its time has passed", async () => {
  const one = holderOf("one");
  await one.tryAcquire(server.cached, "quiet");
  const version = (await lease("quiet")).metadata.resourceVersion;
  await clock.advance(14_000);
  for (let i = 0; i < 5; i++) assert.equal(await one.tryAcquire(server.cached, "quiet"), true);
  assert.equal((await lease("quiet")).metadata.resourceVersion, version);
  await clock.advance(2_000);
  await one.tryAcquire(server.cached, "quiet");
  assert.notEqual((await lease("quiet")).metadata.resourceVersion, version);
});

test("a long step keeps its lease; a lost one stops it", async () => {
  const [a, b] = [holderOf("long"), holderOf("rival")];
  const { signal } = new AbortController();
  assert.ok(await a.tryAcquire(server.cached, "slow"));
  let finish = (): void => {};
  const done = a.whileHeld(server.cached, "slow", signal, async (held) => {
    await new Promise<void>((resolve) => (finish = resolve));
    return held.aborted;
  });
  for (let minute = 0; minute < 3; minute++) {
    for (let step = 0; step < 6; step++) await settled(10_000);
    assert.equal(await b.tryAcquire(server.cached, "slow"), false, `minute ${minute}`);
  }
  finish();
  assert.equal(await done, false);

  let why: unknown;
  const stopped = a.whileHeld(server.cached, "slow", signal, async (held) => {
    await new Promise<void>((resolve) => held.addEventListener("abort", () => resolve(), { once: true }));
    why = held.reason;
  });
  const held = await lease("slow");
  await server.client.update(leaseKind, { ...held, spec: { ...held.spec, holderIdentity: "rival" } });
  for (let step = 0; step < 3; step++) await settled(10_000);
  await stopped;
  assert.ok(isCoded(why, "cancelled"));
});

/** Lets time pass, and what it sets off be done. */
async function settled(ms: number): Promise<void> {
  await clock.advance(ms);
  // The server under test lives in real time.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("workers of one process that ask at once do not race each other", async () => {
  const one = holderOf("busy");
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => one.tryAcquire(server.cached, "crowded")),
  );
  assert.ok(answers.every(Boolean));
});

test("keys: placement first, else kind, namespace and name; always a valid name", () => {
  assert.equal(placementKey("eu", "a"), "eu-a");
  assert.equal(placementKey("eu", undefined), globalKey);
  const placed = { metadata: { labels: { "kontinuum.sh/region": "eu", "kontinuum.sh/zone": "a" } } };
  assert.equal(labelKey(instance("x", placed)), "eu-a");
  assert.equal(labelKey(instance("x")), globalKey);
  assert.equal(objectKey("instancepool", pool("x", 1, {}, placed)), "eu-a");
  assert.equal(objectKey("instancepool", pool("eu-a", 1)), "instancepool.kontinuum-system.eu-a");
  for (const key of [
    placementKey("EU_1", "a"),
    placementKey("x".repeat(63), "y".repeat(63)),
    placementKey("a b", "c"),
  ]) {
    assert.ok(isDnsSubdomain(`zonelock-${key}`), key);
  }
});

test("who waits does not come back with all others at once", () => {
  const random = seededRandom(1);
  for (let i = 0; i < 100; i++) {
    const { requeueAfterMs = 0 } = leaseRetry(1000, random);
    assert.ok(requeueAfterMs >= 500 && requeueAfterMs <= 1000);
  }
});
