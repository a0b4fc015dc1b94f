/**
 * How a call ends on the wire: gRPC's status and message as trailers.
 */
import type { ServerHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { contentType } from "./frames.ts";

/** Sets what is sent after the body: Node's response object belongs to the stream and sends it when it is wanted. */
export type SetTrailers = (trailers: Record<string, string>) => void;

/** The trailers of success. */
export const succeeded: Readonly<Record<string, string>> = { "grpc-status": "0" };

/** The trailers of a failure. What is no `ConnectError` is a fault of ours, and nobody else's business. */
export function failed(error: unknown): Record<string, string> {
  const { code, rawMessage } =
    error instanceof ConnectError ? error : new ConnectError("internal error", Code.Internal);
  return { "grpc-status": String(code), "grpc-message": encodeURIComponent(rawMessage.toWellFormed()) };
}

/** Answers with a failure and nothing else. */
export function refuse(stream: ServerHttp2Stream, error: unknown): void {
  stream.respond({ ":status": 200, "content-type": contentType, ...failed(error) }, { endStream: true });
  // What the client still sends is of no use; without this the stream would wait for its end.
  if (!stream.readableEnded) stream.resume();
}
