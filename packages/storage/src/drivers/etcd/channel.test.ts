/**
 * One caller gives up the connection that others wait on: calls are still answered, streams hear that it was lost, which may
 * be tried again, and nobody ever hears that somebody cancelled them. A server that speaks the real protocol holds back its
 * answers.
 */
import assert from "node:assert/strict";
import http2, { type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import { reasonOf } from "../../faults.ts";
import { fromWire } from "../../etcd/status-text.ts";
import * as rpc from "../../gen/etcd/etcdserverpb/rpc_pb.ts";
import { Channel } from "./channel.ts";
import { connectEtcd } from "./etcd-store.ts";
import { openRequest } from "./overview.ts";

const header = { clusterId: 1n, memberId: 1n, revision: 7n, raftTerm: 1n };
const waiters = 8;

/** Holds every answer back until `open`; a read of `break` says that there is no leader. */
class HoldingServer {
  /** How many calls wait for an answer. */
  held = 0;
  port = 0;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #server = http2.createServer(
    connectNodeAdapter({
      grpc: true,
      connect: false,
      grpcWeb: false,
      routes: (router) => this.#routes(router),
    }),
  );
  #open = false;
  #noticed: (() => void)[] = [];
  #opened: (() => void)[] = [];

  async start(): Promise<void> {
    this.#server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
    });
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    this.port = (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((done) => this.#server.close(done));
  }

  /** Resolves when so many calls wait for an answer. */
  async holds(count: number): Promise<void> {
    while (this.held < count) await new Promise<void>((noticed) => this.#noticed.push(noticed));
  }

  /** Answers everything that waits, and what comes from now on. */
  answer(): void {
    this.#open = true;
    for (const opened of this.#opened.splice(0)) opened();
  }

  /** Breaks all connections. */
  cut(): void {
    for (const session of this.#sessions) session.destroy();
  }

  async #hold(signal: AbortSignal): Promise<void> {
    this.held++;
    for (const noticed of this.#noticed.splice(0)) noticed();
    await new Promise<void>((go) => {
      this.#opened.push(go);
      signal.addEventListener("abort", () => go(), { once: true });
    });
  }

  #routes(router: ConnectRouter): void {
    router.service(rpc.KV, {
      range: async ({ key }, { signal }) => {
        if (Buffer.from(key).toString() === "break")
          throw new ConnectError("etcdserver: no leader", Code.Unavailable);
        if (!this.#open) await this.#hold(signal);
        return create(rpc.RangeResponseSchema, { header, count: 1n });
      },
    });
    router.service(rpc.Maintenance, {
      status: () => create(rpc.StatusResponseSchema, { header, version: "3.5.16" }),
    });
    const hold = (signal: AbortSignal): Promise<void> => this.#hold(signal);
    const isOpen = (): boolean => this.#open;
    router.service(rpc.Watch, {
      async *watch(requests, { signal }) {
        await requests[Symbol.asyncIterator]().next();
        yield create(rpc.WatchResponseSchema, { header, created: true });
        if (isOpen())
          yield create(rpc.WatchResponseSchema, {
            header,
            events: [
              { kv: { key: Buffer.from("k"), value: Buffer.from("v"), modRevision: 8n, version: 1n } },
            ],
          });
        await hold(signal);
      },
    });
  }
}

let server: HoldingServer;
beforeEach(async () => {
  server = new HoldingServer();
  await server.start();
});
afterEach(() => server.stop());

const target = (): { endpoints: string[] } => ({ endpoints: [`127.0.0.1:${server.port}`] });
const read = (channel: Channel, key: string): Promise<unknown> =>
  channel.call((clients) => clients.kv.range({ key: Buffer.from(key) }));
/** How each of them failed. */
const reasons = async (calls: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(calls)).map((call) =>
    call.status === "rejected" ? (reasonOf(call.reason) ?? call.reason) : "answered",
  );

/** Streams and calls that wait, and how they end. */
async function waitOn(channel: Channel): Promise<{ calls: Promise<unknown>[]; streams: Promise<unknown>[] }> {
  const { clients } = await channel.stream();
  const stop = new AbortController();
  const streams = Array.from({ length: waiters }, async () => {
    const request = create(rpc.WatchCreateRequestSchema, { key: Buffer.from("k") });
    try {
      for await (const response of clients.watch.watch(openRequest(request, stop.signal))) void response;
    } catch (error) {
      throw fromWire(error);
    } finally {
      stop.abort();
    }
  });
  const calls = Array.from({ length: waiters }, (_, i) => read(channel, `k${i}`));
  await server.holds(2 * waiters);
  return { calls, streams };
}

test("a caller that gives up its endpoint ends nobody else's call, and streams hear that it was lost", async () => {
  const channel = new Channel(target());
  const { calls, streams } = await waitOn(channel);
  assert.deepEqual(await reasons([read(channel, "break")]), ["lost"]);
  assert.deepEqual(await reasons(streams), Array(waiters).fill("lost"));
  server.answer();
  assert.deepEqual(await reasons(calls), Array(waiters).fill("answered"));
  channel.close();
});

test("a connection that breaks is lost for all calls and streams on it", async () => {
  const channel = new Channel(target());
  const { calls, streams } = await waitOn(channel);
  server.cut();
  assert.deepEqual(await reasons([...calls, ...streams]), Array(2 * waiters).fill("lost"));
  channel.close();
});

test("calls that wait when the store is closed hear that, on a connection given up before as well", async () => {
  const channel = new Channel(target());
  const first = Array.from({ length: waiters }, (_, i) => read(channel, `k${i}`));
  await server.holds(waiters);
  assert.deepEqual(await reasons([read(channel, "break")]), ["lost"]);
  const second = Array.from({ length: waiters }, (_, i) => read(channel, `k${i}`));
  await server.holds(2 * waiters);
  channel.close();
  assert.deepEqual(await reasons([...first, ...second]), Array(2 * waiters).fill("closed"));
  assert.deepEqual(await reasons([read(channel, "late")]), ["closed"]);
});

test("a store's reads and watches go on by themselves after another caller gave the endpoint up", async () => {
  const store = connectEtcd(target(), systemEdges());
  const watch = store.watch({ key: "k" });
  await watch.ready;
  const events = watch[Symbol.asyncIterator]();
  const next = events.next();
  const reads = Array.from({ length: waiters }, (_, i) => store.range({ key: `k${i}` }));
  await server.holds(waiters + 1);
  // Tried as often as any read, each time on a new connection.
  await assert.rejects(store.range({ key: "break" }), (error) => reasonOf(error) === "lost");
  server.answer();
  for (const { count } of await Promise.all(reads)) assert.equal(count, 1);
  assert.equal((await next).value?.events[0]?.kv.modRevision, 8);
  const waiting = events.next();
  await store.close();
  await assert.rejects(waiting, (error) => reasonOf(error) === "closed");
});
