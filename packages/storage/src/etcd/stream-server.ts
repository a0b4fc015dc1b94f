/**
 * A gRPC stream of both sides, straight between the HTTP/2 stream and the implementation.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import {
  create,
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
import type { Deadline } from "./deadline.ts";
import { contentType, decoded, framed } from "./frames.ts";
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

/** What came with a call, and how it ends. */
export interface CallFrame {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: SetTrailers;
  readonly deadline: Deadline;
}

/** Serves one stream. */
export function serveStream(
  method: StreamMethod,
  stream: ServerHttp2Stream,
  { headers, trailers, deadline }: CallFrame,
): void {
  const { input, output } = method.method;
  const abort = new AbortController();
  const requests = new IncomingMessages(stream, {
    decode: (bytes) => decoded(input, bytes),
    maxBytes: method.maxBytes,
    left: () => {},
  });
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
    deadline.clear();
    abort.abort(error);
    requests.fail(error);
  });
  const begin = (): void => {
    if (!stream.headersSent)
      stream.respond({ ":status": 200, "content-type": contentType }, { waitForTrailers: true });
  };
  /** Ends the answer; what the client still sends is dropped. */
  const finish = (error?: unknown): void => {
    deadline.clear();
    if (stream.closed || stream.destroyed || stream.writableEnded) return;
    if (error !== undefined && !stream.headersSent) refuse(stream, error);
    else {
      begin();
      trailers(error === undefined ? succeeded : failed(error));
      stream.end();
    }
    requests.fail(new ConnectError("the stream is over", Code.Canceled));
  };
  deadline.start((error) => {
    finish(error);
    abort.abort(error);
  });
  const replies = method.impl(requests, new CallContext(method, headers, abort.signal, deadline));
  sendAll(stream, replies, (reply) => {
    begin();
    return framed(toBinary(output, create(output, reply)));
  }).then(
    (all) => {
      if (all) finish();
    },
    (error: unknown) => finish(error ?? new ConnectError("no reason", Code.Internal)),
  );
}
