/**
 * Long answers in pieces: memory holds one of them, whatever the length of the whole, a piece is made when the client
 * has taken the one before, and between pieces others' requests get their turn.
 */
import type { HttpResponse } from "../contract.ts";

/** Bytes of a piece; a single larger part makes a larger one. */
export const pieceBytes = 256 * 1024;
/** Bytes written before others' work gets a turn. */
const turnBytes = 1024 * 1024;

/** Joins parts to pieces. */
export class PieceBuilder {
  #bytes: Buffer;
  #end = 0;

  /** `expected`: about how many bytes there will be, so that a short answer takes no more memory than it needs. */
  constructor(expected: number) {
    this.#bytes = Buffer.allocUnsafe(Math.min(expected, pieceBytes));
  }

  /** Adds a text of Latin-1 characters and bytes behind it; answers a piece when one is full. */
  add(head: string, bytes: Buffer): Buffer | undefined {
    const size = head.length + bytes.length;
    let full: Buffer | undefined;
    if (this.#end + size > this.#bytes.length) {
      full = this.#end > 0 ? this.rest() : undefined;
      this.#bytes = Buffer.allocUnsafe(Math.max(size, pieceBytes));
      this.#end = 0;
    }
    this.#end += this.#bytes.write(head, this.#end, "latin1");
    this.#end += bytes.copy(this.#bytes, this.#end);
    return full;
  }

  /** What was added since the last piece. */
  rest(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }
}

/** The next turn of the event loop: what waits for it goes on first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Writes all pieces; ends early, without an error, when the client is gone. Does not end the answer. */
export async function writePieces(
  response: HttpResponse,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  let isClosed = false;
  let wake: (() => void) | undefined;
  response.on("drain", () => wake?.());
  response.on("close", () => {
    isClosed = true;
    wake?.();
  });
  let written = 0;
  for await (const piece of pieces) {
    if (isClosed) return;
    if (!response.write(piece)) {
      await new Promise<void>((resolve) => (wake = resolve));
      wake = undefined;
    }
    written += piece.length;
    if (written < turnBytes) continue;
    written = 0;
    await nextTurn();
  }
}
