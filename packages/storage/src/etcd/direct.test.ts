/** Direct calls and streams: what the wire may carry, on both sides. */
import assert from "node:assert/strict";
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { after, before, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import type { Store } from "../contract.ts";
import { directTransport } from "../drivers/etcd/direct-transport.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import { openStore } from "../open.ts";
import { serveEtcd, type EtcdServer } from "./services.ts";
import { framed, FrameSplitter } from "./frames.ts";

interface Answer {
  readonly status: string;
  readonly text: string;
  readonly body: Buffer;
}

/** Sends a body as it is. */
async function send(
  session: http2.ClientHttp2Session,
  method: string,
  body: Buffer,
  headers: http2.OutgoingHttpHeaders = {},
): Promise<Answer> {
  const stream = session.request({
    ":method": "POST",
    ":path": `/etcdserverpb.KV/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  let last: http2.IncomingHttpHeaders = {};
  stream.on("response", (received) => (last = { ...last, ...received }));
  stream.on("trailers", (received) => (last = { ...last, ...received }));
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.end(body);
  await new Promise<void>((resolve, reject) => stream.on("close", resolve).on("error", reject));
  const status = String(last["grpc-status"]);
  return {
    status,
    text: decodeURIComponent(String(last["grpc-message"] ?? "")),
    body: Buffer.concat(chunks),
  };
}

test("messages are found wherever the chunks are cut", () => {
  const messages = Array.from({ length: 40 }, (_, i) => Buffer.alloc((i * 37) % 301, i));
  const bytes = Buffer.concat(messages.map(framed));
  for (const size of [1, 2, 4, 5, 6, 7, 64, 300, 1_000, bytes.length]) {
    const splitter = new FrameSplitter(1_000);
    const found: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += size)
      found.push(...splitter.add(bytes.subarray(at, at + size)));
    assert.deepEqual(
      found.map((each) => Buffer.from(each)),
      messages,
    );
  }
  assert.throws(() => new FrameSplitter(10).add(framed(Buffer.alloc(11))), /larger than 10 bytes/);
  const compressed = framed(Buffer.alloc(1));
  compressed.writeUInt8(1, 0);
  assert.throws(() => new FrameSplitter(10).add(compressed), /compressed/);
});

describe("a unary call, served directly", () => {
  let store: Store;
  let server: EtcdServer;
  let session: http2.ClientHttp2Session;
  const put = toBinary(
    rpc.PutRequestSchema,
    create(rpc.PutRequestSchema, { key: Buffer.from("k"), value: Buffer.from("v") }),
  );
  before(async () => {
    store = await openStore("memory://", systemEdges());
    server = await serveEtcd(store);
    session = http2.connect(server.url);
  });
  after(async () => {
    session.destroy();
    await server.close();
    await store.close();
  });

  test("answers, whatever the request's pieces", async () => {
    const answer = await send(session, "Put", framed(put));
    assert.equal(answer.status, "0");
    assert.ok(answer.body.length > 5);
    const value = Buffer.alloc(1024 * 1024, 1);
    const large = create(rpc.PutRequestSchema, { key: Buffer.from("large"), value });
    assert.equal((await send(session, "Put", framed(toBinary(rpc.PutRequestSchema, large)))).status, "0");
    assert.deepEqual((await store.range({ key: "large" })).kvs[0]?.value, value);
  });

  test("refuses what is not one message, in gRPC's words", async () => {
    const compressed = framed(put);
    compressed.writeUInt8(1, 0);
    const long = framed(put);
    long.writeUInt32BE(put.length + 1, 1);
    for (const [body, code] of [
      [Buffer.alloc(0), Code.InvalidArgument],
      [Buffer.from([0, 0]), Code.InvalidArgument],
      [long, Code.InvalidArgument],
      [compressed, Code.Internal],
      [Buffer.concat([framed(put), framed(put)]), Code.Unimplemented],
      [framed(Buffer.from([0xff, 0xff])), Code.InvalidArgument],
      [framed(Buffer.alloc(3 * 1024 * 1024)), Code.ResourceExhausted],
    ] as const)
      assert.equal((await send(session, "Put", body)).status, String(code));
    const empty = await send(session, "Put", framed(Buffer.alloc(0)));
    assert.deepEqual(
      [empty.status, empty.text],
      [String(Code.InvalidArgument), "etcdserver: key is not provided"],
    );
  });

  test("what is compressed, and what nobody serves, goes the library's way", async () => {
    const zipped = framed(gzipSync(put));
    zipped.writeUInt8(1, 0);
    assert.equal((await send(session, "Put", zipped, { "grpc-encoding": "gzip" })).status, "0");
    const unknown = await send(session, "Nothing", framed(put)).catch(() => undefined);
    assert.notEqual(unknown?.status, "0");
  });
});

describe("a stream, served directly", () => {
  let store: Store;
  let server: EtcdServer;
  let session: http2.ClientHttp2Session;
  before(async () => {
    store = await openStore("memory://", systemEdges());
    server = await serveEtcd(store);
    session = http2.connect(server.url);
  });
  after(async () => {
    session.destroy();
    await server.close();
    await store.close();
  });

  const watchAll = framed(
    toBinary(
      rpc.WatchRequestSchema,
      create(rpc.WatchRequestSchema, {
        requestUnion: {
          case: "createRequest",
          value: create(rpc.WatchCreateRequestSchema, { key: Buffer.from([0]), rangeEnd: Buffer.from([0]) }),
        },
      }),
    ),
  );

  function openWatch(): {
    stream: http2.ClientHttp2Stream;
    next(): Promise<rpc.WatchResponse>;
    end: Promise<string>;
  } {
    const stream = session.request({
      ":method": "POST",
      ":path": "/etcdserverpb.Watch/Watch",
      "content-type": "application/grpc",
      te: "trailers",
    });
    const splitter = new FrameSplitter(1024 * 1024);
    const messages: Uint8Array[] = [];
    let wake = (): void => {};
    let status = "";
    stream.on("response", (headers) => (status = String(headers["grpc-status"] ?? status)));
    stream.on("trailers", (trailers) => (status = String(trailers["grpc-status"])));
    stream.on("data", (chunk: Buffer) => {
      messages.push(...splitter.add(chunk));
      wake();
    });
    stream.on("error", () => {});
    const end = new Promise<string>((resolve) => stream.on("close", () => resolve(status)));
    const next = async (): Promise<rpc.WatchResponse> => {
      while (messages.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return fromBinary(rpc.WatchResponseSchema, messages.shift() ?? Buffer.alloc(0));
    };
    return { stream, next, end };
  }

  test("requests in any pieces, answers as they come, an end when the client ends", async () => {
    const { stream, next, end } = openWatch();
    stream.write(watchAll.subarray(0, 3));
    stream.write(watchAll.subarray(3));
    assert.equal((await next()).created, true);
    await store.txn({ success: [{ type: "put", key: "seen", value: "1" }] });
    assert.equal(Buffer.from((await next()).events[0]?.kv?.key ?? []).toString(), "seen");
    stream.end();
    assert.equal(await end, "0");
  });

  test("what is no message ends the stream with its reason", async () => {
    for (const [bytes, code] of [
      [framed(Buffer.alloc(3 * 1024 * 1024)), Code.ResourceExhausted],
      [Buffer.from([1, 0, 0, 0, 0]), Code.Internal],
    ] as const) {
      const { stream, end } = openWatch();
      stream.end(bytes);
      assert.equal(await end, String(code));
    }
  });
});

describe("a call or stream, made directly", () => {
  /** A client of a server that answers every call by `answer`. */
  async function against<T>(
    answer: (stream: http2.ServerHttp2Stream) => void,
    work: (client: ReturnType<typeof kvClient>, manager: Http2SessionManager) => Promise<T>,
  ): Promise<T> {
    const sessions = new Set<http2.ServerHttp2Session>();
    const server = http2.createServer();
    server.on("session", (session) => sessions.add(session));
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      answer(stream);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    const manager = new Http2SessionManager(`http://127.0.0.1:${address.port}`);
    try {
      return await work(kvClient(manager), manager);
    } finally {
      manager.abort();
      for (const session of sessions) session.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  }

  function kvClient(manager: Http2SessionManager) {
    const streams = createGrpcTransport({ baseUrl: manager.authority, sessionManager: manager });
    return createClient(rpc.KV, directTransport({ manager, streams, headers: () => ({}), maxBytes: 1_000 }));
  }

  const ok = { ":status": 200, "content-type": "application/grpc" };
  const reply = framed(toBinary(rpc.RangeResponseSchema, create(rpc.RangeResponseSchema, { count: 7n })));

  /** Answers with `body` and then `trailers`. */
  const answering =
    (body: Buffer, trailers: http2.OutgoingHttpHeaders) =>
    (stream: http2.ServerHttp2Stream): void => {
      stream.respond(ok, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers(trailers));
      stream.end(body);
    };

  test("an answer is decoded", async () => {
    const { count } = await against(answering(reply, { "grpc-status": "0" }), (client) => client.range({}));
    assert.equal(count, 7n);
  });

  test("every way to fail has its code", async () => {
    const message = encodeURIComponent("etcdserver: größer");
    const cases: [(stream: http2.ServerHttp2Stream) => void, Code, RegExp][] = [
      [answering(reply, { "grpc-status": "11", "grpc-message": message }), Code.OutOfRange, /größer/],
      [answering(reply, { "grpc-status": "99" }), Code.Unknown, /./],
      [answering(Buffer.alloc(3), { "grpc-status": "0" }), Code.Internal, /cut off/],
      [answering(framed(Buffer.alloc(2_000)), { "grpc-status": "0" }), Code.ResourceExhausted, /larger/],
      [(s) => s.respond({ ...ok, "grpc-status": "5" }, { endStream: true }), Code.NotFound, /./],
      [(s) => s.respond({ ":status": 503 }, { endStream: true }), Code.Unavailable, /HTTP 503/],
      [(s) => s.respond({ ":status": 403 }, { endStream: true }), Code.PermissionDenied, /HTTP 403/],
      [(s) => s.respond(ok, { endStream: true }), Code.Unavailable, /./],
      [(s) => s.close(http2.constants.NGHTTP2_CANCEL), Code.Unavailable, /./],
      [(s) => s.session?.destroy(), Code.Unavailable, /./],
    ];
    for (const [answer, code, text] of cases)
      await assert.rejects(
        against(answer, (client) => client.range({})),
        (error) => error instanceof ConnectError && error.code === code && text.test(error.message),
      );
  });

  test("deadline, signal and the end of the connection end a call that is not answered, and free its stream", async () => {
    const silent = (closed: () => void) => (stream: http2.ServerHttp2Stream) =>
      void stream.on("close", closed);
    const closing = Promise.withResolvers<void>();
    await against(silent(closing.resolve), async (client, manager) => {
      await assert.rejects(
        client.range({}, { timeoutMs: 20 }),
        (e) => ConnectError.from(e).code === Code.DeadlineExceeded,
      );
      await closing.promise;
      const abort = new AbortController();
      const aborted = client.range({}, { signal: abort.signal });
      abort.abort();
      await assert.rejects(aborted, (e) => ConnectError.from(e).code === Code.Canceled);
      await assert.rejects(
        client.range({}, { signal: abort.signal }),
        (e) => ConnectError.from(e).code === Code.Canceled,
      );
      const left = client.range({});
      await manager.connect();
      manager.abort(new ConnectError("the connection was given up", Code.Unavailable));
      await assert.rejects(left, (e) => ConnectError.from(e).code === Code.Unavailable);
    });
  });

  /** Opens a watch against a server; the client's side stays open. */
  function watch(manager: Http2SessionManager, options: { signal?: AbortSignal; timeoutMs?: number } = {}) {
    const streams = createGrpcTransport({ baseUrl: manager.authority, sessionManager: manager });
    const transport = directTransport({ manager, streams, headers: () => ({}), maxBytes: 200_000 });
    return createClient(rpc.Watch, transport).watch(silence(), options);
  }
  async function* silence(): AsyncGenerator<rpc.WatchRequest, void, undefined> {
    yield create(rpc.WatchRequestSchema);
    await new Promise(() => {});
  }
  const response = (id: number, bytes = 0): Buffer =>
    framed(
      toBinary(
        rpc.WatchResponseSchema,
        create(rpc.WatchResponseSchema, { watchId: BigInt(id), cancelReason: "x".repeat(bytes) }),
      ),
    );

  test("a stream's answers come in order, all of them before its end or failure", async () => {
    const many = 60;
    for (const [trailers, code] of [
      [{ "grpc-status": "0" }, undefined],
      [{ "grpc-status": "14", "grpc-message": "etcdserver: no leader" }, Code.Unavailable],
    ] as const)
      await against(
        (stream) => {
          stream.respond(ok, { waitForTrailers: true });
          stream.on("wantTrailers", () => stream.sendTrailers(trailers));
          for (let i = 0; i < many; i++) stream.write(response(i, 100_000));
          stream.end();
        },
        async (_client, manager) => {
          const seen: number[] = [];
          const reading = (async () => {
            for await (const { watchId } of watch(manager)) {
              // Slower than they come: the other side is held back.
              await new Promise((next) => setImmediate(next));
              seen.push(Number(watchId));
            }
          })();
          if (code === undefined) await reading;
          else await assert.rejects(reading, (e) => ConnectError.from(e).code === code);
          assert.deepEqual(
            seen,
            Array.from({ length: many }, (_, i) => i),
          );
        },
      );
  });

  test("a stream that is left, aborted, late or cut off ends on both sides", async () => {
    const closed: (() => void)[] = [];
    const open = (stream: http2.ServerHttp2Stream): void => {
      stream.respond(ok);
      stream.write(response(1));
      stream.on("close", () => closed.shift()?.());
    };
    await against(open, async (_client, manager) => {
      const closing = (): Promise<void> => new Promise((resolve) => closed.push(resolve));
      let over = closing();
      for await (const { watchId } of watch(manager)) {
        assert.equal(watchId, 1n);
        break;
      }
      await over;
      const abort = new AbortController();
      const readAll = async (options: { signal?: AbortSignal; timeoutMs?: number }): Promise<void> => {
        for await (const { watchId } of watch(manager, options)) {
          assert.equal(watchId, 1n);
          abort.abort();
        }
      };
      over = closing();
      await assert.rejects(
        readAll({ signal: abort.signal }),
        (e) => ConnectError.from(e).code === Code.Canceled,
      );
      await over;
      over = closing();
      await assert.rejects(
        readAll({ timeoutMs: 30 }),
        (e) => ConnectError.from(e).code === Code.DeadlineExceeded,
      );
      await over;
      const left = readAll({});
      await manager.connect();
      manager.abort(new ConnectError("the connection was given up", Code.Unavailable));
      await assert.rejects(left, (e) => ConnectError.from(e).code === Code.Unavailable);
    });
  });

  test("nobody there", async () => {
    const manager = new Http2SessionManager("http://127.0.0.1:1");
    await assert.rejects(kvClient(manager).range({}), (e) => ConnectError.from(e).code === Code.Unavailable);
  });
});
