/**
 * A client that costs next to nothing: HTTP/1.1 over a bare socket, one request at a time, answers found by their
 * content length or their last chunk. Requests are made into bytes before the clock runs where a caller can ({@link requestBytes}).
 */
import net from "node:net";

const empty = Buffer.alloc(0);
const headEnd = Buffer.from("\r\n\r\n");
const lengthMark = Buffer.from("ontent-length: ");
const lastChunk = Buffer.from("\r\n0\r\n\r\n");

/** What an answer was: its status and its size with the head, in bytes. */
export interface Answer {
  readonly status: number;
  readonly bytes: number;
}

/** The bytes of a request. `more` are further header lines, each with its line end. */
export function requestBytes(
  method: string,
  path: string,
  body: string = "",
  type: string = "application/json",
  more: string = "",
): string {
  const length = body === "" ? "" : `content-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nhost: b\r\nauthorization: Bearer bench\r\nuser-agent: bench\r\n${more}${length}\r\n${body}`;
}

/** One kept-alive connection. */
export class RawClient {
  readonly #socket: net.Socket;
  #buffer: Buffer = empty;
  #tail: Buffer = empty;
  #need = 0;
  #have = 0;
  #resolve: ((answer: Answer) => void) | undefined;
  #status = 0;

  private constructor(port: number, connected: (client: RawClient) => void, failed: (error: Error) => void) {
    // One buffer for all that is read: a new one for each chunk would cost more than the server's answer.
    const onread = {
      buffer: Buffer.allocUnsafe(256 * 1024),
      callback: (size: number, buffer: Uint8Array): boolean => {
        this.#read(Buffer.from(buffer.buffer, buffer.byteOffset, size));
        return true;
      },
    };
    this.#socket = net.connect({ port, host: "127.0.0.1", noDelay: true, onread });
    this.#socket.once("connect", () => connected(this));
    this.#socket.on("error", failed);
  }

  static connect(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => new RawClient(port, resolve, reject));
  }

  #read(chunk: Buffer): void {
    if (this.#need > 0) {
      // Only the size of a large body matters: keeping it would cost more than the server takes.
      this.#have += chunk.length;
    } else {
      const head = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
      const end = head.indexOf(headEnd);
      // The chunk's memory is the next chunk's: an unfinished head is copied.
      if (end === -1) return void (this.#buffer = Buffer.from(head));
      this.#status = Number(head.toString("latin1", 9, 12));
      const mark = head.indexOf(lengthMark);
      const isChunked = mark === -1 || mark > end;
      const length = isChunked
        ? Infinity
        : Number.parseInt(head.toString("latin1", mark + 15, mark + 25), 10);
      this.#need = end + 4 + length;
      this.#have = head.length;
      this.#buffer = empty;
    }
    if (this.#need === Infinity) {
      // The mark of the end may come in two reads.
      this.#tail = Buffer.concat([this.#tail, chunk.subarray(-lastChunk.length)]).subarray(-lastChunk.length);
      if (!this.#tail.equals(lastChunk)) return;
      this.#tail = empty;
    } else if (this.#have < this.#need) return;
    const answer = { status: this.#status, bytes: this.#have };
    this.#need = 0;
    this.#resolve?.(answer);
  }

  /** Sends a request ({@link requestBytes}) and waits for its whole answer. */
  send(request: string): Promise<Answer> {
    this.#socket.write(request);
    return new Promise((resolve) => (this.#resolve = resolve));
  }

  close(): void {
    this.#socket.destroy();
  }
}
