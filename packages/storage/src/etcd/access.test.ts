/** What a restricted caller can and cannot do through the face. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { CodedError, isCoded, SimulatedClock, systemEdges, type ErrorCode } from "@kontinuum/std";
import { prefixRange, type Compare, type Store } from "../contract.ts";
import { connectEtcd } from "../drivers/etcd/etcd-store.ts";
import {
  Lease,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveRequest,
} from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import { openStore } from "../open.ts";
import type { EtcdAccess, EtcdWrite } from "./access.ts";
import { serveEtcd, type EtcdServer } from "./services.ts";

let store: Store;
let server: EtcdServer;
let zone: Store;
let writes: string[];
let revoke: AbortController;

/** A zone that sees `/zone/` and what is marked public, and writes `/zone/` values that begin with "ok". */
const zoneAccess = (): EtcdAccess => ({
  canRead: (kv) => kv.key.toString().startsWith("/zone/") || kv.value.toString().startsWith("public"),
  checkWrite: ({ key, value, previous }: EtcdWrite) => {
    writes.push(`${key.toString()}: ${previous?.value.toString() ?? "-"} -> ${value?.toString() ?? "-"}`);
    if (!key.toString().startsWith("/zone/")) throw new CodedError("permission_denied", "not yours");
    if (value && !value.toString().startsWith("ok")) throw new CodedError("permission_denied", "not ok");
  },
  checkLease: (action, id) => {
    if (action === "list" || id === 666n) throw new CodedError("permission_denied", "not your lease");
  },
  signal: revoke.signal,
});

beforeEach(async () => {
  writes = [];
  revoke = new AbortController();
  store = await openStore("memory://", systemEdges({ clock: new SimulatedClock() }));
  server = await serveEtcd(store, {
    authorize: ({ headers }) => {
      if (headers.get("authorization") === "Bearer hub") return {};
      if (headers.get("authorization") === "Bearer zone" && !revoke.signal.aborted) return zoneAccess();
      throw new CodedError("unauthenticated", "unknown token");
    },
  });
  zone = connect("zone");
  for (const [key, value] of [
    ["/a", "private"],
    ["/b", "public b"],
    ["/zone/1", "ok 1"],
    ["/zone/2", "ok 2"],
    ["/z", "private"],
  ])
    await store.txn({ success: [{ type: "put", key: key ?? "", value: value ?? "" }] });
});
afterEach(async () => {
  await zone.close();
  await server.close();
  await store.close();
});

const asZone: Interceptor = (next) => (request) => {
  request.header.set("authorization", "Bearer zone");
  return next(request);
};

/** One request on a stream that stays open. */
async function* keepAlives(ID: bigint): AsyncGenerator<LeaseKeepAliveRequest> {
  yield create(LeaseKeepAliveRequestSchema, { ID });
  await new Promise(() => {});
}

function connect(token: string): Store {
  return connectEtcd(
    { endpoints: [`127.0.0.1:${server.port}`], headers: async () => ({ authorization: `Bearer ${token}` }) },
    systemEdges(),
  );
}

async function denied(work: Promise<unknown>, code: ErrorCode = "permission_denied"): Promise<void> {
  await assert.rejects(work, (error) => isCoded(error, code) || assert.fail(String(error)));
}

const names = (result: { kvs: readonly { key: Buffer }[] }): string =>
  result.kvs.map((kv) => kv.key.toString()).join();

test("reads are filtered, revisions kept, only what is visible counted", async () => {
  const all = await zone.range(prefixRange("/"));
  assert.equal(names(all), "/b,/zone/1,/zone/2");
  assert.deepEqual([all.count, all.more, all.revision], [3, false, await store.revision()]);
  const page = await zone.range({ ...prefixRange("/"), limit: 2 });
  assert.deepEqual([names(page), page.count, page.more], ["/b,/zone/1", 3, true]);
  const back = await zone.range({ ...prefixRange("/"), limit: 2, sort: { by: "key", descending: true } });
  assert.equal(names(back), "/zone/2,/zone/1");
  assert.equal((await zone.range({ ...prefixRange("/"), countOnly: true })).count, 3);
  assert.equal((await zone.range({ key: "/a" })).count, 0);
  const inside = await zone.txn({ success: [{ type: "range", ...prefixRange("/"), limit: 1 }] });
  const result = inside.results[0];
  assert.ok(result?.type === "range");
  assert.deepEqual([names(result.range), result.range.count, result.range.more], ["/b", 3, true]);
});

test("writes are checked with the pair that they replace, in every branch", async () => {
  await zone.txn({ success: [{ type: "put", key: "/zone/1", value: "ok new" }] });
  assert.deepEqual(writes, ["/zone/1: ok 1 -> ok new"]);
  await denied(zone.txn({ success: [{ type: "put", key: "/a", value: "ok" }] }));
  await denied(zone.txn({ success: [{ type: "put", key: "/zone/1", value: "bad" }] }));
  await denied(zone.txn({ success: [], failure: [{ type: "put", key: "/a", value: "ok" }] }));
  await denied(zone.txn({ success: [{ type: "txn", success: [{ type: "delete", key: "/a" }] }] }));
  await denied(zone.txn({ success: [{ type: "delete", ...prefixRange("/") }] }));
  assert.equal((await store.range(prefixRange("/"))).count, 5);
  await zone.txn({ success: [{ type: "delete", ...prefixRange("/zone/") }] });
  assert.equal((await store.range(prefixRange("/"))).count, 3);
});

test("a delete of a range is checked whatever its size, and so are transactions as large as they may be", async () => {
  const key = (i: number): string => `/zone/many/${String(i).padStart(4, "0")}`;
  for (let i = 0; i < 1_000; i += 128)
    await zone.txn({
      compare: [{ key: "/zone/1", target: "version", result: "greater", operand: 0 }],
      success: Array.from({ length: 128 }, (_, j) => ({ type: "put", key: key(i + j), value: "ok" })),
      failure: Array.from({ length: 128 }, (_, j) => ({ type: "put", key: key(5_000 + j), value: "ok" })),
    });
  writes.length = 0;
  const { results } = await zone.txn({ success: [{ type: "delete", ...prefixRange("/zone/many/") }] });
  assert.deepEqual(results, [{ type: "delete", deleted: 1_024, prev: [] }]);
  assert.equal(writes.length, 1_024);
  assert.equal((await store.range(prefixRange("/zone/"))).count, 2);
});

test("a check that waits is repeated when the pair changed meanwhile", async () => {
  await server.close();
  let raced = false;
  server = await serveEtcd(store, {
    authorize: () => ({
      checkWrite: async ({ previous }) => {
        if (previous?.value.toString() === "frozen") throw new CodedError("permission_denied", "frozen");
        if (raced) return;
        raced = true;
        await store.txn({ success: [{ type: "put", key: "/zone/1", value: "frozen" }] });
      },
    }),
  });
  const other = connect("any");
  await denied(other.txn({ success: [{ type: "put", key: "/zone/1", value: "stolen" }] }));
  assert.equal((await store.range({ key: "/zone/1" })).kvs[0]?.value.toString(), "frozen");
  await other.close();
});

test("conditions and previous pairs tell nothing about what may not be read", async () => {
  // A key that may not be read compares as one that does not exist, whatever is asked of it.
  for (const key of ["/a", "/never-made"]) {
    const holds = async (compare: Compare): Promise<boolean> =>
      (await zone.txn({ compare: [compare], success: [] })).succeeded;
    assert.equal(await holds({ key, target: "value", operand: "private", result: "equal" }), false, key);
    assert.equal(await holds({ key, target: "version", operand: 0, result: "equal" }), true, key);
    assert.equal(await holds({ key, target: "create", operand: 0, result: "greater" }), false, key);
  }
  const seen = await zone.txn({
    compare: [{ key: "/b", target: "value", operand: "public b", result: "equal" }],
  });
  assert.equal(seen.succeeded, true);
  const { results } = await zone.txn({
    success: [{ type: "put", key: "/zone/1", value: "ok", prevKv: true }],
  });
  assert.ok(results[0]?.type === "put" && results[0].prev?.value.toString() === "ok 1");
});

test("watches are filtered, and what leaves one's sight is deleted there", async () => {
  const watch = zone.watch({ ...prefixRange("/"), prevKv: true });
  await watch.ready;
  const put = (key: string, value: string) => store.txn({ success: [{ type: "put", key, value }] });
  await put("/a", "still private");
  await put("/b", "private now");
  await put("/c", "private");
  await put("/c", "public c");
  await store.txn({ success: [{ type: "delete", key: "/a" }] });
  await store.txn({ success: [{ type: "delete", key: "/c" }] });
  const seen: string[] = [];
  for await (const { events } of watch) {
    for (const { type, kv, prev } of events)
      seen.push(`${type} ${kv.key.toString()} ${kv.value.toString()}|${prev?.value.toString() ?? ""}`);
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, ["delete /b |public b", "put /c public c|", "delete /c |public c"]);
});

test("operators' calls, foreign leases and unknown callers are refused", async () => {
  await denied(zone.compact(2));
  await denied(zone.leaseRevoke(666n));
  await denied(zone.leaseKeepAlive(666n));
  await denied(zone.leases());
  await denied(zone.txn({ success: [{ type: "put", key: "/zone/1", value: "ok", lease: 666n }] }));
  const stranger = connect("nobody");
  await denied(stranger.range({ key: "/b" }), "unauthenticated");
  const watch = stranger.watch({ key: "/b" });
  await denied(watch.ready, "unauthenticated");
  await stranger.close();
  const hub = connect("hub");
  await hub.compact(2);
  await hub.close();
});

test("a revoked identity's streams are cut", async () => {
  const watch = zone.watch(prefixRange("/zone/"));
  await watch.ready;
  const next = watch[Symbol.asyncIterator]().next();
  const { id } = await zone.leaseGrant(100);
  const client = createClient(Lease, createGrpcTransport({ baseUrl: server.url, interceptors: [asZone] }));
  const alive = client.leaseKeepAlive(keepAlives(id))[Symbol.asyncIterator]();
  assert.equal((await alive.next()).value?.TTL, 100n);
  const more = alive.next();
  more.catch(() => {});
  revoke.abort();
  await denied(next, "unauthenticated");
  await assert.rejects(more, (error) => error instanceof ConnectError && error.code === Code.Unauthenticated);
  await denied(zone.range({ key: "/b" }), "unauthenticated");
});
