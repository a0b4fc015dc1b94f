import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, seededRandom, systemEdges, type Random } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage/client";
import { machineBody, start, until, type Answered } from "../kryton.fixture.ts";

/** A store that loses one transaction in five: half of them before they happen, half after. */
function unreliable(store: Store, random: Random, on: () => boolean): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === "txn") {
        return async (...args: Parameters<Store["txn"]>) => {
          const dice = on() ? random.float() : 1;
          const lost = new CodedError("unavailable", "the database connection was lost");
          if (dice < 0.1) throw lost;
          const result = await target.txn(...args);
          if (dice < 0.2) throw lost;
          return result;
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("a store that fails in the middle costs repeats, never a machine, never a second one, never a 500", async () => {
  const edges = systemEdges();
  const store = await openStore("memory://", edges);
  let failing = false;
  const api = await start({ edges, store: unreliable(store, seededRandom(7), () => failing) });
  try {
    failing = true;
    const insist = (method: string, path: string, key: string, body?: unknown): Promise<Answered> =>
      until(async () => {
        const answer = await api.call(method, path, body, { "idempotency-key": key });
        assert.notEqual(answer.status, 500, answer.text);
        if (answer.status === 503) {
          assert.ok(answer.headers.get("retry-after"));
          return undefined;
        }
        return answer.status === 409 && /under way/.test(answer.text) ? undefined : answer;
      }, 30_000);
    const names = Array.from({ length: 25 }, (_, i) => `m${i}`);
    await Promise.all(
      names.map(async (name) => {
        const made = await insist("POST", "/api/v1/machines", name, machineBody(name));
        assert.equal(made.status, 201, made.text);
      }),
    );
    failing = false;
    const { items } = await until(async () => {
      const { json } = await api.call("GET", "/api/v1/machines");
      return json.items.every(
        (m: { state: string; operation?: unknown }) => m.state === "running" && !m.operation,
      )
        ? json
        : undefined;
    }, 30_000);
    assert.deepEqual(items.map((m: { spec: { name: string } }) => m.spec.name).sort(), [...names].sort());
    const events = (await api.call("GET", "/api/v1/events?type=io.kryton.machine.created&limit=500")).json
      .items;
    assert.equal(events.length, names.length, "each creation is told once");
    const { count } = await store.range({
      key: "/kryton/demo/guests/",
      end: "/kryton/demo/guests0",
      countOnly: true,
    });
    assert.equal(count, names.length, "no guest is left over");
    const left = await store.range({ key: "/kryton/work/", end: "/kryton/work0", countOnly: true });
    assert.equal(left.count, 0, "no claim and no queue entry is left");
  } finally {
    await api.stop();
    await store.close();
  }
});
