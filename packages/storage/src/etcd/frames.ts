/**
 * Messages of a gRPC call as bytes: a flag that says whether it is compressed (never, here), four bytes of length, the
 * message ("Length-Prefixed-Message" in gRPC's public document "gRPC over HTTP2").
 */
import { fromBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";

const prefixBytes = 5;

/** The content type of what is sent here. */
export const contentType = "application/grpc+proto";

/** A message with its prefix. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(prefixBytes + message.length);
  frame.writeUInt8(0, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, prefixBytes);
  return frame;
}

/** The message of some bytes. Fails with `InvalidArgument` when they are none. */
export function decoded<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  try {
    return fromBinary(schema, bytes);
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

/** Collects the body of a unary call: exactly one message of at most `maxBytes`. */
export class UnaryBody {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes a part of the body. Fails with `ResourceExhausted` as soon as it is too much. */
  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes + prefixBytes)
      throw new ConnectError(`message is larger than ${this.#maxBytes} bytes`, Code.ResourceExhausted);
  }

  /** The message, once all is there. */
  message(): Uint8Array {
    const [first] = this.#chunks;
    const body = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks);
    if (body.length < prefixBytes || body.readUInt32BE(1) > body.length - prefixBytes)
      throw new ConnectError("the message is cut off", Code.InvalidArgument);
    if (body.readUInt8(0) !== 0)
      throw new ConnectError("the message is compressed and does not say how", Code.Internal);
    if (body.readUInt32BE(1) < body.length - prefixBytes)
      throw new ConnectError("a unary call has one message", Code.Unimplemented);
    return body.subarray(prefixBytes);
  }
}

/** Cuts what comes in on a stream into messages of at most `maxBytes`. */
export class FrameSplitter {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #size = 0;
  /** Bytes without which the next message is not whole. */
  #needed = prefixBytes;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes the next part; answers the messages that are whole now. */
  add(chunk: Buffer): Uint8Array[] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return [];
    const data = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    const messages: Uint8Array[] = [];
    let at = 0;
    this.#needed = prefixBytes;
    while (data.length - at >= prefixBytes) {
      const length = data.readUInt32BE(at + 1);
      if (data.readUInt8(at) !== 0)
        throw new ConnectError("a message is compressed and does not say how", Code.Internal);
      if (length > this.#maxBytes)
        throw new ConnectError(`message is larger than ${this.#maxBytes} bytes`, Code.ResourceExhausted);
      this.#needed = prefixBytes + length;
      if (data.length - at < this.#needed) break;
      messages.push(data.subarray(at + prefixBytes, at + this.#needed));
      at += this.#needed;
      this.#needed = prefixBytes;
    }
    this.#chunks = at < data.length ? [data.subarray(at)] : [];
    this.#size = data.length - at;
    return messages;
  }
}
