/** The storage contract over a real etcd. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { testContract } from "@kontinuum/storage/contract-suite";
import { findEtcd, startEtcd, type Etcd } from "../services/etcd.ts";
import { skipUnless } from "../services/service.ts";

const skip = skipUnless(await findEtcd());

describe("etcd driver", { skip }, () => {
  let etcd: Etcd;
  before(async () => {
    etcd = await startEtcd();
  });
  after(() => etcd.stop());

  testContract("etcd", async () => {
    const edges = systemEdges();
    const store = await openStore(etcd.url, edges);
    return {
      store,
      pass: (ms) => edges.clock.sleep(ms),
      second: () => openStore(etcd.url, edges),
      close: () => store.close(),
    };
  });

  test("defragmentation and alarms are the server's own", async () => {
    const store = await openStore(etcd.url, systemEdges());
    await store.defragment?.();
    assert.deepEqual(await store.alarms?.(), []);
    await store.disarm?.("no_space");
    await store.close();
  });

  test("an etcd that is killed and comes back: typed failures, then on without a restart; watches miss nothing", async () => {
    const store = await openStore(etcd.url, systemEdges());
    const put = (value: string) => store.txn({ success: [{ type: "put", key: "/killed", value }] });
    const { revision } = await put("1");
    const watch = store.watch({ key: "/killed", startRevision: revision });
    const events = watch[Symbol.asyncIterator]();
    assert.equal((await events.next()).value?.events[0]?.kv.value.toString(), "1");
    await etcd.kill();
    await assert.rejects(store.range({ key: "/killed" }), (error) => isCoded(error, "unavailable"));
    await assert.rejects(put("lost"), (error) => isCoded(error, "unavailable"));
    await etcd.restart();
    await put("2");
    assert.equal((await store.range({ key: "/killed" })).kvs[0]?.value.toString(), "2");
    assert.equal((await events.next()).value?.events[0]?.kv.value.toString(), "2");
    await store.close();
  });
});
