import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { call, machineBody, until, type Answered } from "../../packages/kryton/src/kryton.fixture.ts";
import { openStream, type Stream } from "../../packages/kryton/src/sse.fixture.ts";
import { keys, timeKey } from "../../packages/kryton/src/store/keyspace.ts";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";
import { Site } from "./site.ts";

const machines = 60;
const expiring = 12;
const kills = 5;

/** Calls through the proxy until somebody answers; the key makes that harmless. */
async function insist(
  site: Site,
  method: string,
  path: string,
  key: string,
  body?: unknown,
): Promise<Answered> {
  return until(async () => {
    try {
      const answer = await call(site.url, method, path, body, { "idempotency-key": key });
      const again = answer.status >= 502 || (answer.status === 409 && /under way/.test(answer.text));
      return again ? undefined : answer;
    } catch {
      return undefined;
    }
  }, 60_000);
}

/** Follows the stream through the proxy, resuming after the last event seen, until told to stop. */
async function follow(url: string, seen: string[], stopped: () => boolean): Promise<void> {
  while (!stopped()) {
    let stream: Stream;
    try {
      const last = seen.at(-1);
      stream = await openStream(
        `${url}/api/v1/events/stream`,
        last === undefined ? {} : { "last-event-id": last },
      );
    } catch {
      continue;
    }
    let count = 0;
    let open = true;
    const taken = (): void => void seen.push(...stream.ids().slice(count, (count = stream.ids().length)));
    void stream.ended.then(() => (open = false));
    await until(() => {
      taken();
      return !open || stopped() ? true : undefined;
    }, 240_000);
    await stream[Symbol.asyncDispose]();
    taken();
    assert.doesNotMatch(stream.text(), /event: gap/);
  }
}

test(
  "three replicas on PostgreSQL answer alike and lose nothing while one is killed again and again",
  {
    skip: skipUnless(await findPostgres()),
    timeout: 240_000,
  },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "kryton-replicas-"));
    const postgres = await startPostgres();
    try {
      const keyFile = join(folder, "key");
      await writeFile(keyFile, "ab".repeat(32));
      const env = {
        HOME: folder,
        KRYTON_STORAGE: postgres.url,
        KRYTON_ENCRYPTION_KEY_FILE: keyFile,
        KRYTON_RECONCILE_INTERVAL: "200ms",
      };
      await using site = await Site.open(env);
      const streamed: string[] = [];
      let done = false;
      using _ = { [Symbol.dispose]: () => void (done = true) };
      const following = follow(site.url, streamed, () => done);
      const names = Array.from({ length: machines }, (_, i) => `m${String(i).padStart(3, "0")}`);
      const made: { id: string; spec: { name: string } }[] = [];
      const queue = [...names];
      // A kill each time so many more machines are made: spread over the work, however fast it goes.
      const killing = (async () => {
        for (let i = 0; i < kills; i++) {
          await until(() => (made.length >= ((i + 1) * machines) / (kills + 2) ? true : undefined), 120_000);
          await site.killOne(i);
        }
      })();
      await Promise.all(
        Array.from({ length: 6 }, async () => {
          for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
            const answer = await insist(
              site,
              "POST",
              "/api/v1/machines",
              `create-${name}`,
              machineBody(name),
            );
            assert.equal(answer.status, 201, answer.text);
            made.push(answer.json);
            const stopped = await insist(
              site,
              "POST",
              `/api/v1/machines/${answer.json.id}/stop`,
              `stop-${name}`,
            );
            assert.equal(stopped.status, 200, stopped.text);
          }
        }),
      );
      const doomed = made.slice(0, expiring);
      const edges = systemEdges();
      const store = await openStore(postgres.url, edges);
      // Also when an assertion fails: an open store keeps the process alive.
      await using _closed = { [Symbol.asyncDispose]: () => store.close() };
      await killing;
      // One more while the expiries are under way.
      const lastKill = site.killOne(kills);
      await store.txn({
        success: doomed.map(({ id }) => ({
          type: "put",
          key: keys.expiry(timeKey(1), "default", id),
          value: "null",
        })),
      });
      await lastKill;

      const wanted = names.filter((name) => !doomed.some(({ spec }) => spec.name === name));
      for (const replica of site.replicas) {
        let unsettled = "";
        const listed = await until(async () => {
          const { items } = (await call(replica.url, "GET", "/api/v1/machines?limit=500")).json;
          const settled = items.every(
            (m: { operation?: unknown; state: string }) => !m.operation && m.state === "stopped",
          );
          unsettled = JSON.stringify(
            items.filter((m: { operation?: unknown; state: string }) => m.operation || m.state !== "stopped"),
          );
          return settled && items.length === wanted.length ? items : undefined;
        }, 60_000).catch((error: unknown) => {
          throw new Error(`${replica.url} never settled: ${unsettled}`, { cause: error });
        });
        assert.deepEqual(listed.map((m: { spec: { name: string } }) => m.spec.name).sort(), wanted);
      }
      const histories = await Promise.all(
        site.replicas.map(async ({ url }) => (await call(url, "GET", "/api/v1/events?limit=500")).json.items),
      );
      assert.deepEqual(histories[1], histories[0], "every replica tells the same history");
      assert.deepEqual(histories[2], histories[0], "every replica tells the same history");
      const count = (type: string): Map<string, number> => {
        const counts = new Map<string, number>();
        for (const event of histories[0]) {
          if (event.type === type)
            counts.set(event.data.machineId, (counts.get(event.data.machineId) ?? 0) + 1);
        }
        return counts;
      };
      const created = count("io.kryton.machine.created");
      assert.equal(created.size, machines);
      assert.deepEqual([...new Set(created.values())], [1], "each creation is told once");
      const expired = count("io.kryton.machine.expired");
      assert.equal(expired.size, expiring);
      assert.deepEqual([...new Set(expired.values())], [1], "each expiry happens once");
      const { count: guests } = await store.range({
        key: keys.demoGuest(),
        end: "/kryton/demo/guests0",
        countOnly: true,
      });
      assert.equal(guests, wanted.length, "no guest is left over or doubled");
      await store.close();

      const all = histories[0].map((event: { id: string }) => event.id).reverse();
      await until(() => (streamed.includes(all.at(-1)) ? true : undefined), 20_000);
      done = true;
      await following;
      assert.equal(new Set(streamed).size, streamed.length, "the stream tells nothing twice");
      assert.deepEqual(
        streamed,
        all.slice(all.indexOf(streamed[0])),
        "the stream tells everything, in order",
      );
    } finally {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
);
