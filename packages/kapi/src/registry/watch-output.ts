/**
 * Where the bytes of a watch go: a plain answer, or whatever a connection was upgraded to.
 *
 * Lines that are sent together leave in one piece, which is made once however many clients get the same lines. Over
 * HTTP/1.1 that piece carries its chunk's framing (RFC 9112, 7.1) and is written to the connection as it is: with many
 * watchers, framing and joining for each of them costs more than everything else.
 */
import { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { HttpResponse } from "../contract.ts";
import { warningHeaders, type Answering } from "../wire/respond.ts";

/** Where the bytes of a watch go. */
export interface WatchOutput {
  /** Bytes not yet taken by the connection. */
  readonly pending: number;
  /** Begins the answer. */
  open(contentType: string): void;
  /** One whole event; it may wait for {@link WatchOutput.flush}. */
  send(line: Buffer): void;
  /** Hands all that was sent to the connection. */
  flush(): void;
  end(): void;
  onDrain(callback: () => void): void;
  onClose(callback: () => void): void;
}

/** Pieces kept for others: in one round of a cache, clients of the same form get the same lines. */
const keptPieces = 8;

interface Piece {
  readonly lines: readonly Buffer[];
  readonly isFramed: boolean;
  readonly bytes: Buffer;
}

/** Joins lines to pieces, the same lines once. */
export class Pieces {
  readonly #kept: Piece[] = [];
  #next = 0;

  /** The lines in one piece; `isFramed`: as one chunk of HTTP/1.1. `lines` must not be changed afterwards. */
  join(lines: readonly Buffer[], isFramed: boolean): Buffer {
    const [only] = lines;
    if (only && lines.length === 1 && !isFramed) return only;
    for (const piece of this.#kept)
      if (piece.isFramed === isFramed && isSame(piece.lines, lines)) return piece.bytes;
    const bytes = isFramed ? frame(lines) : Buffer.concat(lines);
    this.#kept[this.#next] = { lines, isFramed, bytes };
    this.#next = (this.#next + 1) % keptPieces;
    return bytes;
  }
}

function isSame(a: readonly Buffer[], b: readonly Buffer[]): boolean {
  return a.length === b.length && a.every((line, index) => line === b[index]);
}

const lineEnd = Buffer.from("\r\n");

function frame(lines: readonly Buffer[]): Buffer {
  const size = lines.reduce((sum, line) => sum + line.length, 0);
  return Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`, "latin1"), ...lines, lineEnd]);
}

/** The connection of an answer that is sent in chunks and is the connection's present one. */
function chunkedConnection(response: HttpResponse): Socket | undefined {
  if (!(response instanceof ServerResponse) || !response.chunkedEncoding) return undefined;
  return response.socket ?? undefined;
}

/** The output of a plain HTTP answer. */
export function responseOutput(answering: Answering, pieces: Pieces): WatchOutput {
  return new ResponseOutput(answering, pieces);
}

class ResponseOutput implements WatchOutput {
  readonly #answering: Answering;
  readonly #pieces: Pieces;
  readonly #drains: (() => void)[] = [];
  #connection: Socket | undefined;
  #lines: Buffer[] = [];
  #waiting = 0;
  #isOpen = true;

  constructor(answering: Answering, pieces: Pieces) {
    this.#answering = answering;
    this.#pieces = pieces;
    answering.response.on("close", () => {
      this.#isOpen = false;
      this.#connection?.off("drain", this.#drained);
    });
  }

  readonly #drained = (): void => {
    for (const drain of this.#drains) drain();
  };

  get pending(): number {
    return this.#waiting + (this.#connection ?? this.#answering.response).writableLength;
  }

  open(contentType: string): void {
    const { response, warnings } = this.#answering;
    response.writeHead(200, {
      "content-type": contentType,
      "cache-control": "no-cache, private",
      ...(warnings.length > 0 ? { warning: warningHeaders(warnings) } : {}),
    });
    // Sends the headers now: a client must know that its watch stands before the first event.
    response.flushHeaders();
    this.#connection = chunkedConnection(response);
    if (this.#connection) this.#connection.on("drain", this.#drained);
    else response.on("drain", this.#drained);
  }

  send(line: Buffer): void {
    if (!this.#isOpen) return;
    this.#lines.push(line);
    this.#waiting += line.length;
  }

  flush(): void {
    if (this.#lines.length === 0) return;
    const lines = this.#lines;
    this.#lines = [];
    this.#waiting = 0;
    if (!this.#isOpen) return;
    const piece = this.#pieces.join(lines, this.#connection !== undefined);
    if (this.#connection) this.#connection.write(piece);
    else this.#answering.response.write(piece);
  }

  end(): void {
    this.flush();
    if (this.#isOpen) this.#answering.response.end();
  }

  onDrain(callback: () => void): void {
    this.#drains.push(callback);
  }

  onClose(callback: () => void): void {
    this.#answering.response.on("close", callback);
  }
}
