/** Compaction: the past goes, the present stays. */
import assert from "node:assert/strict";
import { isCoded } from "@kontinuum/std";
import { refuses, type ContractCase } from "./case-bench.ts";

export const compactionCases: readonly ContractCase[] = [
  {
    name: "reads below the mark are gone, at and above it they are not",
    async run(bench) {
      const first = await bench.put("a", "1");
      const second = await bench.put("a", "2");
      await bench.put("a", "3");
      await bench.store.compact(second);
      const error = await refuses(bench.store.range({ ...bench.all(), revision: first }), "gone");
      assert.ok(isCoded(error));
      assert.equal(error.details["compactRevision"], second);
      assert.deepEqual(await bench.contents(second), ["a=2"]);
      assert.deepEqual(await bench.contents(), ["a=3"]);
      await refuses(bench.do({ type: "range", key: bench.key("a"), revision: first }), "gone");
      assert.equal((await bench.store.status()).compactRevision, second);
    },
  },
  {
    name: "twice is gone, the future is refused",
    async run(bench) {
      await bench.put("a", "1");
      const mark = await bench.put("a", "2");
      await refuses(bench.store.compact(mark + 1), "invalid_argument");
      await bench.store.compact(mark);
      await refuses(bench.store.compact(mark), "gone");
      await refuses(bench.store.compact(mark - 1), "gone");
    },
  },
  {
    name: "what is live stays readable at every revision from the mark on",
    async run(bench) {
      const states = new Map<number, string[]>();
      let mark = 0;
      for (let i = 0; i < 40; i++) {
        const name = `k${i % 7}`;
        const revision = i % 5 === 4 ? await bench.delete(name) : await bench.put(name, String(i));
        states.set(revision, await bench.contents());
        if (i === 25) mark = revision;
      }
      await bench.store.compact(mark);
      await bench.pass(1_000);
      for (const [revision, state] of states) {
        if (revision < mark) continue;
        assert.deepEqual(await bench.contents(revision), state);
        const { count } = await bench.store.range({ ...bench.all(), revision, countOnly: true });
        assert.equal(count, state.length);
      }
      const later = [...states.keys()].filter((revision) => revision > mark);
      const replay = await bench.watch({ startRevision: mark + 1 });
      const events = await replay.events(later.length);
      assert.deepEqual(
        events.map((event) => event.kv.modRevision),
        later,
      );
    },
  },
  {
    name: "versions and creation survive",
    async run(bench) {
      const created = await bench.put("a", "1");
      for (let i = 2; i < 6; i++) await bench.put("a", String(i));
      await bench.store.compact(await bench.store.revision());
      await bench.pass(1_000);
      await bench.put("a", "6");
      const kv = await bench.get("a");
      assert.deepEqual([kv?.version, kv?.createRevision], [6, created]);
    },
  },
  {
    name: "a later mark removes what an earlier one had to keep",
    async run(bench) {
      await bench.put("a", "1");
      const first = await bench.delete("a");
      await bench.store.compact(first);
      await bench.pass(1_000);
      await bench.put("b", "1");
      const second = await bench.put("b", "2");
      await bench.store.compact(second);
      await bench.pass(1_000);
      assert.deepEqual(await bench.contents(second), ["b=2"]);
      assert.equal(await bench.get("a"), undefined);
      assert.equal((await bench.put("a", "again")) > 0 && (await bench.get("a"))?.version, 1);
    },
  },
];
