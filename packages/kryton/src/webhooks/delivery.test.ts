import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, OutboundClient, systemEdges, type Edges } from "@kontinuum/std";
import { openStore, prefixRange, type Store } from "@kontinuum/storage/client";
import { EventLog } from "../events/event-log.ts";
import { hurriedSleep, until } from "../kryton.fixture.ts";
import { Change, type Fence } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { Delivery, maxDeadLetters } from "./delivery.ts";
import { Receiver } from "./receiver.fixture.ts";
import { cursorSchema, freshCursor, type Cursor } from "./sink.ts";

/** One delivery to a receiver, led by this test. */
class Bench implements AsyncDisposable {
  readonly edges: Edges = { ...systemEdges(), clock: hurriedSleep };
  readonly receiver: Receiver;
  readonly store: Store;
  /** Whether the store refuses to keep dead letters. */
  refuses = false;
  refused = 0;
  attempts = 0;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>[] = [];

  private constructor(receiver: Receiver, store: Store) {
    this.receiver = receiver;
    this.store = store;
  }

  static async open(): Promise<Bench> {
    const receiver = await Receiver.open();
    return new Bench(receiver, await openStore("memory://", systemEdges()));
  }

  /** Begins to deliver what happens from now on. */
  async deliver(): Promise<void> {
    const { edges } = this;
    const store = this.#failing();
    const log = new EventLog(store, edges);
    await new Promise<void>((ready) => this.#running.push(log.run(ready, this.#stop.signal)));
    const key = keys.leader("webhook-sink");
    const place = new Change().put(key, {}).put(keys.webhook("sink"), {});
    await place.put(keys.webhookCursor("sink"), freshCursor("")).commit(store, edges);
    const { kvs } = await store.range({ key });
    const fence: Fence = { key, revision: kvs[0]?.createRevision ?? 0 };
    const outbound = new OutboundClient(edges.network, edges.clock, { allow: ["127.0.0.0/8"] });
    const options = { store, edges, log, outbound, onAttempt: () => void this.attempts++ };
    const destination = { id: "sink", url: this.receiver.url, secret: "", wants: () => true };
    this.#running.push(new Delivery(options, destination, fence, this.#stop.signal).run());
  }

  /** Appends an event about a machine. */
  async happen(name: string): Promise<void> {
    const draft = { type: "io.kryton.machine.started", subject: `machines/${name}`, data: { name } } as const;
    await new Change().event(draft).commit(this.store, this.edges);
  }

  async cursor(): Promise<Cursor | undefined> {
    const documents = new Documents(this.store, this.edges.log);
    return (await documents.get(keys.webhookCursor("sink"), cursorSchema))?.value;
  }

  async letters(): Promise<string[]> {
    const { kvs } = await this.store.range({ ...prefixRange(keys.deadLetter("sink")), keysOnly: true });
    return kvs.map(({ key }) => key.toString("utf8").slice(keys.deadLetter("sink").length));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.store.close();
    await this.receiver[Symbol.asyncDispose]();
  }

  #failing(): Store {
    return new Proxy(this.store, {
      get: (target, name) => {
        if (name === "txn") {
          return (...args: Parameters<Store["txn"]>) => {
            const letter = args[0].success?.some(
              (op) => op.type === "put" && String(op.key).startsWith(keys.deadLetter("sink")),
            );
            if (!letter || !this.refuses) return target.txn(...args);
            this.refused++;
            throw new CodedError("unavailable", "the store is full");
          };
        }
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }
}

test("the position does not move past an event before its dead letter is kept", async () => {
  await using bench = await Bench.open();
  bench.receiver.answer = () => 500;
  bench.refuses = true;
  await bench.deliver();
  await bench.happen("lost");
  await until(() => (bench.refused > 2 ? true : undefined), 60_000);
  assert.equal((await bench.cursor())?.eventId, "");
  assert.deepEqual(await bench.letters(), []);
  bench.refuses = false;
  const [letter] = await until(async () => {
    const kept = await bench.letters();
    return kept.length > 0 ? kept : undefined;
  });
  await until(async () => ((await bench.cursor())?.eventId === letter ? true : undefined));
  assert.equal((await bench.cursor())?.deadLetters, 1);
});

test("the newest dead letters of a sink are kept, and no more than the limit", async () => {
  await using bench = await Bench.open();
  bench.receiver.answer = () => 500;
  const old = Array.from({ length: maxDeadLetters }, (_, i) => `00000000-${String(i).padStart(4, "0")}`);
  for (const id of old)
    await new Change().put(keys.deadLetter("sink", id), {}).commit(bench.store, bench.edges);
  await bench.deliver();
  for (const name of ["a", "b"]) await bench.happen(name);
  await until(async () => ((await bench.cursor())?.deadLetters === 2 ? true : undefined), 60_000);
  const kept = await bench.letters();
  assert.equal(kept.length, maxDeadLetters);
  assert.deepEqual(kept.slice(0, -2), old.slice(2));
});

test("a replica that still delivers to a removed sink leaves nothing of it behind", async () => {
  await using bench = await Bench.open();
  await bench.deliver();
  await bench.happen("a");
  await until(async () => ((await bench.cursor())?.delivered === 1 ? true : undefined));
  await new Change()
    .delete(keys.webhook("sink"))
    .delete(keys.webhookCursor("sink"))
    .commit(bench.store, bench.edges);
  await bench.happen("b");
  await until(() => (bench.attempts === 2 ? true : undefined));
  await bench.stop();
  assert.equal(await bench.cursor(), undefined);
});

test("what was delivered before an orderly end is not delivered again", async () => {
  await using bench = await Bench.open();
  await bench.deliver();
  await bench.happen("a");
  await until(() => (bench.receiver.names().includes("a") ? true : undefined));
  await until(() => (bench.attempts === 1 ? true : undefined));
  await bench.stop();
  const { kvs } = await bench.store.range({ ...prefixRange(keys.event()), keysOnly: true });
  const [event] = kvs.map(({ key }) => key.toString("utf8").slice(keys.event().length));
  assert.equal((await bench.cursor())?.eventId, event);
});
