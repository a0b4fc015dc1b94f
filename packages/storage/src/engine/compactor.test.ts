import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock, systemEdges } from "@kontinuum/std";
import type { Store } from "../contract.ts";
import { openStore } from "../open.ts";
import type { Retention } from "./compactor.ts";

async function open(retention: Partial<Retention>): Promise<{ store: Store; clock: SimulatedClock }> {
  const clock = new SimulatedClock();
  return { store: await openStore("memory://", systemEdges({ clock }), { retention }), clock };
}

async function write(store: Store, count: number): Promise<void> {
  for (let i = 0; i < count; i++)
    await store.txn({ success: [{ type: "put", key: "/a", value: String(i) }] });
}

test("history goes when it is old and enough newer revisions exist", async () => {
  const { store, clock } = await open({ intervalMs: 1_000, retainMs: 10_000, retainRevisions: 20 });
  await write(store, 100);
  await clock.advance(9_000);
  assert.equal((await store.status()).compactRevision, 0, "too young");
  await clock.advance(3_000);
  assert.equal((await store.status()).compactRevision, (await store.revision()) - 20, "the newest stay");
  await write(store, 50);
  await clock.advance(5_000);
  assert.equal((await store.status()).compactRevision, 101, "what came later is too young");
  await clock.advance(20_000);
  assert.equal((await store.status()).compactRevision, 131);
  await store.close();
});

test("never more than the most revisions are kept, however young", async () => {
  const { store, clock } = await open({ maxRevisions: 100 });
  await write(store, 1_000);
  await clock.advance(1_000);
  const { revision, compactRevision, sizeBytes } = await store.status();
  assert.ok(revision - compactRevision <= 126, `${revision - compactRevision} kept`);
  assert.ok(sizeBytes < 1_000, `${sizeBytes} bytes`);
  await store.close();
});

test("an interval of 0 leaves it to the caller", async () => {
  const { store, clock } = await open({ intervalMs: 0, maxRevisions: 10 });
  await write(store, 100);
  await clock.advance(3_600_000);
  assert.equal((await store.status()).compactRevision, 0);
  await store.close();
});
