/** Direct unary calls: what the wire may carry, on both sides. */
import assert from "node:assert/strict";
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { after, before, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import type { Store } from "../contract.ts";
import { unaryTransport } from "../drivers/etcd/unary-transport.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import { openStore } from "../open.ts";
import { serveEtcd, type EtcdServer } from "./services.ts";
import { framed } from "./unary-frame.ts";

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

describe("a unary call, made directly", () => {
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
    return createClient(rpc.KV, unaryTransport({ manager, streams, headers: () => ({}), maxBytes: 1_000 }));
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

  test("nobody there", async () => {
    const manager = new Http2SessionManager("http://127.0.0.1:1");
    await assert.rejects(kvClient(manager).range({}), (e) => ConnectError.from(e).code === Code.Unavailable);
  });
});
