/**
 * Where the bytes of an event stream go.
 *
 * A piece is put together once for all streams that get the same. Over HTTP/1.1 it carries its chunk's framing
 * (RFC 9112, 7.1) and is written to the connection as it is: framing it for each of many streams costs more than
 * everything else that is done for them.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Bytes for one stream or for many. */
export class Piece {
  readonly bytes: Buffer;
  #chunk: Buffer | undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** A piece of text. */
  static of(text: string): Piece {
    return new Piece(Buffer.from(text, "utf8"));
  }

  get length(): number {
    return this.bytes.length;
  }

  /** As one chunk of HTTP/1.1, made once. Not for an empty piece: that would end the answer. */
  get chunk(): Buffer {
    this.#chunk ??= Buffer.concat([
      Buffer.from(`${this.bytes.length.toString(16)}\r\n`, "latin1"),
      this.bytes,
      chunkEnd,
    ]);
    return this.#chunk;
  }
}

const chunkEnd = Buffer.from("\r\n", "latin1");

/** The part of a response a stream needs. */
export interface StreamSink {
  /** Writes a piece that is not empty. */
  write(piece: Piece): void;
  /** Writes a last piece, if any, and ends the answer. */
  end(piece?: Piece): void;
  /** Ends the connection, whatever is still on its way. */
  destroy(): void;
  /** Calls back once everything written was taken; only after {@link StreamSink.onTheWay} was not 0. */
  onceDrained(listener: () => void): void;
  /** Bytes written and not yet taken by the connection. */
  readonly onTheWay: number;
}

/** The sink of an answer whose head was written. */
export function responseSink(response: ServerResponse): StreamSink {
  // Sends the head now. Without chunks (HTTP/1.0), or behind another answer, Node has to do the writing.
  response.flushHeaders();
  const connection: Socket | undefined = response.chunkedEncoding
    ? (response.socket ?? undefined)
    : undefined;
  const output = connection ?? response;
  return {
    write: (piece) => void (connection ? writeTo(connection, piece) : response.write(piece.bytes)),
    end: (piece) => void response.end(piece?.bytes),
    destroy: () => void response.destroy(),
    onceDrained: (listener) => void output.once("drain", listener),
    get onTheWay() {
      return output.writableLength;
    },
  };
}

function writeTo(connection: Socket, piece: Piece): void {
  if (connection.writable) connection.write(piece.chunk);
}
