import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { isCoded, seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
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

test("what is committed and not flushed yet shows to nobody; after a failed flush, what was flushed does", async () => {
  const folder = await mkdtemp(join(scratchRoot, "storage-flush-"));
  const backend = SqliteBackend.open(join(folder, "a.db"), systemEdges());
  const scan = { span, revision: 0, limit: 0 };
  const write = (revision: number): Promise<void> => writeAt(backend, revision);
  const published: number[] = [];
  backend.onCommit((changes) => published.push(...(changes ?? []).map(({ kv }) => kv.modRevision)));

  const writing = write(2);
  // Committed by now: the rest of the call waits for the disk.
  assert.deepEqual([backend.known.revision, published], [1, []]);
  const [found, leases] = await Promise.all([backend.scan(scan), backend.leases()]);
  assert.deepEqual([found.at, found.kvs[0]?.value.toString(), leases], [2, "at 2", [2n]]);
  await writing;
  assert.deepEqual([backend.known.revision, published], [2, [2]]);

  loseFile("a.db-wal");
  await assert.rejects(
    write(3),
    (error) => isCoded(error, "unavailable") && /whether the write is kept/.test(error.message),
  );
  await assert.rejects(
    write(3),
    (error) => isCoded(error, "unavailable") && /failed earlier/.test(error.message),
  );
  const left = await backend.scan(scan);
  assert.deepEqual([left.at, left.kvs[0]?.value.toString(), left.count], [2, "at 2", 1]);
  await assert.rejects(backend.scan({ ...scan, revision: 3 }), (error) => isCoded(error, "invalid_argument"));
  const page = await backend.log({ from: 1, span, prevKv: false, limit: 10 });
  assert.deepEqual([page.through, page.changes.map(({ kv }) => kv.modRevision)], [2, [2]]);
  assert.deepEqual([backend.known.revision, published], [2, [2]]);
  await backend.close();
  await rm(folder, { recursive: true });
});

test("a compaction next to a write: one flush after the other, and a revision is known together with its changes", async () => {
  const folder = await mkdtemp(join(scratchRoot, "storage-flush-order-"));
  const asked: ((error: Error | null) => void)[] = [];
  const backend = SqliteBackend.open(join(folder, "a.db"), systemEdges(), (_file, done) => asked.push(done));
  const seen: unknown[] = [];
  backend.onCommit((changes) => seen.push([backend.known.revision, changes?.length]));

  const writing = writeAt(backend, 2);
  const compacting = backend.setCompact(1);
  assert.equal(asked.length, 1);
  asked.shift()?.(null);
  await writing;
  assert.deepEqual([seen, backend.known], [[[2, 1]], { revision: 2, compactRevision: 0 }]);
  assert.equal(asked.length, 1);
  // The flush of the compaction covers this commit too, and does not show it before its own.
  const next = writeAt(backend, 3);
  asked.shift()?.(null);
  await compacting;
  assert.deepEqual([seen.length, backend.known], [1, { revision: 2, compactRevision: 1 }]);
  asked.shift()?.(null);
  await next;
  assert.deepEqual(seen[1], [3, 1]);
  await backend.close();
  await rm(folder, { recursive: true });
});

test("after a flush that failed no other one is tried: it could succeed and mean nothing", async () => {
  const folder = await mkdtemp(join(scratchRoot, "storage-flush-failed-"));
  const asked: ((error: Error | null) => void)[] = [];
  const backend = SqliteBackend.open(join(folder, "a.db"), systemEdges(), (_file, done) => asked.push(done));
  const lost = (error: unknown): boolean => isCoded(error, "unavailable");
  const refused = Promise.all([
    assert.rejects(writeAt(backend, 2), lost),
    assert.rejects(backend.setCompact(1), lost),
  ]);
  asked.shift()?.(new Error("EIO"));
  await refused;
  await assert.rejects(backend.setCompact(1), lost);
  await assert.rejects(backend.sweep(1), lost);
  await assert.rejects(backend.shrink(), lost);
  assert.deepEqual([asked.length, backend.known], [0, { revision: 1, compactRevision: 0 }]);
  assert.equal((await backend.scan({ span, revision: 0, limit: 0 })).count, 0);
  await backend.close();
  await rm(folder, { recursive: true });
});

const span = pointSpan(Buffer.from("/a"));

/** Writes a lease and a pair as one transaction of that revision. */
function writeAt(backend: SqliteBackend, revision: number): Promise<void> {
  return backend.write({ scans: [], leases: [], leaseKeys: [] }, (session) => {
    session.putLease(BigInt(revision), 60);
    session.apply([
      {
        type: "put",
        kv: {
          key: span.start,
          value: Buffer.from(`at ${revision}`),
          createRevision: 2,
          modRevision: revision,
          version: revision - 1,
          lease: 0n,
        },
      },
    ]);
  });
}

/** Puts something that cannot be flushed in the place of this process's newest descriptor of a file. */
function loseFile(name: string): void {
  const descriptors = readdirSync("/proc/self/fd").map(Number);
  const ours = descriptors.filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).endsWith(name);
    } catch {
      return false;
    }
  });
  const lost = Math.max(...ours);
  closeSync(lost);
  const opened: number[] = [];
  do opened.push(openSync("/dev/null", "r+"));
  while (opened.at(-1) !== lost);
  for (const fd of opened.slice(0, -1)) closeSync(fd);
}
