import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { scratchRoot } from "../../contract/scratch.ts";
import { testContract } from "../../contract/suite.ts";
import { prefixRange } from "../../contract.ts";
import type { Change } from "../../engine/backend.ts";
import { deletion } from "../../engine/evaluate.ts";
import { pointSpan } from "../../engine/span.ts";
import { openStore } from "../../open.ts";
import { SqliteBackend } from "./sqlite-backend.ts";

testContract("sqlite", async () => {
  const clock = new SimulatedClock();
  const folder = await mkdtemp(join(scratchRoot, "storage-sqlite-"));
  const store = await openStore(`sqlite://${folder}/a.db`, systemEdges({ clock, random: seededRandom(1) }));
  return {
    store,
    pass: (ms) => clock.advance(ms),
    close: async () => {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
});

test("a long range is of one revision although it is read in slices between writes", async () => {
  const folder = await mkdtemp(join(scratchRoot, "storage-slices-"));
  const store = await openStore(`sqlite://${folder}/a.db`, systemEdges({ clock: new SimulatedClock() }));
  const key = (i: number): string => `/k/${String(i).padStart(5, "0")}`;
  for (let i = 0; i < 7_000; i += 100)
    await store.txn({
      success: Array.from({ length: 100 }, (_, j) => ({ type: "put", key: key(i + j), value: "old" })),
    });
  for (const descending of [false, true]) {
    const reading = store.range({ ...prefixRange("/k/"), sort: { by: "key", descending } });
    const limited = store.range({ ...prefixRange("/k/"), limit: 4_500, sort: { by: "key", descending } });
    // Behind and before where the readers stand.
    const writing = [6_999, 3_500, 0].map((i) =>
      store.txn({ success: [{ type: "put", key: key(i), value: "new" }] }),
    );
    const deleting = store.txn({ success: [{ type: "delete", key: key(descending ? 10 : 6_990) }] });
    const [all, page] = await Promise.all([reading, limited]);
    const expected = Array.from({ length: 7_000 }, (_, i) => key(i));
    if (descending) expected.splice(6_990, 1);
    if (descending) expected.reverse();
    assert.deepEqual(
      all.kvs.map((kv) => kv.key.toString()),
      expected,
    );
    assert.ok(all.kvs.every((kv) => kv.modRevision <= all.revision));
    assert.deepEqual(
      [all.count, page.kvs.length, page.count, page.more],
      [expected.length, 4_500, expected.length, true],
    );
    await Promise.all([...writing, deleting]);
  }
  await store.close();
  await rm(folder, { recursive: true });
});

test("a group that failed half way leaves nothing behind, not even in memory", async () => {
  const folder = await mkdtemp(join(scratchRoot, "storage-failed-"));
  const edges = systemEdges({ clock: new SimulatedClock() });
  const backend = SqliteBackend.open(join(folder, "a.db"), edges);
  const none = { scans: [], leases: [], leaseKeys: [] };
  const put = (revision: number, value: string): Change => ({
    type: "put",
    kv: {
      key: Buffer.from("/a"),
      value: Buffer.from(value),
      createRevision: revision,
      modRevision: revision,
      version: 1,
      lease: 0n,
    },
  });
  await assert.rejects(
    backend.write(none, (session) => {
      session.putLease(7n, 10);
      session.apply([put(2, "never")]);
      session.apply([put(3, "nor this")]);
      throw new Error("in the middle");
    }),
    /in the middle/,
  );
  assert.equal(backend.known.revision, 1);
  assert.deepEqual(await backend.leases(), []);
  const kept = put(2, "kept");
  await backend.write(none, (session) => session.apply([kept]));
  await backend.write(none, (session) => session.apply([deletion(kept.kv, 3)]));
  const span = pointSpan(Buffer.from("/a"));
  const { changes } = await backend.log({ from: 2, span, prevKv: true, limit: 10 });
  assert.deepEqual(
    changes.map(({ type, kv, prev }) => [type, kv.value.toString(), prev?.value.toString()]),
    [
      ["put", "kept", undefined],
      ["delete", "", "kept"],
    ],
  );
  await backend.close();
  await rm(folder, { recursive: true });
});
