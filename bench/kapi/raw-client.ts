/**
 * A client that costs next to nothing: HTTP/1.1 over a bare socket, one request at a time, answers found by their
 * content length or read as chunks.
 */
import net from "node:net";

const empty = Buffer.alloc(0);
const headEnd = Buffer.from("\r\n\r\n");

/** One kept-alive connection. */
export class RawClient {
  readonly #socket: net.Socket;
  #buffer: Buffer = empty;
  #need = 0;
  #have = 0;
  #resolve: ((answer: { status: number; bytes: number }) => void) | undefined;
  #status = 0;

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => {});
  }

  static connect(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("connect", () => resolve(new RawClient(socket)));
      socket.once("error", reject);
    });
  }

  #read(chunk: Buffer): void {
    if (this.#need > 0) {
      // Only the size of a large body matters: keeping it would cost more than the server takes.
      this.#have += chunk.length;
    } else {
      this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
      const end = this.#buffer.indexOf(headEnd);
      if (end === -1) return;
      const head = this.#buffer.toString("latin1", 0, end);
      this.#status = Number(head.slice(9, 12));
      const length = /content-length: (\d+)/i.exec(head)?.[1];
      this.#need = end + 4 + Number(length ?? 0);
      this.#have = this.#buffer.length;
      this.#buffer = empty;
    }
    if (this.#have < this.#need) return;
    const answer = { status: this.#status, bytes: this.#need };
    this.#need = 0;
    this.#resolve?.(answer);
  }

  /** Sends a request and waits for its whole answer. */
  ask(
    method: string,
    path: string,
    body = "",
    type = "application/json",
    more = "",
  ): Promise<{ status: number; bytes: number }> {
    const length =
      body === "" ? "" : `content-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
    this.#socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: b\r\nauthorization: Bearer bench\r\nuser-agent: bench\r\n${more}${length}\r\n${body}`,
    );
    return new Promise((resolve) => (this.#resolve = resolve));
  }

  close(): void {
    this.#socket.destroy();
  }
}
