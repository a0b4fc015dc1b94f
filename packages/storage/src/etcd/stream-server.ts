/**
 * A gRPC stream of both sides, straight between the HTTP/2 stream and the implementation.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethodBiDiStreaming,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { CallContext } from "./call-context.ts";
import { IncomingMessages, sendAll } from "./message-stream.ts";
import { contentType, framed } from "./frames.ts";
import { succeeded, failed, refuse, type SetTrailers } from "./wire-status.ts";

/** A method of streams and who implements it. */
export interface StreamMethod {
  readonly service: DescService;
  readonly method: DescMethodBiDiStreaming;
  readonly impl: (
    requests: AsyncIterable<MessageShape<DescMessage>>,
    context: HandlerContext,
  ) => AsyncIterable<MessageInitShape<DescMessage>>;
  /** Bytes of one request message. */
  readonly maxBytes: number;
}

/** Serves one stream. */
export function serveStream(
  method: StreamMethod,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  trailers: SetTrailers,
): void {
  const { input, output } = method.method;
  const abort = new AbortController();
  const requests = new IncomingMessages(stream, {
    decode: (bytes) => fromBinary(input, bytes),
    maxBytes: method.maxBytes,
    left: () => {},
  });
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    try {
      requests.add(chunk);
    } catch (error) {
      requests.fail(ConnectError.from(error));
    }
  });
  stream.on("end", () => requests.end());
  stream.on("close", () => {
    const error = new ConnectError("the stream was given up", Code.Canceled);
    abort.abort(error);
    requests.fail(error);
  });
  const begin = (): void => {
    if (!stream.headersSent)
      stream.respond({ ":status": 200, "content-type": contentType }, { waitForTrailers: true });
  };
  const replies = method.impl(requests, new CallContext(method, headers, abort.signal));
  sendAll(stream, replies, (reply) => {
    begin();
    return framed(toBinary(output, create(output, reply)));
  }).then(
    (all) => {
      if (!all) return;
      begin();
      trailers(succeeded);
      stream.end();
    },
    (error: unknown) => {
      if (stream.closed || stream.destroyed) return;
      if (!stream.headersSent) return refuse(stream, error);
      trailers(failed(error));
      stream.end();
    },
  );
}
