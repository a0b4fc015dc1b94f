/**
 * gRPC straight over an HTTP/2 connection: unary calls and streams of both sides; one-sided streams go through connect's transport
 * on the same connection. A call costs a third of what it costs through the library, and fails with the same `ConnectError`s.
 */
import {
  constants,
  type ClientHttp2Stream,
  type Http2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { create, fromBinary, toBinary, type DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import type { Http2SessionManager } from "@connectrpc/connect-node";
import { systemClock, type Clock } from "@kontinuum/std";
import { IncomingMessages, sendAll } from "../../etcd/message-stream.ts";
import { contentType, framed, UnaryBody } from "../../etcd/frames.ts";

/** Bytes of all answers of a connection that may be under way. */
const connectionWindowBytes = 64 * 1024 * 1024;
/** HTTP/2's error code for "nobody waits for this any more". */
const cancel = constants.NGHTTP2_CANCEL;

/** What the calls of one connection share. */
export interface DirectOptions {
  readonly manager: Http2SessionManager;
  /** Serves one-sided streams. */
  readonly streams: Transport;
  /** Metadata of a call, asked for each time. */
  readonly headers: () => Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>;
  /** Bytes of an answer. */
  readonly maxBytes: number;
  readonly clock?: Clock;
}

/** Connections whose window was widened. */
const widened = new WeakSet<Http2Session>();

/** Lets more than HTTP/2's 64 KiB be under way on a connection: else each 64 KiB wait for a turn of both sides. */
function widen(session: Http2Session | undefined): void {
  if (!session || widened.has(session)) return;
  widened.add(session);
  session.setLocalWindowSize(connectionWindowBytes);
}

/** A transport whose calls are direct; one-sided streams are the library's. */
export function directTransport(options: DirectOptions): Transport {
  const { manager, streams, headers, maxBytes, clock = systemClock } = options;
  const noHeaders = new Headers();
  const read = (stream: ClientHttp2Stream): void => manager.notifyResponseByteRead(stream);
  const open = async (method: DescMethod, timeoutMs: number | undefined): Promise<ClientHttp2Stream> => {
    const sent: OutgoingHttpHeaders = {
      "content-type": contentType,
      te: "trailers",
      ...(timeoutMs === undefined ? {} : { "grpc-timeout": `${Math.ceil(timeoutMs)}m` }),
      ...(await headers()),
    };
    const stream = await manager.request("POST", `/${method.parent.typeName}/${method.name}`, sent, {});
    widen(stream.session);
    return stream;
  };
  return {
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      if (method.methodKind !== "bidi_streaming")
        return streams.stream(method, signal, timeoutMs, header, input, contextValues);
      if (signal?.aborted) throw aborted(signal);
      const message = openStream({
        stream: await open(method, timeoutMs).catch((error: unknown) => Promise.reject(lost(error))),
        read,
        input,
        encode: (each) => framed(toBinary(method.input, create(method.input, each))),
        decode: (bytes) => fromBinary(method.output, bytes),
        maxBytes,
        signal,
        timeoutMs,
        clock,
      });
      return { stream: true, service: method.parent, method, header: noHeaders, trailer: noHeaders, message };
    },
    async unary(method, signal, timeoutMs, _header, input) {
      if (signal?.aborted) throw aborted(signal);
      const bytes = await call({
        open: () => open(method, timeoutMs),
        read,
        message: framed(toBinary(method.input, create(method.input, input))),
        body: new UnaryBody(maxBytes),
        signal,
        timeoutMs,
        clock,
      });
      const message = fromBinary(method.output, bytes);
      return {
        stream: false,
        service: method.parent,
        method,
        header: noHeaders,
        trailer: noHeaders,
        message,
      };
    },
  };
}

interface OpenStream<I, O> {
  readonly stream: ClientHttp2Stream;
  readonly read: (stream: ClientHttp2Stream) => void;
  readonly input: AsyncIterable<I>;
  readonly encode: (message: I) => Buffer;
  readonly decode: (bytes: Uint8Array) => O;
  readonly maxBytes: number;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
  readonly clock: Clock;
}

/** The answers on a stream that was opened; what is to be sent is sent meanwhile. */
function openStream<I, O>(options: OpenStream<I, O>): AsyncIterable<O> {
  const { stream, read, input, encode, decode, maxBytes, signal, timeoutMs, clock } = options;
  const giveUp = (error: ConnectError): void => {
    messages.fail(error);
    stream.close(cancel);
  };
  const messages = new IncomingMessages<O>(stream, { decode, maxBytes, left: () => stream.close(cancel) });
  const onAbort = (): void => {
    if (signal) giveUp(aborted(signal));
  };
  const timer = timeoutMs === undefined ? undefined : clock.timer(timeoutMs, () => giveUp(timedOut()));
  signal?.addEventListener("abort", onAbort, { once: true });
  receive(
    stream,
    read,
    (chunk) => messages.add(chunk),
    (failure) => {
      timer?.clear();
      signal?.removeEventListener("abort", onAbort);
      messages.end(failure);
    },
  );
  // The other side is done: nothing more is sent either, and the stream can close.
  stream.on("end", () => stream.end());
  sendAll(stream, input, encode).then(
    (all) => void (all && stream.end()),
    (error: unknown) => giveUp(ConnectError.from(error)),
  );
  if (signal?.aborted) onAbort();
  return messages;
}

interface Call {
  readonly open: () => Promise<ClientHttp2Stream>;
  readonly read: (stream: ClientHttp2Stream) => void;
  readonly message: Buffer;
  readonly body: UnaryBody;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
  readonly clock: Clock;
}

/** The answer's bytes. Whatever happens first decides: the answer, a failure, the deadline, the caller's signal. */
function call({ open, read, message, body, signal, timeoutMs, clock }: Call): Promise<Uint8Array> {
  return new Promise<Uint8Array>((resolve, reject) => {
    let stream: ClientHttp2Stream | undefined;
    let settled = false;
    const settle = (finish: () => void): void => {
      if (settled) return;
      settled = true;
      timer?.clear();
      signal?.removeEventListener("abort", onAbort);
      finish();
    };
    const giveUp = (error: ConnectError): void =>
      settle(() => {
        // One that is not open yet is closed as soon as it is.
        stream?.close(cancel);
        reject(error);
      });
    const onAbort = (): void => {
      if (signal) giveUp(aborted(signal));
    };
    const timer = timeoutMs === undefined ? undefined : clock.timer(timeoutMs, () => giveUp(timedOut()));
    signal?.addEventListener("abort", onAbort, { once: true });
    open().then(
      (opened) => {
        stream = opened;
        if (settled) return opened.on("error", () => {}).close(cancel);
        receive(
          opened,
          read,
          (chunk) => body.add(chunk),
          (failure) => settle(() => (failure ? reject(failure) : finish(body, resolve, reject))),
        );
        opened.end(message);
      },
      (error: unknown) => settle(() => reject(lost(error))),
    );
  });
}

/** Follows an answer to its end: `take` gets the body, `done` the failure if there was one. */
function receive(
  stream: ClientHttp2Stream,
  read: (stream: ClientHttp2Stream) => void,
  take: (chunk: Buffer) => void,
  done: (failure: ConnectError | undefined) => void,
): void {
  let failure: ConnectError | undefined;
  let status: IncomingHttpHeaders | undefined;
  stream.on("response", (headers) => {
    read(stream);
    if (headers[":status"] !== 200) failure = refusedByHttp(headers[":status"] ?? 0);
    else if (headers["grpc-status"] !== undefined) status = headers;
  });
  stream.on("trailers", (trailers) => (status = trailers));
  stream.on("data", (chunk: Buffer) => {
    read(stream);
    try {
      if (!failure) take(chunk);
    } catch (error) {
      failure = ConnectError.from(error);
      stream.close(cancel);
    }
  });
  stream.on("error", (error) => (failure ??= lost(error)));
  // Always the last event, after the end, a reset, or the end of the connection.
  stream.on("close", () => done(failure ?? failureOf(stream, status)));
}

/** What the status at the end of an answer says. */
function failureOf(
  stream: ClientHttp2Stream,
  status: IncomingHttpHeaders | undefined,
): ConnectError | undefined {
  const code = status?.["grpc-status"];
  if (code === undefined)
    return new ConnectError(`http/2 stream closed with error code ${stream.rstCode}`, Code.Unavailable);
  if (code === "0") return undefined;
  return new ConnectError(decodedText(status?.["grpc-message"]), codeFrom(String(code)));
}

function finish(
  body: UnaryBody,
  resolve: (message: Uint8Array) => void,
  reject: (error: ConnectError) => void,
): void {
  try {
    resolve(body.message());
  } catch (error) {
    // The other side's mistake, not the caller's.
    reject(new ConnectError(ConnectError.from(error).rawMessage, Code.Internal, undefined, undefined, error));
  }
}

function codeFrom(status: string): Code {
  const codes = Object.values(Code).filter((code) => typeof code === "number");
  return codes.find((code) => String(code) === status) ?? Code.Unknown;
}

function decodedText(message: string | string[] | undefined): string {
  const text = String(message ?? "");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** HTTP's own refusals, by gRPC's public document "HTTP to gRPC Status Code Mapping". */
function refusedByHttp(status: number): ConnectError {
  const codes: Readonly<Record<number, Code>> = {
    400: Code.Internal,
    401: Code.Unauthenticated,
    403: Code.PermissionDenied,
    404: Code.Unimplemented,
    429: Code.Unavailable,
    502: Code.Unavailable,
    503: Code.Unavailable,
    504: Code.Unavailable,
  };
  return new ConnectError(`HTTP ${status}`, codes[status] ?? Code.Unknown);
}

function timedOut(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

function aborted(signal: AbortSignal): ConnectError {
  return new ConnectError("the call was aborted", Code.Canceled, undefined, undefined, signal.reason);
}

/** The connection failed; a failure that says more than that is kept. */
function lost(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  return new ConnectError("the connection was lost", Code.Unavailable, undefined, undefined, error);
}
