/** Watches: complete, in order, each event once, and honest about progress and the past. */
import assert from "node:assert/strict";
import { isCoded } from "@kontinuum/std";
import type { StoreEvent } from "../contract.ts";
import { Reader, refuses, type Bench, type ContractCase } from "./case-bench.ts";

const show = (bench: Bench, events: readonly StoreEvent[]): string[] =>
  events.map((event) => `${event.type} ${bench.short(event.kv)}=${event.kv.value.toString()}`);

export const watchCases: readonly ContractCase[] = [
  {
    name: "later writes are seen once ready",
    async run(bench) {
      const reader = await bench.watch();
      await bench.put("a", "1");
      await bench.put("a", "2");
      await bench.delete("a");
      assert.deepEqual(show(bench, await reader.events(3)), ["put a=1", "put a=2", "delete a="]);
    },
  },
  {
    name: "earlier writes are not, without a start revision",
    async run(bench) {
      await bench.put("a", "1");
      const reader = await bench.watch();
      await bench.put("b", "2");
      assert.deepEqual(show(bench, await reader.events(1)), ["put b=2"]);
    },
  },
  {
    name: "a start revision replays from there, and then goes on live",
    async run(bench) {
      await bench.put("a", "1");
      const from = await bench.put("a", "2");
      await bench.put("other/b", "3");
      await bench.delete("a");
      const reader = await bench.watch({ startRevision: from });
      await bench.put("c", "4");
      assert.deepEqual(show(bench, await reader.events(4)), [
        "put a=2",
        "put other/b=3",
        "delete a=",
        "put c=4",
      ]);
    },
  },
  {
    name: "a start at the next revision misses nothing",
    async run(bench) {
      const now = await bench.put("a", "1");
      const reader = await bench.watch({ startRevision: now + 1 });
      // Long enough to have looked at a log that has nothing yet.
      await bench.store.range({ key: bench.key("a") });
      reader.watch.progress();
      await reader.batch();
      for (const value of ["2", "3"]) await bench.put("a", value);
      assert.deepEqual(show(bench, await reader.events(2)), ["put a=2", "put a=3"]);
    },
  },
  {
    name: "a start in the future begins there",
    async run(bench) {
      const now = await bench.put("a", "1");
      const reader = await bench.watch({ startRevision: now + 3 });
      for (const value of ["2", "3", "4"]) await bench.put("a", value);
      assert.deepEqual(show(bench, await reader.events(1)), ["put a=4"]);
    },
  },
  {
    name: "events carry the revisions of the change",
    async run(bench) {
      const reader = await bench.watch();
      const created = await bench.put("a", "1");
      const changed = await bench.put("a", "2");
      const deleted = await bench.delete("a");
      const events = await reader.events(3);
      assert.deepEqual(
        events.map(({ kv }) => [kv.createRevision, kv.modRevision, kv.version]),
        [
          [created, created, 1],
          [created, changed, 2],
          [0, deleted, 0],
        ],
      );
    },
  },
  {
    name: "previous pairs come when asked for, live and replayed",
    async run(bench) {
      const from = await bench.store.revision();
      const live = await bench.watch({ prevKv: true });
      const bare = await bench.watch();
      await bench.put("a", "1");
      await bench.put("a", "2");
      await bench.delete("a");
      await bench.put("a", "3");
      const replay = await bench.watch({ prevKv: true, startRevision: from + 1 });
      for (const reader of [live, replay]) {
        const events = await reader.events(4);
        assert.deepEqual(
          events.map((event) => event.prev?.value.toString()),
          [undefined, "1", "2", undefined],
        );
        assert.deepEqual(
          events.map((event) => event.prev?.version),
          [undefined, 1, 2, undefined],
        );
      }
      assert.deepEqual(
        (await bare.events(4)).map((event) => event.prev),
        [undefined, undefined, undefined, undefined],
      );
    },
  },
  {
    name: "one transaction's events come together, in the order of its operations",
    async run(bench) {
      await bench.put("z", "1");
      const from = await bench.store.revision();
      const reader = await bench.watch();
      const { revision } = await bench.do(
        { type: "put", key: bench.key("c"), value: "1" },
        { type: "put", key: bench.key("a"), value: "2" },
        { type: "delete", key: bench.key("z") },
        { type: "put", key: bench.key("b"), value: "3" },
      );
      for (const each of [reader, await bench.watch({ startRevision: from + 1 })]) {
        const batch = await each.batch();
        assert.deepEqual(show(bench, batch.events), ["put c=1", "put a=2", "delete z=", "put b=3"]);
        assert.ok(batch.events.every((event) => event.kv.modRevision === revision));
        assert.equal(batch.revision, revision);
      }
    },
  },
  {
    name: "only keys of the range",
    async run(bench) {
      const one = await bench.watch({ key: bench.key("b"), end: Buffer.alloc(0) });
      const some = await bench.watch({ key: bench.key("b"), end: bench.key("d") });
      for (const name of ["a", "b", "b1", "c", "d"]) await bench.put(name);
      await bench.put("b", "again");
      assert.deepEqual(show(bench, await one.events(2)), ["put b=", "put b=again"]);
      assert.deepEqual(show(bench, await some.events(4)), ["put b=", "put b1=", "put c=", "put b=again"]);
    },
  },
  {
    name: "filters leave out puts or deletes",
    async run(bench) {
      const puts = await bench.watch({ filters: ["nodelete"] });
      const deletes = await bench.watch({ filters: ["noput"] });
      await bench.put("a", "1");
      await bench.delete("a");
      await bench.put("a", "2");
      await bench.delete("a");
      assert.deepEqual(show(bench, await puts.events(2)), ["put a=1", "put a=2"]);
      assert.deepEqual(show(bench, await deletes.events(2)), ["delete a=", "delete a="]);
    },
  },
  {
    name: "progress comes when asked for, after everything so far",
    async run(bench) {
      const reader = await bench.watch();
      await bench.put("a", "1");
      const revision = await bench.put("a", "2");
      reader.watch.progress();
      let batch = await reader.batch();
      while (batch.events.length > 0) batch = await reader.batch();
      assert.ok(batch.revision >= revision);
      assert.equal((await reader.events(2)).length, 2);
    },
  },
  {
    name: "progress of a quiet watch follows the store's revision",
    async run(bench) {
      const reader = await bench.watch({ key: bench.key("quiet"), end: Buffer.alloc(0) });
      let revision = 0;
      for (let i = 0; i < 5; i++) revision = await bench.put("noise", String(i));
      for (;;) {
        reader.watch.progress();
        const batch = await reader.batch();
        assert.equal(batch.events.length, 0);
        if (batch.revision >= revision) break;
      }
    },
  },
  {
    name: "progressNotify tells a quiet watch where it stands",
    async run(bench) {
      const reader = await bench.watch({
        key: bench.key("quiet"),
        end: Buffer.alloc(0),
        progressNotify: true,
      });
      const revision = await bench.put("noise", "1");
      const told = (async () => {
        for (;;) {
          const batch = await reader.batch();
          assert.equal(batch.events.length, 0);
          if (batch.revision >= revision) return;
        }
      })();
      for (let i = 0; i < 3; i++) await bench.pass(2_000);
      await told;
    },
  },
  {
    name: "a reader that is slow loses nothing",
    async run(bench) {
      const reader = await bench.watch();
      const count = 3_000;
      for (let i = 0; i < count; i += 100)
        await bench.do(
          ...Array.from({ length: 100 }, (_, j) => ({
            type: "put" as const,
            key: bench.key(`k${j}`),
            value: String(i + j),
          })),
        );
      const events = await reader.events(count);
      assert.deepEqual(
        events.map((event) => Number(event.kv.value.toString())),
        Array.from({ length: count }, (_, i) => i),
      );
      assert.deepEqual(
        reader.batches,
        [...reader.batches].sort((a, b) => a - b),
      );
    },
  },
  {
    name: "large values are replayed whole, in order",
    async run(bench) {
      const from = (await bench.store.revision()) + 1;
      const large = "x".repeat(1024 * 1024);
      for (let i = 0; i < 6; i++) await bench.put("a", `${i} ${large}`);
      const reader = await bench.watch({ startRevision: from, prevKv: true });
      const events = await reader.events(6);
      assert.deepEqual(
        events.map(({ kv, prev }) => [
          kv.value.length > large.length,
          kv.value.toString().slice(0, 2).trim(),
          prev?.value.toString().slice(0, 2).trim(),
        ]),
        events.map((_, i) => [true, String(i), i === 0 ? undefined : String(i - 1)]),
      );
    },
  },
  {
    name: "a watch opened between writes misses nothing and repeats nothing",
    async run(bench) {
      const from = (await bench.store.revision()) + 1;
      const writing = (async () => {
        for (let i = 0; i < 60; i++) await bench.put("a", String(i));
      })();
      const readers = [];
      for (let i = 0; i < 5; i++) {
        readers.push(await bench.watch({ startRevision: from }));
        await bench.put("b", String(i));
      }
      await writing;
      for (const reader of readers) {
        const events = await reader.events(65);
        const values = events
          .filter((event) => bench.short(event.kv) === "a")
          .map((event) => Number(event.kv.value.toString()));
        assert.deepEqual(
          values,
          Array.from({ length: 60 }, (_, i) => i),
        );
        const revisions = events.map((event) => event.kv.modRevision);
        assert.deepEqual(
          revisions,
          [...new Set(revisions)].sort((a, b) => a - b),
        );
      }
    },
  },
  {
    name: "watches see the writes of another store over the data",
    async run(bench) {
      const second = await bench.second?.();
      if (!second) return;
      try {
        const reader = await bench.watch();
        for (let i = 0; i < 30; i++) {
          const store = i % 2 === 0 ? second : bench.store;
          await store.txn({ success: [{ type: "put", key: bench.key("a"), value: String(i) }] });
        }
        const events = await reader.events(30);
        assert.deepEqual(
          events.map((event) => Number(event.kv.value.toString())),
          Array.from({ length: 30 }, (_, i) => i),
        );
      } finally {
        await second.close();
      }
    },
  },
  {
    name: "a compacted start is refused before the first event",
    async run(bench) {
      const from = await bench.put("a", "1");
      await bench.put("a", "2");
      const mark = await bench.put("a", "3");
      await bench.store.compact(mark);
      const watch = bench.store.watch({ ...bench.all(), startRevision: from });
      const error = await refuses(watch[Symbol.asyncIterator]().next(), "gone");
      assert.ok(isCoded(error));
      assert.equal(error.details["compactRevision"], mark);
    },
  },
  {
    name: "a start at the compaction mark misses nothing, not even a deletion, or is refused",
    async run(bench) {
      await bench.put("a", "1");
      const mark = await bench.delete("a");
      await bench.store.compact(mark);
      const watch = bench.store.watch({ ...bench.all(), startRevision: mark });
      const reader = new Reader(watch);
      await bench.put("b", "2");
      try {
        assert.deepEqual(show(bench, await reader.events(2)), ["delete a=", "put b=2"]);
      } catch (error) {
        // What older etcd servers cannot do is refused, never served with a hole.
        assert.ok(isCoded(error, "gone"), String(error));
      } finally {
        watch.close();
      }
    },
  },
  {
    name: "closing and aborting end the iteration",
    async run(bench) {
      const reader = await bench.watch();
      const waiting = reader.next();
      reader.watch.close();
      assert.equal((await waiting).done, true);
      const controller = new AbortController();
      const other = await bench.watch({ signal: controller.signal });
      const pending = other.next();
      controller.abort();
      assert.equal((await pending).done, true);
    },
  },
  {
    name: "an empty key is refused",
    async run(bench) {
      assert.throws(
        () => bench.store.watch({ key: "" }),
        (error) => isCoded(error, "invalid_argument"),
      );
    },
  },
];
