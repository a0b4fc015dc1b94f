/**
 * The cache and its watchers over a real store: order, completeness, parking, and history that is gone.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { seededRandom, silentLog, systemClock, systemEdges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import type { StatusError } from "../status/status.ts";
import { decodeEntry, entryBytes, entryObject, type CacheEntry } from "./entry.ts";
import { ResourceCache } from "./resource-cache.ts";
import type { CacheEvent, ChangeType } from "./ring.ts";
import { Watcher, type WatchSink } from "./watcher.ts";

const prefix = "/registry/things/";
const thing = { namespaced: true, group: "", kind: "Thing" };
const decode = (kv: Parameters<typeof decodeEntry>[0]): CacheEntry =>
  decodeEntry(kv, prefix, thing, undefined);

let store: Store;
before(async () => {
  store = await openStore("memory://", systemEdges());
});
after(() => store.close());

function value(name: string, labels: Record<string, string> = {}, data = ""): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Thing",
    metadata: { name, namespace: "n", uid: name, labels },
    data,
  });
}

async function put(name: string, text: string = value(name)): Promise<number> {
  return (await store.txn({ success: [{ type: "put", key: `${prefix}n/${name}`, value: text }] })).revision;
}

async function remove(name: string): Promise<number> {
  return (await store.txn({ success: [{ type: "delete", key: `${prefix}n/${name}` }] })).revision;
}

function newCache(): ResourceCache {
  return new ResourceCache({ store, prefix, decode, clock: systemClock, log: silentLog });
}

/** A sink that takes what it is told to take. */
class Sink implements WatchSink {
  readonly seen: { type: ChangeType; revision: number; name: string }[] = [];
  room = Infinity;
  error: StatusError | undefined;
  ended = false;
  marks: number[] = [];
  watcher: Watcher | undefined;

  get writable(): boolean {
    return this.room > 0;
  }

  event(type: ChangeType, entry: CacheEntry, _event: CacheEvent | undefined): void {
    this.room--;
    this.seen.push({ type, revision: entry.revision, name: entry.name });
  }

  initialDone(revision: number): void {
    this.marks.push(revision);
  }

  bookmark(revision: number): void {
    this.marks.push(revision);
  }

  flush(): void {}

  end(error?: StatusError): void {
    this.ended = true;
    this.error = error;
  }

  take(count: number): void {
    this.room += count;
    this.watcher?.drained();
  }
}

/** A sink whose connection takes all it is handed at once, and so never says that it drained. */
class QuickSink extends Sink {
  override room = 3;

  override flush(): void {
    this.room = 3;
  }
}

function watch(
  cache: ResourceCache,
  sink: Sink,
  from: number,
  matches: (entry: CacheEntry) => boolean = () => true,
): Watcher {
  const watcher = new Watcher({ cache, store, decode, matches, sink, initial: [], from });
  sink.watcher = watcher;
  watcher.start();
  return watcher;
}

async function until(what: () => boolean): Promise<void> {
  for (let i = 0; i < 2000 && !what(); i++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(what());
}

test("a read after an acknowledged write sees it", async () => {
  const cache = newCache();
  for (let i = 0; i < 20; i++) {
    const revision = await put(`fresh-${i}`);
    await cache.fresh();
    assert.ok(cache.revision >= revision);
    assert.equal(cache.get(`${prefix}n/fresh-${i}`)?.revision, revision);
  }
  const keys = cache.list().map(({ key }) => key);
  assert.deepEqual(keys, [...keys].sort());
  await cache.close();
});

test("bytes are served as stored, with the version put in", async () => {
  const cache = newCache();
  const revision = await put("bytes", value("bytes", { a: "b" }, "x"));
  await cache.fresh();
  const entry = cache.get(`${prefix}n/bytes`);
  assert.ok(entry);
  assert.deepEqual(entryObject(entry), {
    apiVersion: "v1",
    kind: "Thing",
    metadata: {
      resourceVersion: String(revision),
      name: "bytes",
      namespace: "n",
      uid: "bytes",
      labels: { a: "b" },
    },
    data: "x",
  });
  assert.equal(JSON.parse(entryBytes(entry, 7).toString()).metadata.resourceVersion, "7");
  await cache.close();
});

test("bytes that are no object of the kind are marked, whatever they are", async () => {
  const cache = newCache();
  const broken = [
    "",
    "{",
    "[]",
    "null",
    '"x"',
    '{"apiVersion":"v1","kind":"Other","metadata":{"name":"broken","namespace":"n"}}',
    value("another"),
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"broken","namespace":"m"}}',
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"broken","namespace":"n","labels":{"a":1}}}',
    "\u0000\u00ff",
    "[".repeat(10_000),
  ];
  for (const text of broken) {
    await put("broken", text);
    await cache.fresh();
    assert.notEqual(cache.get(`${prefix}n/broken`)?.error, undefined, text.slice(0, 80));
  }
  await remove("broken");
  await cache.close();
});

test("every watcher sees every event once and in order, however slow it is", async () => {
  const random = seededRandom(42);
  const cache = newCache();
  await cache.load();
  const from = cache.revision;
  const sinks = [new Sink(), new Sink(), new Sink()];
  for (const [index, sink] of sinks.entries()) {
    if (index > 0) sink.room = index;
    watch(cache, sink, from);
  }
  const expected: string[] = [];
  const live = new Set<string>();
  for (let i = 0; i < 300; i++) {
    const name = `r${random.integer(10)}`;
    if (live.has(name) && random.integer(3) === 0) {
      expected.push(`DELETED ${name} ${await remove(name)}`);
      live.delete(name);
    } else {
      expected.push(`${live.has(name) ? "MODIFIED" : "ADDED"} ${name} ${await put(name)}`);
      live.add(name);
    }
    if (i % 7 === 0) for (const sink of sinks.slice(1)) sink.take(1 + random.integer(3));
  }
  const shown = (sink: Sink): string[] =>
    sink.seen.map(({ type, name, revision }) => `${type} ${name} ${revision}`);
  for (const sink of sinks) {
    sink.take(1000);
    await until(() => sink.seen.length >= expected.length);
    assert.deepEqual(shown(sink), expected);
  }
  await cache.close();
  for (const sink of sinks) assert.ok(sink.ended && sink.error === undefined);
});

test("a watch from before the cache began goes on out of the store's history", async () => {
  const from = await put("past");
  const revisions = [
    await put("past", value("past", { a: "b" })),
    await put("past", value("past", {})),
    await remove("past"),
  ];
  const cache = newCache();
  await cache.load();
  const sink = new Sink();
  watch(cache, sink, from, ({ labels }) => labels["a"] === "b");
  await until(() => sink.seen.length === 2);
  assert.deepEqual(
    sink.seen.map(({ type, revision }) => [type, revision]),
    [
      ["ADDED", revisions[0]],
      ["DELETED", revisions[1]],
    ],
  );
  const next = await put("past", value("past", { a: "b" }));
  await until(() => sink.seen.length === 3);
  assert.equal(sink.seen[2]?.revision, next);
  await cache.close();
});

test("history that is gone is said so, before any event", async () => {
  const from = await put("gone");
  for (let i = 0; i < 5; i++) await put("gone", value("gone", {}, String(i)));
  await store.compact(await store.revision());
  const cache = newCache();
  await cache.load();
  const sink = new Sink();
  watch(cache, sink, from);
  await until(() => sink.ended);
  assert.equal(sink.error?.code, 410);
  assert.equal(sink.error?.reason, "Expired");
  assert.equal(sink.seen.length, 0);
  await cache.close();
});

test("a bookmark never promises more than was sent", async () => {
  const cache = newCache();
  await cache.load();
  const sink = new Sink();
  sink.room = 1;
  const watcher = watch(cache, sink, cache.revision);
  const first = await put("mark");
  const second = await put("mark");
  await cache.waitFor(second);
  assert.equal(sink.seen.length, 1);
  assert.equal(watcher.bookmark(), undefined);
  assert.ok(!sink.marks.includes(second) && sink.seen[0]?.revision === first);
  sink.take(10);
  assert.ok((watcher.bookmark() ?? 0) >= second);
  await cache.close();
});

test("a client that takes everything at once is never left waiting: neither for its initial state nor for history", async () => {
  const cache = newCache();
  const first = await put("quick-0");
  for (let i = 1; i < 20; i++) await put(`quick-${i}`);
  await cache.fresh();
  const initial = cache.list().filter(({ name }) => name.startsWith("quick-"));
  const beginning = new QuickSink();
  new Watcher({
    cache,
    store,
    decode,
    matches: () => true,
    sink: beginning,
    initial,
    from: cache.revision,
  }).start();
  await until(() => beginning.marks.length === 1);
  assert.equal(beginning.seen.length, 20);
  // Another cache knows nothing of what was before it: that comes out of the store's history.
  const later = newCache();
  await later.load();
  const behind = new QuickSink();
  const watcher = watch(later, behind, first - 1);
  await until(() => behind.seen.length === 20);
  watcher.close();
  await cache.close();
  await later.close();
});
