/**
 * The messages of one side of a gRPC stream: taken in from the chunks of an HTTP/2 stream, and sent with respect for what the
 * other side reads. Both ends of a call use it.
 */
import type { Http2Stream } from "node:http2";
import { ConnectError } from "@connectrpc/connect";
import { FrameSplitter } from "./frames.ts";

/** What a message that waits costs beside its bytes, about. */
const overheadBytes = 64;
/** Bytes of messages that wait to be read before the other side is held back. */
const maxWaitingBytes = 1024 * 1024;

/** What comes in. Reading it once, from one place, is what it is for. */
export class IncomingMessages<T> implements AsyncIterableIterator<T, void, undefined> {
  readonly #stream: Pick<Http2Stream, "pause" | "resume">;
  readonly #decode: (bytes: Uint8Array) => T;
  readonly #left: () => void;
  readonly #splitter: FrameSplitter;
  #frames: Uint8Array[] = [];
  #bytes = 0;
  #held = false;
  #waiting: { resolve(step: IteratorResult<T, void>): void; reject(error: unknown): void } | undefined;
  #ended: { readonly error: ConnectError | undefined } | undefined;

  /** `left` is called when the reader leaves before the end. */
  constructor(
    stream: Pick<Http2Stream, "pause" | "resume">,
    options: { decode: (bytes: Uint8Array) => T; maxBytes: number; left: () => void },
  ) {
    this.#stream = stream;
    this.#decode = options.decode;
    this.#left = options.left;
    this.#splitter = new FrameSplitter(options.maxBytes);
  }

  /** Takes a part of the body. Fails when it cannot be one. */
  add(chunk: Buffer): void {
    if (this.#ended) return;
    for (const frame of this.#splitter.add(chunk)) {
      this.#frames.push(frame);
      this.#bytes += frame.length + overheadBytes;
    }
    if (this.#bytes > maxWaitingBytes && !this.#held) {
      this.#held = true;
      this.#stream.pause();
    }
    this.#serve();
  }

  /** No more will come: what waits is still read, then the end or the failure. */
  end(error?: ConnectError): void {
    this.#ended ??= { error };
    this.#serve();
  }

  /** Fails at once, whatever waits; what still comes is dropped. */
  fail(error: ConnectError): void {
    this.#ended ??= { error };
    this.#frames = [];
    if (this.#held) this.#stream.resume();
    this.#held = false;
    this.#serve();
  }

  next(): Promise<IteratorResult<T, void>> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#serve();
    });
  }

  return(): Promise<IteratorResult<T, void>> {
    if (!this.#ended) this.#left();
    this.fail(new ConnectError("nobody reads any more"));
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    const frame = this.#frames.shift();
    if (!frame && !this.#ended) return;
    this.#waiting = undefined;
    if (!frame) {
      if (this.#ended?.error) waiting.reject(this.#ended.error);
      else waiting.resolve({ done: true, value: undefined });
      return;
    }
    this.#bytes -= frame.length + overheadBytes;
    if (this.#held && this.#bytes <= maxWaitingBytes / 2) {
      this.#held = false;
      this.#stream.resume();
    }
    try {
      waiting.resolve({ done: false, value: this.#decode(frame) });
    } catch (error) {
      waiting.reject(error);
    }
  }
}

/**
 * Sends messages until there are no more (`true`) or the stream is closed or was ended. `encode` makes the frame of each. After the stream was
 * closed this may never resolve: who makes the messages may wait for something that never comes.
 */
export async function sendAll<T>(
  stream: Http2Stream,
  messages: AsyncIterable<T>,
  encode: (message: T) => Buffer,
): Promise<boolean> {
  const iterator = messages[Symbol.asyncIterator]();
  stream.once("close", () => void iterator.return?.()?.catch(() => {}));
  while (!isOver(stream)) {
    const step = await iterator.next();
    if (isOver(stream)) break;
    if (step.done === true) return true;
    if (!stream.write(encode(step.value))) await room(stream);
  }
  return false;
}

function isOver(stream: Http2Stream): boolean {
  return stream.closed || stream.destroyed || stream.writableEnded;
}

/** Waits until more can be written, or nothing can any more. */
function room(stream: Http2Stream): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      stream.off("drain", go);
      stream.off("close", go);
      resolve();
    };
    stream.on("drain", go);
    stream.on("close", go);
  });
}
