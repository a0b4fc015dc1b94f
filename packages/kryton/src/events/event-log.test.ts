import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import { openStore, type Store, type Watch } from "@kontinuum/storage/client";
import { hurried, until } from "../kryton.fixture.ts";
import { Change } from "../store/change.ts";
import { EventLog } from "./event-log.ts";

test("a log that loads again tells what it missed, once, and nothing that its window has left behind", async () => {
  const edges = { ...systemEdges(), clock: hurried };
  const store = await openStore("memory://", edges);
  const watches: Watch[] = [];
  const watched: Store = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const result: unknown = Reflect.apply(value, target, args);
        if (name === "watch") watches.push(result as Watch);
        return result;
      };
    },
  });
  const append = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n++) {
      await new Change().event({ type: "io.kryton.settings.updated", data: { n } }).commit(store, edges);
    }
  };
  // The store keeps more than the window does: the keeper removes from it now and then.
  const log = new EventLog(watched, edges, 8);
  const told: unknown[] = [];
  log.listen((events) => told.push(...events.map(({ event }) => event.data?.["n"])));
  const stop = new AbortController();
  const running = log.run(() => {}, stop.signal);
  await append(0, 30);
  await until(() => (told.length >= 30 ? true : undefined));
  watches[0]?.close();
  await append(30, 40);
  await until(() => (told.length >= 40 ? true : undefined));
  await until(() => (watches.length >= 2 ? true : undefined));
  await append(40, 41);
  await until(() => (told.includes(40) ? true : undefined));
  assert.deepEqual(
    told,
    Array.from({ length: 41 }, (_, n) => n),
  );
  assert.ok(log.window.length <= 9);
  assert.deepEqual(
    log.window.map(({ ordinal }) => ordinal),
    Array.from({ length: log.window.length }, (_, n) => log.next - log.window.length + n),
  );
  stop.abort();
  await running;
  await store.close();
});

test("a log that does not reach the store's newest revision in time says so and answers nothing", async () => {
  const edges = { ...systemEdges(), clock: hurried };
  const store = await openStore("memory://", edges);
  // As if the watch were held up: what it tells never reaches the revision that a read of the store gives.
  const ahead: Store = new Proxy(store, {
    get(target, name) {
      if (name === "revision") return async () => (await target.revision()) + 1_000;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const log = new EventLog(ahead, edges, 8);
  const stop = new AbortController();
  const running = log.run(() => {}, stop.signal);
  await assert.rejects(log.catchUp(), (error) => isCoded(error, "unavailable"));
  stop.abort();
  await running;
  await store.close();
});
