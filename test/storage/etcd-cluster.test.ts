/**
 * Three members of etcd, two replicas of the store, and the leader killed in the middle of writes, twice: one history, watches
 * that miss nothing, and nobody who has to be restarted.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject, seededRandom, systemEdges } from "@kontinuum/std";
import { openStore, prefixRange, type StoreEvent } from "@kontinuum/storage";
import { checkHistory, History } from "@kontinuum/storage/history";
import { findEtcd, findEtcdctl, startEtcdCluster, type Etcd } from "../services/etcd.ts";
import { run, skipUnless, waitFor } from "../services/service.ts";
import { collect, recordedClient } from "./recorded-clients.ts";

const etcdctl = await findEtcdctl();

/** The member that leads. */
async function leaderOf(members: readonly Etcd[]): Promise<Etcd | undefined> {
  for (const member of members) {
    const asked = await run(
      typeof etcdctl === "string" ? etcdctl : "",
      [`--endpoints=${member.endpoint}`, "endpoint", "status", "-w", "json"],
      { env: { ETCDCTL_API: "3", PATH: process.env["PATH"] ?? "" } },
    );
    if (asked.code !== 0) continue;
    const answer: unknown = JSON.parse(asked.stdout);
    const status: unknown = Array.isArray(answer) && isObject(answer[0]) ? answer[0]["Status"] : undefined;
    // Ids are larger than a double holds: compared as text.
    const id = /"member_id":(\d+)/.exec(asked.stdout)?.[1];
    const leader = /"leader":(\d+)/.exec(asked.stdout)?.[1];
    if (isObject(status) && id !== undefined && id === leader) return member;
  }
  return undefined;
}

test(
  "the leader of three is killed in the middle of writes",
  { skip: skipUnless(await findEtcd()) || skipUnless(etcdctl), timeout: 180_000 },
  async () => {
    const members = await startEtcdCluster(3);
    const url = `etcd://${members.map(({ endpoint }) => endpoint).join(",")}`;
    const stop = new AbortController();
    try {
      const replicas = await Promise.all([1, 2].map(() => openStore(url, systemEdges())));
      const history = new History();
      const random = seededRandom(21);
      let counter = 0;
      const clients = replicas.flatMap((store, replica) =>
        [0, 1, 2, 3].map((id) =>
          recordedClient(store, history, replica * 4 + id, random, stop.signal, () => `v${counter++}`),
        ),
      );
      const seen: StoreEvent[][] = replicas.map(() => []);
      const watching = replicas.map(async (store, i) => {
        while (!stop.signal.aborted) await collect(store, seen[i] ?? [], stop.signal);
      });
      const goOn = async (what: string): Promise<void> => {
        const target = history.finished.length + 150;
        await waitFor(what, () => history.finished.length >= target, 60_000);
      };
      await goOn("clients to be under way");
      for (let round = 0; round < 2; round++) {
        const leader = await waitFor("a leader", () => leaderOf(members));
        await leader.kill();
        await goOn("clients to go on with another leader");
        await leader.restart();
        await goOn("clients to go on with all members");
      }
      stop.abort();
      await Promise.all(clients);

      const direct = await openStore(url, systemEdges());
      const everything: StoreEvent[] = [];
      const end = new AbortController();
      const reading = collect(direct, everything, end.signal);
      const newest = Math.max(
        ...(await direct.range(prefixRange("/crash/"))).kvs.map((kv) => kv.modRevision),
      );
      await waitFor("the whole log", () => (everything.at(-1)?.kv.modRevision ?? 0) >= newest);
      end.abort();
      await reading;
      assert.deepEqual(checkHistory(history, everything, { contiguous: true }), []);
      const revisions = (events: readonly StoreEvent[]): number[] => events.map(({ kv }) => kv.modRevision);
      for (const events of seen) {
        assert.ok(events.length > 100, `${events.length} events`);
        assert.deepEqual(revisions(events), revisions(everything.slice(0, events.length)));
      }
      await Promise.all([...watching, direct.close(), ...replicas.map((store) => store.close())]);
    } finally {
      stop.abort();
      await Promise.all(members.map((member) => member.stop()));
    }
  },
);
