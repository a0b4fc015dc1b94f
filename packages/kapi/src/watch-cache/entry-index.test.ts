import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { CacheEntry } from "./entry.ts";
import { EntryIndex } from "./entry-index.ts";

const entry = (key: string, revision: number): CacheEntry => ({
  key,
  namespace: "",
  name: key,
  uid: "",
  revision,
  apiVersion: "v1",
  kind: "Thing",
  rest: Buffer.alloc(0),
  labels: {},
});
const keyOf = (n: number): string => `/${String(n).padStart(5, "0")}`;

test("the index is a sorted map, whatever is done to it", () => {
  const number = fc.integer({ min: 0, max: 3000 });
  const step = fc.record({ put: fc.boolean(), number });
  const seed = fc.uniqueArray(number, { maxLength: 1500 });
  fc.assert(
    fc.property(seed, fc.array(step, { maxLength: 3000 }), number, number, (start, steps, from, end) => {
      const index = new EntryIndex(start.map((n) => entry(keyOf(n), 0)));
      const model = new Map(start.map((n) => [keyOf(n), 0]));
      for (const [i, { put, number: n }] of steps.entries()) {
        const key = keyOf(n);
        const before = model.get(key);
        if (put) model.set(key, i + 1);
        else model.delete(key);
        const previous = put ? index.set(entry(key, i + 1)) : index.delete(key);
        assert.equal(previous?.revision, before);
      }
      const all = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
      const seen = [...index.range("", "\uffff")].map(({ key, revision }) => [key, revision]);
      assert.deepEqual(seen, all);
      assert.equal(index.size, model.size);
      const some = all.filter(([key]) => key >= keyOf(from) && key < keyOf(end));
      assert.deepEqual(
        [...index.range(keyOf(from), keyOf(end))].map(({ key }) => key),
        some.map(([key]) => key),
      );
      assert.equal(index.count(keyOf(from), keyOf(end)), some.length);
      for (const [key, revision] of all) assert.equal(index.get(key)?.revision, revision);
    }),
    { numRuns: 60 },
  );
});
