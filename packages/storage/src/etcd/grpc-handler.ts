/**
 * gRPC routes as a handler of Node's HTTP/2: unary calls and streams of both sides straight from the HTTP/2 stream to the
 * implementation, everything else (one-sided streams, compressed requests, other protocols) through connect's adapter. Both
 * run the same implementations: a direct call costs a third of what it costs through the adapter, and means the same. A call whose
 * deadline is over is answered so; that, and a client that resets its stream, abort the call's signal. An implementation's own
 * response headers are not sent; none sets any.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import {
  create,
  toBinary,
  type DescMethodUnary,
  type DescService,
  type MessageInitShape,
  type MessageShape,
  type DescMessage,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createServiceImplSpec,
  type ConnectRouter,
  type HandlerContext,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { CallContext } from "./call-context.ts";
import { Deadline } from "./deadline.ts";
import { contentType, decoded, framed, UnaryBody } from "./frames.ts";
import { serveStream, type CallFrame, type StreamMethod } from "./stream-server.ts";
import { failed, refuse, succeeded, type SetTrailers } from "./wire-status.ts";

/** Bytes of one request message unless the service says otherwise; gRPC's own default. */
const defaultMaxBytes = 4 * 1024 * 1024;

/** Characters of an unknown method's path that are repeated in its answer. */
const maxPathChars = 200;

/** A handler for requests whose content type is gRPC's. */
export type GrpcHandler = ReturnType<typeof connectNodeAdapter>;

interface UnaryMethod {
  readonly service: DescService;
  readonly method: DescMethodUnary;
  readonly impl: (
    request: MessageShape<DescMessage>,
    context: HandlerContext,
  ) => Promise<MessageInitShape<DescMessage>> | MessageInitShape<DescMessage>;
  readonly maxBytes: number;
}

/** Serves `routes`, gRPC only; `adapt` makes what serves all that is not a plain unary call. */
export function grpcHandler(
  routes: (router: ConnectRouter) => void,
  adapt: typeof connectNodeAdapter = connectNodeAdapter,
): GrpcHandler {
  const unary = new Map<string, UnaryMethod>();
  const streams = new Map<string, StreamMethod>();
  const adapter = adapt({
    routes: (router) => routes(recorded(router, unary, streams)),
    grpc: true,
    connect: false,
    grpcWeb: false,
    fallback: unknown,
  });
  return (request, response) => {
    if (!("stream" in request) || !isPlain(request.headers)) return void adapter(request, response);
    const { stream, headers, url } = request;
    const trailers: SetTrailers = (all) => response.addTrailers(all);
    const [call, long] = [unary.get(url), streams.get(url)];
    if (!call && !long) return void adapter(request, response);
    stream.on("error", () => {});
    let deadline;
    try {
      deadline = new Deadline(headers);
    } catch (error) {
      return refuse(stream, error);
    }
    if (call) serve(call, stream, { headers, trailers, deadline });
    else if (long) serveStream(long, stream, { headers, trailers, deadline });
  };
}

/** Answers for a method that nobody serves. */
const unknown: GrpcHandler = (request, response) => {
  const path = (request.url ?? "").slice(0, maxPathChars);
  response.writeHead(200, {
    "content-type": contentType,
    ...failed(new ConnectError(`unknown method ${path}`, Code.Unimplemented)),
  });
  response.end();
};

/** A router that also notes the methods that can be served directly. */
function recorded(
  router: ConnectRouter,
  unary: Map<string, UnaryMethod>,
  streams: Map<string, StreamMethod>,
): ConnectRouter {
  const recorder: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      router.service(service, implementation, options);
      // Interceptors are the adapter's.
      if (options?.interceptors !== undefined) return recorder;
      const maxBytes = options?.readMaxBytes ?? defaultMaxBytes;
      for (const spec of Object.values(createServiceImplSpec(service, implementation).methods)) {
        const path = `/${service.typeName}/${spec.method.name}`;
        if (spec.kind === "unary") unary.set(path, { ...spec, service, maxBytes });
        else if (spec.kind === "bidi_streaming") streams.set(path, { ...spec, service, maxBytes });
      }
      return recorder;
    },
    rpc(method, implementation, options) {
      router.rpc(method, implementation, options);
      return recorder;
    },
  };
  return recorder;
}

/** A POST of protobuf, not compressed. */
function isPlain(headers: IncomingHttpHeaders): boolean {
  const type = headers["content-type"];
  const encoding = headers["grpc-encoding"];
  return (
    headers[":method"] === "POST" &&
    (type === "application/grpc" || type === contentType) &&
    (encoding === undefined || encoding === "identity")
  );
}

function serve(
  method: UnaryMethod,
  stream: ServerHttp2Stream,
  { headers, trailers, deadline }: CallFrame,
): void {
  const body = new UnaryBody(method.maxBytes);
  const abort = new AbortController();
  let answered = false;
  const answer = (send: () => void): void => {
    if (answered) return;
    answered = true;
    deadline.clear();
    if (!stream.destroyed && !stream.closed) send();
  };
  deadline.start((error) => {
    answer(() => refuse(stream, error));
    abort.abort(error);
  });
  stream.on("data", (chunk: Buffer) => {
    try {
      if (!answered) body.add(chunk);
    } catch (error) {
      answer(() => refuse(stream, error));
    }
  });
  stream.on("end", () => {
    if (answered) return;
    run(method, body, new CallContext(method, headers, abort.signal, deadline)).then(
      (reply) => answer(() => respond(stream, reply, trailers)),
      (error: unknown) => answer(() => refuse(stream, error)),
    );
  });
  stream.on("close", () => {
    if (!answered) abort.abort(new ConnectError("the call was given up", Code.Canceled));
    answered = true;
    deadline.clear();
  });
}

async function run(method: UnaryMethod, body: UnaryBody, context: HandlerContext): Promise<Buffer> {
  const { input, output } = method.method;
  const reply = await method.impl(decoded(input, body.message()), context);
  return framed(toBinary(output, create(output, reply)));
}

function respond(stream: ServerHttp2Stream, reply: Buffer, trailers: SetTrailers): void {
  trailers(succeeded);
  stream.respond({ ":status": 200, "content-type": contentType }, { waitForTrailers: true });
  stream.end(reply);
}
