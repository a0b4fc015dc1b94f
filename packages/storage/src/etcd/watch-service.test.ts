/** The watch stream as a client of etcd sees it: many watches on one stream, fragments, progress, filters, refusals. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import type { Store } from "../contract.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import { openStore } from "../open.ts";
import { Outbox } from "./outbox.ts";
import { serveEtcd, type EtcdServer } from "./services.ts";

const { NOPUT, NODELETE } = rpc.WatchCreateRequest_FilterType;
const bytes = (text: string): Buffer => Buffer.from(text);

let store: Store;
let server: EtcdServer;
let sessions: Http2SessionManager;
let requests: Outbox<rpc.WatchRequest>;
let responses: AsyncIterator<rpc.WatchResponse>;

beforeEach(async () => {
  store = await openStore("memory://", systemEdges(), { retention: { intervalMs: 0 } });
  server = await serveEtcd(store);
  const baseUrl = `http://127.0.0.1:${server.port}`;
  sessions = new Http2SessionManager(baseUrl);
  const client = createClient(rpc.Watch, createGrpcTransport({ baseUrl, sessionManager: sessions }));
  requests = new Outbox(100);
  responses = client.watch(requests)[Symbol.asyncIterator]();
});
afterEach(async () => {
  requests.end();
  sessions.abort();
  await server.close();
  await store.close();
});

type Ask = MessageInitShape<typeof rpc.WatchRequestSchema>["requestUnion"];
const ask = (requestUnion: NonNullable<Ask>): Promise<void> =>
  requests.put(create(rpc.WatchRequestSchema, { requestUnion }));
const watch = (value: MessageInitShape<typeof rpc.WatchCreateRequestSchema>): Promise<void> =>
  ask({ case: "createRequest", value });
const next = async (): Promise<rpc.WatchResponse> => {
  const { value, done } = await responses.next();
  if (done === true) throw new Error("the stream ended");
  return value;
};
const put = (key: string, value: string) => store.txn({ success: [{ type: "put", key, value }] });
const keysIn = (response: rpc.WatchResponse): string[] =>
  response.events.map(({ kv }) => Buffer.from(kv?.key ?? []).toString());

test("fragments: a revision larger than a message comes in parts, whole only at the last one, and in one without", async () => {
  const value = "x".repeat(400_000);
  const keys = Array.from({ length: 8 }, (_, i) => `/k/${i}`);
  for (const key of keys.slice(0, 4)) await put(key, value);
  for (const key of keys.slice(4)) await put(key, value);
  for (const fragment of [true, false]) {
    await watch({ key: bytes("/k/"), rangeEnd: bytes("/k0"), startRevision: 2n, fragment });
    const { watchId, created } = await next();
    assert.equal(created, true);
    const parts: rpc.WatchResponse[] = [];
    while (parts.flatMap(keysIn).length < keys.length) parts.push(await next());
    assert.deepEqual(parts.flatMap(keysIn), keys);
    assert.ok(parts.every((part) => part.watchId === watchId));
    assert.equal(parts.at(-1)?.fragment, false);
    assert.equal(
      parts.some((part) => part.fragment),
      fragment,
    );
    await ask({ case: "cancelRequest", value: { watchId } });
    assert.equal((await next()).canceled, true);
  }
});

test("many watches on one stream: each has its own events, and cancelling one leaves the others", async () => {
  for (const [id, key] of [
    [5n, "/a"],
    [6n, "/b"],
  ] as const) {
    await watch({ key: bytes(key), watchId: id });
    assert.deepEqual([(await next()).watchId], [id]);
  }
  await watch({ key: bytes("/c"), watchId: 6n });
  const refused = await next();
  assert.deepEqual(
    [refused.canceled, refused.cancelReason],
    [true, "mvcc: duplicate watch ID provided on the WatchStream"],
  );
  await put("/b", "1");
  assert.equal((await next()).watchId, 6n);
  await ask({ case: "cancelRequest", value: { watchId: 6n } });
  assert.deepEqual([(await next()).watchId], [6n]);
  await put("/b", "2");
  await put("/a", "1");
  const last = await next();
  assert.deepEqual([last.watchId, ...keysIn(last)], [5n, "/a"]);
});

test("progress: the answer comes after everything up to it, for all watches of the stream", async () => {
  await put("/a", "1");
  await watch({ key: bytes("/a"), startRevision: 1n });
  await watch({ key: bytes("/nothing") });
  await ask({ case: "progressRequest", value: {} });
  const seen: string[] = [];
  for (;;) {
    const response = await next();
    seen.push(...keysIn(response));
    if (response.created || response.events.length > 0) continue;
    assert.equal(response.watchId, -1n);
    assert.ok((response.header?.revision ?? 0n) >= 2n);
    break;
  }
  assert.deepEqual(seen, ["/a"]);
});

test("filters and previous pairs", async () => {
  await put("/a", "1");
  await put("/a", "2");
  await store.txn({ success: [{ type: "delete", key: "/a" }] });
  await watch({ key: bytes("/a"), startRevision: 2n, filters: [NOPUT], prevKv: true });
  await next();
  const [deleted] = (await next()).events;
  assert.deepEqual(
    [deleted?.type, Buffer.from(deleted?.prevKv?.value ?? []).toString(), deleted?.kv?.modRevision],
    [1, "2", 4n],
  );
  await watch({ key: bytes("/a"), startRevision: 2n, filters: [NODELETE] });
  await next();
  assert.deepEqual(
    (await next()).events.map(({ kv }) => kv?.modRevision),
    [2n, 3n],
  );
});

test("a start below the compaction mark is refused with the mark, an empty range with its reason", async () => {
  for (const value of ["1", "2", "3"]) await put("/a", value);
  await store.compact(4);
  await watch({ key: bytes("/a"), startRevision: 2n });
  const first = await next();
  const refused = first.canceled ? first : await next();
  assert.deepEqual([refused.canceled, refused.compactRevision], [true, 4n]);
  await watch({ key: bytes("/b"), rangeEnd: bytes("/a") });
  const empty = await next();
  assert.deepEqual([empty.canceled, empty.cancelReason], [true, "mvcc: watcher range is empty"]);
});
