/** The storage contract over a real etcd. */
import { after, before, describe } from "node:test";
import { systemEdges } from "@kontinuum/std";
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
});
