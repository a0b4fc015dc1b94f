/**
 * gRPC routes as a handler of Node's HTTP/2: unary calls straight from the stream to the implementation, everything else
 * (streams, compressed requests, other protocols) through connect's adapter. Both run the same implementations: a unary call
 * costs a third of what it costs through the adapter, and means the same.
 *
 * What a direct call leaves to its client: the deadline. A client that gives up resets the stream, which aborts the call's
 * signal. An implementation's own response headers are not sent; none sets any.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import {
  create,
  fromBinary,
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
  createContextValues,
  createServiceImplSpec,
  type ConnectRouter,
  type HandlerContext,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { contentType, framed, UnaryBody } from "./unary-frame.ts";

/** Bytes of one request message unless the service says otherwise; gRPC's own default. */
const defaultMaxBytes = 4 * 1024 * 1024;

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
  const adapter = adapt({
    routes: (router) => routes(recorded(router, unary)),
    grpc: true,
    connect: false,
    grpcWeb: false,
  });
  return (request, response) => {
    const method = unary.get(request.url ?? "");
    if (method && "stream" in request && isPlain(request.headers))
      serve(method, request.stream, request.headers, (trailers) => response.addTrailers(trailers));
    else adapter(request, response);
  };
}

/** A router that also notes the unary methods. */
function recorded(router: ConnectRouter, unary: Map<string, UnaryMethod>): ConnectRouter {
  const recorder: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      router.service(service, implementation, options);
      // Interceptors are the adapter's.
      if (options?.interceptors !== undefined) return recorder;
      const maxBytes = options?.readMaxBytes ?? defaultMaxBytes;
      for (const spec of Object.values(createServiceImplSpec(service, implementation).methods))
        if (spec.kind === "unary")
          unary.set(`/${service.typeName}/${spec.method.name}`, { ...spec, service, maxBytes });
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

/** Sets what is sent after the body. */
type Trailers = (trailers: Record<string, string>) => void;

function serve(
  method: UnaryMethod,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  trailers: Trailers,
): void {
  const body = new UnaryBody(method.maxBytes);
  const abort = new AbortController();
  let answered = false;
  const answer = (send: () => void): void => {
    if (answered) return;
    answered = true;
    if (!stream.destroyed && !stream.closed) send();
  };
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    try {
      if (!answered) body.add(chunk);
    } catch (error) {
      answer(() => refuse(stream, error));
    }
  });
  stream.on("end", () => {
    if (answered) return;
    run(method, body, new UnaryContext(method, headers, abort.signal)).then(
      (reply) => answer(() => respond(stream, reply, trailers)),
      (error: unknown) => answer(() => refuse(stream, error)),
    );
  });
  stream.on("close", () => {
    if (!answered) abort.abort(new ConnectError("the call was given up", Code.Canceled));
    answered = true;
  });
}

async function run(method: UnaryMethod, body: UnaryBody, context: HandlerContext): Promise<Buffer> {
  const { input, output } = method.method;
  const reply = await method.impl(decoded(input, body.message()), context);
  return framed(toBinary(output, create(output, reply)));
}

function decoded(input: DescMessage, bytes: Uint8Array): MessageShape<DescMessage> {
  try {
    return fromBinary(input, bytes);
  } catch (cause) {
    throw new ConnectError(
      "the message cannot be decoded",
      Code.InvalidArgument,
      undefined,
      undefined,
      cause,
    );
  }
}

function respond(stream: ServerHttp2Stream, reply: Buffer, trailers: Trailers): void {
  // Node's response object belongs to the stream and sends its trailers when they are wanted.
  trailers({ "grpc-status": "0" });
  stream.respond({ ":status": 200, "content-type": contentType }, { waitForTrailers: true });
  stream.end(reply);
}

function refuse(stream: ServerHttp2Stream, error: unknown): void {
  const { code, rawMessage } =
    error instanceof ConnectError ? error : new ConnectError("internal error", Code.Internal);
  const status = { "grpc-status": String(code), "grpc-message": encodeURIComponent(rawMessage) };
  stream.respond({ ":status": 200, "content-type": contentType, ...status }, { endStream: true });
  // What the client still sends is of no use; without this the stream would wait for its end.
  if (!stream.readableEnded) stream.resume();
}

/** What an implementation may ask about its call; headers are only made when it does. */
class UnaryContext implements HandlerContext {
  readonly service: DescService;
  readonly method: DescMethodUnary;
  readonly signal: AbortSignal;
  readonly requestMethod = "POST";
  readonly protocolName = "grpc";
  readonly #headers: IncomingHttpHeaders;

  constructor(
    { service, method }: Pick<UnaryMethod, "service" | "method">,
    headers: IncomingHttpHeaders,
    signal: AbortSignal,
  ) {
    this.service = service;
    this.method = method;
    this.#headers = headers;
    this.signal = signal;
  }

  get requestHeader(): Headers {
    const made = new Headers();
    for (const [name, value] of Object.entries(this.#headers))
      if (!name.startsWith(":")) for (const each of [value ?? []].flat()) made.append(name, each);
    return made;
  }

  get responseHeader(): Headers {
    return new Headers();
  }

  get responseTrailer(): Headers {
    return new Headers();
  }

  get values(): HandlerContext["values"] {
    return createContextValues();
  }

  get url(): string {
    return `/${this.service.typeName}/${this.method.name}`;
  }

  timeoutMs(): undefined {
    return undefined;
  }
}
