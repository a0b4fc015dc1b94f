/** Reads: what a range answers, now and at a revision. */
import assert from "node:assert/strict";
import { refuses, type Bench, type ContractCase } from "./case-bench.ts";

async function fill(bench: Bench): Promise<number> {
  await bench.put("b", "1");
  await bench.put("a", "3");
  await bench.put("c", "2");
  return bench.put("a", "4");
}

export const rangeCases: readonly ContractCase[] = [
  {
    name: "a pair carries its revisions and version",
    async run(bench) {
      const first = await bench.put("a", "1");
      const second = await bench.put("a", "2");
      const kv = await bench.get("a");
      assert.deepEqual(
        [kv?.value.toString(), kv?.createRevision, kv?.modRevision, kv?.version, kv?.lease],
        ["2", first, second, 2, 0n],
      );
    },
  },
  {
    name: "deleting ends the generation",
    async run(bench) {
      await bench.put("a", "1");
      await bench.put("a", "2");
      await bench.delete("a");
      assert.equal(await bench.get("a"), undefined);
      const again = await bench.put("a", "3");
      const kv = await bench.get("a");
      assert.deepEqual([kv?.version, kv?.createRevision], [1, again]);
    },
  },
  {
    name: "keys are ordered byte by byte and ranges are half-open",
    async run(bench) {
      for (const name of ["b", "a", "a\u00e9", "aZ", "a%", "a_", "c"]) await bench.put(name);
      const { kvs } = await bench.store.range({ key: bench.key("a"), end: bench.key("b") });
      assert.deepEqual(
        kvs.map((kv) => bench.short(kv)),
        ["a", "a%", "aZ", "a_", "a\u00e9"],
      );
    },
  },
  {
    name: "keys and values are bytes",
    async run(bench) {
      const key = Buffer.concat([Buffer.from(bench.key("")), Buffer.from([0, 255, 37, 128])]);
      const value = Buffer.from([0, 1, 254, 255, 0]);
      await bench.do({ type: "put", key, value });
      const { kvs } = await bench.store.range({ key });
      assert.deepEqual(kvs[0]?.key, key);
      assert.deepEqual(kvs[0]?.value, value);
      const above = await bench.store.range({
        ...bench.all(),
        limit: 1,
        sort: { by: "key", descending: true },
      });
      assert.deepEqual(above.kvs[0]?.key, key);
    },
  },
  {
    name: "a zero byte as end means to the end of the key space",
    async run(bench) {
      await bench.put("zz", "1");
      const { kvs } = await bench.store.range({ key: bench.key("zz"), end: "\0", limit: 1 });
      assert.equal(kvs[0] && bench.short(kvs[0]), "zz");
    },
  },
  {
    name: "an empty key is refused, an inverted range is empty",
    async run(bench) {
      await refuses(bench.store.range({ key: "" }), "invalid_argument");
      await fill(bench);
      const { kvs, count } = await bench.store.range({ key: bench.key("c"), end: bench.key("a") });
      assert.deepEqual([kvs.length, count], [0, 0]);
    },
  },
  {
    name: "limit cuts, count does not, more tells",
    async run(bench) {
      await fill(bench);
      const page = await bench.store.range({ ...bench.all(), limit: 2 });
      assert.deepEqual([page.kvs.map((kv) => bench.short(kv)), page.count, page.more], [["a", "b"], 3, true]);
      const whole = await bench.store.range({ ...bench.all(), limit: 3 });
      assert.deepEqual([whole.kvs.length, whole.count, whole.more], [3, 3, false]);
    },
  },
  {
    name: "uncounted spares the count, not what more tells",
    async run(bench) {
      await fill(bench);
      const { revision } = await bench.store.range(bench.all());
      await bench.put("d", "1");
      for (const at of [0, revision])
        for (const [limit, keys, more] of [
          [2, "ab", true],
          [3, "abc", at === 0],
          [4, at === 0 ? "abcd" : "abc", false],
        ] as const) {
          const page = await bench.store.range({ ...bench.all(), revision: at, limit, uncounted: true });
          assert.deepEqual([page.kvs.map((kv) => bench.short(kv)).join(""), page.more], [keys, more]);
          assert.ok(page.count >= page.kvs.length + (page.more ? 1 : 0) && page.count <= 4);
        }
      const sort = { by: "key", descending: true } as const;
      const back = await bench.store.range({ ...bench.all(), limit: 1, uncounted: true, sort });
      assert.deepEqual([back.kvs.map((kv) => bench.short(kv)), back.more], [["d"], true]);
      const inside = await bench.store.txn({
        success: [{ type: "range", ...bench.all(), limit: 3, uncounted: true }],
      });
      const [first] = inside.results;
      assert.deepEqual(first?.type === "range" && [first.range.kvs.length, first.range.more], [3, true]);
    },
  },
  {
    name: "keysOnly and countOnly leave out what they say",
    async run(bench) {
      await fill(bench);
      const keys = await bench.store.range({ ...bench.all(), keysOnly: true });
      assert.deepEqual(
        keys.kvs.map((kv) => [bench.short(kv), kv.value.length, kv.version]),
        [
          ["a", 0, 2],
          ["b", 0, 1],
          ["c", 0, 1],
        ],
      );
      const count = await bench.store.range({ ...bench.all(), countOnly: true });
      assert.deepEqual([count.kvs.length, count.count], [0, 3]);
    },
  },
  {
    name: "sorts by each target, both ways",
    async run(bench) {
      await fill(bench);
      const order = async (by: "key" | "version" | "create" | "mod" | "value", descending: boolean) => {
        const { kvs } = await bench.store.range({ ...bench.all(), sort: { by, descending } });
        return kvs.map((kv) => bench.short(kv)).join("");
      };
      assert.equal(await order("key", false), "abc");
      assert.equal(await order("key", true), "cba");
      assert.equal(await order("create", false), "bac");
      assert.equal(await order("mod", true), "acb");
      assert.equal(await order("value", false), "bca");
      assert.equal((await order("version", true))[0], "a");
    },
  },
  {
    name: "a limit applies after sorting",
    async run(bench) {
      await fill(bench);
      const page = await bench.store.range({
        ...bench.all(),
        sort: { by: "mod", descending: true },
        limit: 1,
      });
      assert.deepEqual([page.kvs.map((kv) => bench.short(kv)), page.count, page.more], [["a"], 3, true]);
    },
  },
  {
    name: "bounds on revisions filter pairs",
    async run(bench) {
      const last = await fill(bench);
      const newest = await bench.store.range({ ...bench.all(), minModRevision: last });
      assert.deepEqual(
        newest.kvs.map((kv) => bench.short(kv)),
        ["a"],
      );
      const older = await bench.store.range({ ...bench.all(), maxModRevision: last - 1 });
      assert.deepEqual(
        older.kvs.map((kv) => bench.short(kv)),
        ["b", "c"],
      );
      const created = await bench.store.range({
        ...bench.all(),
        minCreateRevision: last - 2,
        maxCreateRevision: last - 2,
      });
      assert.deepEqual(
        created.kvs.map((kv) => bench.short(kv)),
        ["a"],
      );
    },
  },
  {
    name: "a read at a revision sees exactly the state after it",
    async run(bench) {
      const states: [number, string[]][] = [];
      const note = async (revision: number): Promise<void> =>
        void states.push([revision, await bench.contents()]);
      await note(await bench.put("a", "1"));
      await note(await bench.put("b", "1"));
      await note(await bench.put("a", "2"));
      await note(await bench.delete("b"));
      await note(await bench.put("c", "1"));
      await note(await bench.put("b", "2"));
      await note(await bench.delete("a"));
      for (const [revision, state] of states) {
        assert.deepEqual(await bench.contents(revision), state);
        const { count } = await bench.store.range({ ...bench.all(), revision, countOnly: true });
        assert.equal(count, state.length);
        const page = await bench.store.range({ ...bench.all(), revision, limit: 1 });
        assert.deepEqual([page.count, page.more], [state.length, state.length > 1]);
        const back = await bench.store.range({
          ...bench.all(),
          revision,
          sort: { by: "key", descending: true },
        });
        assert.deepEqual(
          back.kvs.map((kv) => `${bench.short(kv)}=${kv.value.toString()}`),
          state.toReversed(),
        );
      }
    },
  },
  {
    name: "paging at one revision sees one state although writes go on",
    async run(bench) {
      for (let i = 0; i < 25; i++) await bench.put(`k${String(i).padStart(2, "0")}`, "old");
      const revision = await bench.store.revision();
      const seen: string[] = [];
      let key = Buffer.from(bench.key(""));
      for (let page = 0; ; page++) {
        const answer = await bench.store.range({ key, end: bench.all().end, limit: 7, revision });
        assert.equal(answer.count, 25 - seen.length);
        seen.push(...answer.kvs.map((kv) => `${bench.short(kv)}=${kv.value.toString()}`));
        const last = answer.kvs.at(-1);
        if (!answer.more || !last) break;
        key = Buffer.concat([last.key, Buffer.from([0])]);
        await bench.put(`k${String(page * 5).padStart(2, "0")}`, "new");
        await bench.delete(`k${String(24 - page)}`);
        await bench.put(`kx${page}`, "new");
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 25 }, (_, i) => `k${String(i).padStart(2, "0")}=old`),
      );
    },
  },
  {
    name: "a future revision is refused",
    async run(bench) {
      const revision = await bench.put("a");
      await refuses(bench.store.range({ key: bench.key("a"), revision: revision + 1 }), "invalid_argument");
    },
  },
  {
    name: "a read answers with the store's revision",
    async run(bench) {
      const first = await bench.put("a");
      const second = await bench.put("b");
      assert.equal((await bench.store.range({ key: bench.key("a"), revision: first })).revision, second);
      assert.equal(await bench.store.revision(), second);
    },
  },
  {
    name: "a read that starts after a write was acknowledged sees it, from any store over the data",
    async run(bench) {
      const second = await bench.second?.();
      try {
        for (let i = 0; i < 20; i++) {
          const revision = await bench.put("a", String(i));
          for (const store of second ? [second, bench.store] : [bench.store]) {
            const { kvs } = await store.range({ key: bench.key("a") });
            assert.equal(kvs[0]?.value.toString(), String(i));
            assert.ok((await store.revision()) >= revision);
          }
        }
      } finally {
        await second?.close();
      }
    },
  },
  {
    name: "the hash is of the contents at a revision",
    async run(bench) {
      const before = await bench.put("a", "1");
      const first = await bench.store.hash(before);
      await bench.put("a", "2");
      const second = await bench.store.hash();
      assert.notEqual(first.hash, second.hash);
      assert.equal((await bench.store.hash(before)).hash, first.hash);
      assert.equal(first.revision, before);
    },
  },
  {
    name: "the status names driver, revision, sizes and keys",
    async run(bench) {
      const before = await bench.store.status();
      const revision = await bench.put("a", "x".repeat(10_000));
      const status = await bench.store.status();
      assert.equal(status.revision, revision);
      assert.equal(status.keys, before.keys + 1);
      assert.ok(status.driver.length > 0 && status.sizeBytes > 0 && status.sizeInUseBytes > 0);
    },
  },
  {
    name: "an aborted call is cancelled",
    async run(bench) {
      const signal = AbortSignal.abort();
      await refuses(bench.store.range({ key: bench.key("a") }, { signal }), "cancelled");
      await refuses(bench.store.txn({ success: [] }, { signal }), "cancelled");
    },
  },
];
