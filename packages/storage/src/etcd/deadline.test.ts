/** Deadlines that callers set, on calls and streams that would never end by themselves. */
import assert from "node:assert/strict";
import http2 from "node:http2";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { Code, type HandlerContext } from "@connectrpc/connect";
import { create, toBinary } from "@bufbuild/protobuf";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import { framed } from "./frames.ts";
import { grpcHandler } from "./grpc-handler.ts";

const contexts: HandlerContext[] = [];
let server: http2.Http2Server;
let session: http2.ClientHttp2Session;

before(async () => {
  const handler = grpcHandler((router) => {
    router.service(rpc.KV, {
      range(_request, context) {
        contexts.push(context);
        return new Promise(() => {});
      },
      put: () => ({}),
    });
    router.service(rpc.Watch, {
      async *watch(requests, context) {
        contexts.push(context);
        for await (const _request of requests) yield create(rpc.WatchResponseSchema, { created: true });
      },
    });
  });
  server = http2.createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  session = http2.connect(`http://127.0.0.1:${address.port}`);
});
after(async () => {
  session.destroy();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

/** How a call ends whose client goes on sending: status and text. */
async function call(
  path: string,
  headers: http2.OutgoingHttpHeaders,
  body: Buffer,
  keepOpen = false,
): Promise<{ status: string; text: string }> {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  const last: http2.IncomingHttpHeaders = {};
  stream.on("response", (received) => Object.assign(last, received));
  stream.on("trailers", (received) => Object.assign(last, received));
  stream.on("data", () => {});
  const ended = once(stream, "end");
  if (keepOpen) stream.write(body);
  else stream.end(body);
  await ended;
  stream.close(http2.constants.NGHTTP2_CANCEL);
  return {
    status: String(last["grpc-status"]),
    text: decodeURIComponent(String(last["grpc-message"] ?? "")),
  };
}

const nothing = framed(Buffer.alloc(0));
const range = "/etcdserverpb.KV/Range";
const watch = "/etcdserverpb.Watch/Watch";

test("a call that is late is answered so, and its implementation is told", async () => {
  for (const timeout of ["0n", "20000u", "1S"]) {
    const { status, text } = await call(range, { "grpc-timeout": timeout }, nothing);
    assert.deepEqual([status, text], [String(Code.DeadlineExceeded), "the deadline is over"]);
  }
  const context = contexts.pop();
  assert.equal(context?.signal.aborted, true);
  assert.ok((context?.timeoutMs() ?? Infinity) < 500);
});

test("a body that never ends is not waited for beyond the deadline", async () => {
  const { status } = await call(range, { "grpc-timeout": "20m" }, nothing.subarray(0, 3), true);
  assert.equal(status, String(Code.DeadlineExceeded));
});

test("a stream ends at its deadline although the client does not end its side", async () => {
  const request = framed(toBinary(rpc.WatchRequestSchema, create(rpc.WatchRequestSchema)));
  const { status } = await call(watch, { "grpc-timeout": "100m" }, request, true);
  assert.equal(status, String(Code.DeadlineExceeded));
  assert.equal(contexts.pop()?.signal.aborted, true);
});

test("no deadline, a distant one, and one that is none", async () => {
  for (const headers of [{}, { "grpc-timeout": "99999999H" }])
    assert.equal((await call("/etcdserverpb.KV/Put", headers, nothing)).status, "0");
  for (const path of [range, watch])
    for (const wrong of ["", "5", "5s", "-1S", "123456789m", "1.5S"]) {
      const { status, text } = await call(path, { "grpc-timeout": wrong }, nothing);
      assert.equal(status, String(Code.InvalidArgument), wrong);
      assert.match(text, /^grpc-timeout must be/);
    }
});

test("what nobody serves is said in gRPC's words", async () => {
  for (const path of ["/etcdserverpb.KV/Nothing", "/no.such.Service/Do", "/"]) {
    const { status, text } = await call(path, {}, nothing);
    assert.deepEqual([status, text], [String(Code.Unimplemented), `unknown method ${path}`]);
  }
});
