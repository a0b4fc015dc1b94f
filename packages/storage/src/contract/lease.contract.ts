/** Leases: keys live as long as their lease, and expiry is an ordinary transaction. */
import assert from "node:assert/strict";
import { refuses, type ContractCase } from "./case-bench.ts";

export const leaseCases: readonly ContractCase[] = [
  {
    name: "grants with a given and with a chosen id",
    async run(bench) {
      const chosen = await bench.store.leaseGrant(300);
      assert.ok(chosen.id !== 0n && chosen.grantedTtl === 300);
      const id = BigInt(chosen.id ^ 1n);
      assert.equal((await bench.store.leaseGrant(300, id)).id, id);
      await refuses(bench.store.leaseGrant(300, id), "already_exists");
      const ids = await bench.store.leases();
      assert.ok(ids.includes(id) && ids.includes(chosen.id));
      for (const each of [id, chosen.id]) await bench.store.leaseRevoke(each);
    },
  },
  {
    name: "a time to live beyond the bound is refused",
    async run(bench) {
      await refuses(bench.store.leaseGrant(9_000_000_001), "invalid_argument");
    },
  },
  {
    name: "a put needs an existing lease",
    async run(bench) {
      await refuses(bench.put("a", "1", 123_456_789n), "not_found");
      assert.equal(await bench.get("a"), undefined);
    },
  },
  {
    name: "tells time left and keys",
    async run(bench) {
      const { id } = await bench.store.leaseGrant(500);
      await bench.put("b", "1", id);
      await bench.put("a", "1", id);
      const info = await bench.store.leaseTimeToLive(id, true);
      assert.ok(info.ttl > 490 && info.ttl <= 500);
      assert.equal(info.grantedTtl, 500);
      assert.deepEqual(
        info.keys.map((key) => bench.short({ key })),
        ["a", "b"],
      );
      assert.deepEqual((await bench.store.leaseTimeToLive(id)).keys, []);
      await bench.store.leaseRevoke(id);
      assert.equal((await bench.store.leaseTimeToLive(id)).ttl, -1);
    },
  },
  {
    name: "revoking deletes the keys in one revision",
    async run(bench) {
      const { id } = await bench.store.leaseGrant(500);
      await bench.put("a", "1", id);
      await bench.put("b", "2", id);
      const before = await bench.put("c", "3");
      const reader = await bench.watch();
      const { revision } = await bench.store.leaseRevoke(id);
      assert.equal(revision, before + 1);
      const events = await reader.events(2);
      assert.deepEqual(
        events.map((event) => [event.type, bench.short(event.kv), event.kv.modRevision]),
        [
          ["delete", "a", revision],
          ["delete", "b", revision],
        ],
      );
      assert.deepEqual(await bench.contents(), ["c=3"]);
      await refuses(bench.store.leaseRevoke(id), "not_found");
      await refuses(bench.store.leaseKeepAlive(id), "not_found");
    },
  },
  {
    name: "a key belongs to the lease of its last put",
    async run(bench) {
      const first = await bench.store.leaseGrant(500);
      const second = await bench.store.leaseGrant(500);
      await bench.put("a", "1", first.id);
      await bench.put("a", "2", second.id);
      await bench.put("b", "1", first.id);
      await bench.put("b", "2");
      await bench.store.leaseRevoke(first.id);
      assert.deepEqual(await bench.contents(), ["a=2", "b=2"]);
      await bench.store.leaseRevoke(second.id);
      assert.deepEqual(await bench.contents(), ["b=2"]);
    },
  },
  {
    name: "revoking an empty lease changes no key",
    async run(bench) {
      const before = await bench.put("a");
      const { id } = await bench.store.leaseGrant(500);
      await bench.store.leaseRevoke(id);
      assert.equal(await bench.store.revision(), before);
    },
  },
  {
    name: "expiry deletes the keys, and not before its time",
    async run(bench) {
      const { id, grantedTtl } = await bench.store.leaseGrant(2);
      await bench.put("a", "1", id);
      await bench.put("b", "2");
      const reader = await bench.watch();
      await bench.pass(grantedTtl * 500);
      assert.deepEqual(await bench.contents(), ["a=1", "b=2"]);
      await bench.pass(grantedTtl * 500 + 10);
      const [event] = await reader.events(1);
      assert.deepEqual([event?.type, event && bench.short(event.kv)], ["delete", "a"]);
      assert.deepEqual(await bench.contents(), ["b=2"]);
      assert.equal((await bench.store.leaseTimeToLive(id)).ttl, -1);
    },
  },
  {
    name: "a keep-alive starts the time again",
    async run(bench) {
      const { id, grantedTtl } = await bench.store.leaseGrant(2);
      await bench.put("a", "1", id);
      for (let i = 0; i < 3; i++) {
        await bench.pass(grantedTtl * 600);
        assert.equal((await bench.store.leaseKeepAlive(id)).ttl, grantedTtl);
      }
      assert.deepEqual(await bench.contents(), ["a=1"]);
      const reader = await bench.watch();
      await bench.pass(grantedTtl * 1_000 + 10);
      await reader.events(1);
      assert.deepEqual(await bench.contents(), []);
    },
  },
];
