import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, systemEdges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage/client";
import { until } from "../kryton.fixture.ts";
import { Change } from "./change.ts";
import { keys } from "./keyspace.ts";
import { Leadership } from "./leadership.ts";
import { ReplicaSession } from "./session.ts";

const edges = systemEdges();

test("one replica leads at a time, another follows at once when it stops, and a deposed one can write nothing", async () => {
  const store = await openStore("memory://", edges);
  const stop = new AbortController();
  const log: string[] = [];
  let leading = 0;
  const member = (name: string) => {
    const session = new ReplicaSession(store, edges);
    const running = new Leadership(store, edges, session).run(
      "task",
      async (fence, signal) => {
        assert.equal(++leading, 1);
        log.push(name);
        await new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => resolve(), { once: true }),
        );
        leading--;
        const late = await new Change().fencedBy(fence).put("/late", name).commit(store, edges);
        assert.equal(late.succeeded, false, "a deposed leader wrote something");
      },
      stop.signal,
    );
    return { session, running };
  };
  const first = member("first");
  await until(() => (log.length === 1 ? true : undefined));
  const second = member("second");
  await first.session.stop();
  await until(() => (log.length === 2 ? true : undefined));
  assert.deepEqual(log, ["first", "second"]);
  await store.txn({ success: [{ type: "delete", key: keys.leader("task") }] });
  await until(() => (log.length === 3 ? true : undefined));
  // The last leader still holds its key when everything ends: give it up from outside first.
  await store.txn({ success: [{ type: "delete", key: keys.leader("task") }] });
  stop.abort();
  await Promise.all([first.running, second.running]);
  await second.session.stop();
  await store.close();
});

test("a leadership that the store granted without saying so is not lost for ever", async () => {
  const store = await openStore("memory://", edges);
  let lose = true;
  const forgetful: Store = new Proxy(store, {
    get(target, name) {
      if (name === "txn") {
        return async (...args: Parameters<Store["txn"]>) => {
          const result = await target.txn(...args);
          const asks = args[0].compare?.length === 1 && args[0].success?.some((op) => op.type === "put");
          if (asks && lose) {
            lose = false;
            throw new CodedError("unavailable", "the answer was lost");
          }
          return result;
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const session = new ReplicaSession(forgetful, edges);
  const stop = new AbortController();
  let led = false;
  const running = new Leadership(forgetful, edges, session).run(
    "task",
    (_, signal) => {
      led = true;
      return new Promise<void>((resolve) =>
        signal.addEventListener("abort", () => resolve(), { once: true }),
      );
    },
    stop.signal,
  );
  await until(() => (led ? true : undefined));
  assert.equal(lose, false);
  stop.abort();
  await running;
  await session.stop();
  await store.close();
});

test("a task that fails is over: what it left running hears of it before the task begins again", async () => {
  const store = await openStore("memory://", edges);
  const session = new ReplicaSession(store, edges);
  const stop = new AbortController();
  const begun: AbortSignal[] = [];
  const running = new Leadership(store, edges, session).run(
    "task",
    async (_, signal) => {
      assert.ok(begun.every(({ aborted }) => aborted));
      begun.push(signal);
      if (begun.length === 1) throw new CodedError("unavailable", "the store did not answer");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    },
    stop.signal,
  );
  await until(() => (begun.length === 2 ? true : undefined));
  assert.deepEqual(
    begun.map(({ aborted }) => aborted),
    [true, false],
  );
  stop.abort();
  await running;
  await session.stop();
  await store.close();
});
