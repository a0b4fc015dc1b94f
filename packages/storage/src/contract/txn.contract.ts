/** Transactions: conditions, operations, one revision, all or nothing. */
import assert from "node:assert/strict";
import type { Compare, Op } from "../contract.ts";
import { refuses, resultAt, type ContractCase } from "./case-bench.ts";

export const txnCases: readonly ContractCase[] = [
  {
    name: "a transaction raises the revision by exactly one",
    async run(bench) {
      const before = await bench.put("x");
      const txn = await bench.do(
        { type: "put", key: bench.key("a"), value: "1" },
        { type: "put", key: bench.key("b"), value: "2" },
        { type: "delete", key: bench.key("x") },
      );
      assert.equal(txn.revision, before + 1);
      assert.deepEqual(
        [(await bench.get("a"))?.modRevision, (await bench.get("b"))?.modRevision],
        [before + 1, before + 1],
      );
    },
  },
  {
    name: "a transaction that changes nothing does not raise it",
    async run(bench) {
      const before = await bench.put("x");
      const txn = await bench.do(
        { type: "delete", key: bench.key("none") },
        { type: "range", key: bench.key("x") },
      );
      assert.equal(txn.revision, before);
      assert.equal((await bench.store.txn({})).revision, before);
      assert.equal(await bench.store.revision(), before);
    },
  },
  {
    name: "a put of the same value is a change",
    async run(bench) {
      const first = await bench.put("a", "1");
      assert.equal(await bench.put("a", "1"), first + 1);
    },
  },
  {
    name: "compares each target with each relation",
    async run(bench) {
      const lease = await bench.store.leaseGrant(600);
      const created = await bench.put("a", "m");
      const changed = await bench.put("a", "m", lease.id);
      const key = bench.key("a");
      const holds = async (compare: Compare): Promise<boolean> =>
        (await bench.store.txn({ compare: [compare] })).succeeded;
      const facts: [target: "mod" | "create" | "version", value: number][] = [
        ["mod", changed],
        ["create", created],
        ["version", 2],
      ];
      for (const [target, value] of facts) {
        for (const [operand, equal, greater, less] of [
          [value, true, false, false],
          [value - 1, false, true, false],
          [value + 1, false, false, true],
        ] as const) {
          assert.equal(await holds({ key, target, operand, result: "equal" }), equal, target);
          assert.equal(await holds({ key, target, operand, result: "not_equal" }), !equal, target);
          assert.equal(await holds({ key, target, operand, result: "greater" }), greater, target);
          assert.equal(await holds({ key, target, operand, result: "less" }), less, target);
        }
      }
      for (const [operand, equal, greater] of [
        ["m", true, false],
        ["l", false, true],
        ["n", false, false],
        ["mm", false, false],
      ] as const) {
        assert.equal(await holds({ key, target: "value", operand, result: "equal" }), equal);
        assert.equal(await holds({ key, target: "value", operand, result: "greater" }), greater);
      }
      assert.equal(await holds({ key, target: "lease", operand: lease.id, result: "equal" }), true);
      assert.equal(await holds({ key, target: "lease", operand: 0n, result: "greater" }), true);
      await bench.store.leaseRevoke(lease.id);
    },
  },
  {
    name: "an absent key compares as zero, its value never holds",
    async run(bench) {
      const key = bench.key("none");
      const holds = async (compare: Compare): Promise<boolean> =>
        (await bench.store.txn({ compare: [compare] })).succeeded;
      for (const target of ["mod", "create", "version"] as const)
        assert.equal(await holds({ key, target, operand: 0, result: "equal" }), true);
      assert.equal(await holds({ key, target: "lease", operand: 0n, result: "equal" }), true);
      for (const result of ["equal", "not_equal", "less", "greater"] as const)
        assert.equal(await holds({ key, target: "value", operand: "", result }), false);
    },
  },
  {
    name: "a condition on a range holds when it holds for every key",
    async run(bench) {
      await bench.put("a", "1");
      await bench.put("b", "1");
      const range = bench.all();
      const same: Compare = { ...range, target: "value", operand: "1", result: "equal" };
      assert.equal((await bench.store.txn({ compare: [same] })).succeeded, true);
      await bench.put("c", "2");
      assert.equal((await bench.store.txn({ compare: [same] })).succeeded, false);
    },
  },
  {
    name: "all conditions decide between success and failure",
    async run(bench) {
      const key = bench.key("a");
      const compare: Compare[] = [
        { key, target: "version", operand: 0, result: "equal" },
        { key: bench.key("b"), target: "version", operand: 0, result: "equal" },
      ];
      const success: Op[] = [{ type: "put", key, value: "yes" }];
      const failure: Op[] = [{ type: "range", key }];
      assert.equal((await bench.store.txn({ compare, success, failure })).succeeded, true);
      const second = await bench.store.txn({ compare, success, failure });
      assert.equal(second.succeeded, false);
      assert.equal(resultAt(second, 0, "range").range.kvs[0]?.value.toString(), "yes");
    },
  },
  {
    name: "of many that compare and swap at once exactly one wins",
    async run(bench) {
      const start = await bench.put("a", "0");
      const key = bench.key("a");
      const tries = await Promise.all(
        Array.from({ length: 32 }, (_, i) =>
          bench.store.txn({
            compare: [{ key, target: "mod", operand: start, result: "equal" }],
            success: [{ type: "put", key, value: String(i) }],
          }),
        ),
      );
      assert.equal(tries.filter((txn) => txn.succeeded).length, 1);
      assert.equal(await bench.store.revision(), start + 1);
    },
  },
  {
    name: "a put answers with the pair before it",
    async run(bench) {
      const key = bench.key("a");
      const first = await bench.do({ type: "put", key, value: "1", prevKv: true });
      assert.equal(resultAt(first, 0, "put").prev, undefined);
      const second = await bench.do({ type: "put", key, value: "2", prevKv: true });
      assert.equal(resultAt(second, 0, "put").prev?.value.toString(), "1");
    },
  },
  {
    name: "a delete answers with count and pairs before it",
    async run(bench) {
      await bench.put("a", "1");
      await bench.put("b", "2");
      const txn = await bench.do({ type: "delete", ...bench.all(), prevKv: true });
      const result = resultAt(txn, 0, "delete");
      assert.deepEqual([result.deleted, result.prev.map((kv) => kv.value.toString())], [2, ["1", "2"]]);
      assert.deepEqual(await bench.contents(), []);
    },
  },
  {
    name: "ignoreValue and ignoreLease keep what is there",
    async run(bench) {
      const lease = await bench.store.leaseGrant(600);
      const key = bench.key("a");
      await refuses(bench.do({ type: "put", key, value: "", ignoreValue: true }), "invalid_argument");
      await refuses(bench.do({ type: "put", key, value: "x", ignoreLease: true }), "invalid_argument");
      await bench.put("a", "1", lease.id);
      await bench.do({ type: "put", key, value: "2", ignoreLease: true });
      let kv = await bench.get("a");
      assert.deepEqual([kv?.value.toString(), kv?.lease], ["2", lease.id]);
      await bench.do({ type: "put", key, value: "", ignoreValue: true });
      kv = await bench.get("a");
      assert.deepEqual([kv?.value.toString(), kv?.lease, kv?.version], ["2", 0n, 3]);
      await bench.store.leaseRevoke(lease.id);
    },
  },
  {
    name: "a key may be put only once, and not be put and deleted",
    async run(bench) {
      const key = bench.key("a");
      const put: Op = { type: "put", key, value: "1" };
      await refuses(bench.do(put, { type: "put", key, value: "2" }), "invalid_argument");
      await refuses(bench.do(put, { type: "delete", ...bench.all() }), "invalid_argument");
      await refuses(bench.do(put, { type: "txn", success: [put] }), "invalid_argument");
      assert.equal(await bench.get("a"), undefined);
      // Branches exclude each other.
      await bench.do({ type: "txn", success: [put], failure: [put] });
      assert.equal((await bench.get("a"))?.version, 1);
    },
  },
  {
    name: "reads inside see the operations before them",
    async run(bench) {
      await bench.put("a", "1");
      const range: Op = { type: "range", ...bench.all() };
      const txn = await bench.do(
        range,
        { type: "put", key: bench.key("b"), value: "2" },
        range,
        { type: "delete", key: bench.key("a") },
        range,
      );
      const seen = [0, 2, 4].map((i) =>
        resultAt(txn, i, "range")
          .range.kvs.map((kv) => bench.short(kv))
          .join(),
      );
      assert.deepEqual(seen, ["a", "a,b", "b"]);
    },
  },
  {
    name: "a read inside can look at an older revision",
    async run(bench) {
      const first = await bench.put("a", "1");
      await bench.put("a", "2");
      const txn = await bench.do({ type: "range", key: bench.key("a"), revision: first });
      assert.equal(resultAt(txn, 0, "range").range.kvs[0]?.value.toString(), "1");
    },
  },
  {
    name: "transactions nest",
    async run(bench) {
      await bench.put("a", "1");
      const txn = await bench.do({
        type: "txn",
        compare: [{ key: bench.key("a"), target: "value", operand: "1", result: "equal" }],
        success: [
          { type: "put", key: bench.key("b"), value: "in" },
          {
            type: "txn",
            compare: [{ key: bench.key("none"), target: "version", operand: 1, result: "equal" }],
            failure: [{ type: "put", key: bench.key("c"), value: "deep" }],
          },
        ],
      });
      const inner = resultAt(txn, 0, "txn").txn;
      assert.equal(inner.succeeded, true);
      assert.equal(resultAt(inner, 1, "txn").txn.succeeded, false);
      assert.deepEqual(await bench.contents(), ["a=1", "b=in", "c=deep"]);
      assert.equal((await bench.get("b"))?.modRevision, (await bench.get("c"))?.modRevision);
    },
  },
  {
    name: "conditions of a nested transaction see the state before the whole",
    async run(bench) {
      const key = bench.key("a");
      const txn = await bench.do(
        { type: "put", key, value: "1" },
        { type: "txn", compare: [{ key, target: "version", operand: 0, result: "equal" }] },
      );
      assert.equal(resultAt(txn, 1, "txn").txn.succeeded, true);
    },
  },
  {
    name: "a transaction that fails changes nothing",
    async run(bench) {
      const before = await bench.put("a", "1");
      await refuses(
        bench.do(
          { type: "put", key: bench.key("b"), value: "2" },
          { type: "put", key: bench.key("c"), value: "", ignoreValue: true },
        ),
        "invalid_argument",
      );
      await refuses(
        bench.do(
          { type: "put", key: bench.key("b"), value: "2" },
          { type: "put", key: bench.key("c"), value: "3", lease: 987_654_321n },
        ),
        "not_found",
      );
      assert.deepEqual(await bench.contents(), ["a=1"]);
      assert.equal(await bench.store.revision(), before);
    },
  },
  {
    name: "failures of one writer do not touch the others",
    async run(bench) {
      const results = await Promise.allSettled([
        bench.put("a", "1"),
        bench.put("b", "2", 987_654_321n),
        bench.put("c", "3"),
      ]);
      assert.deepEqual(
        results.map((result) => result.status),
        ["fulfilled", "rejected", "fulfilled"],
      );
      assert.deepEqual(await bench.contents(), ["a=1", "c=3"]);
    },
  },
  {
    name: "empty keys and too many operations are refused",
    async run(bench) {
      await refuses(bench.do({ type: "put", key: "", value: "x" }), "invalid_argument");
      await refuses(bench.do({ type: "delete", key: "" }), "invalid_argument");
      const many = (count: number): Op[] =>
        Array.from({ length: count }, (_, i): Op => ({ type: "put", key: bench.key(`k${i}`), value: "" }));
      await refuses(bench.do(...many(129)), "invalid_argument");
      assert.equal((await bench.do(...many(128))).results.length, 128);
    },
  },
  {
    name: "a request that is too large is refused",
    async run(bench) {
      await refuses(bench.put("a", "x".repeat(2 * 1024 * 1024)), "payload_too_large");
      await bench.put("a", "x".repeat(1024 * 1024));
      assert.equal((await bench.get("a"))?.value.length, 1024 * 1024);
    },
  },
  {
    name: "revisions of concurrent writers are consecutive",
    async run(bench) {
      const start = await bench.put("start");
      const revisions = await Promise.all(Array.from({ length: 50 }, (_, i) => bench.put(`k${i}`)));
      assert.deepEqual(
        revisions.sort((a, b) => a - b),
        Array.from({ length: 50 }, (_, i) => start + 1 + i),
      );
    },
  },
];
