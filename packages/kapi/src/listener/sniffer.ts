/**
 * Looks at a connection's first bytes and says which protocol it speaks: TLS, HTTP/2 by prior knowledge, HTTP/1.1.
 *
 * Bytes are kept aside until the answer is known, then put back in one piece: putting them back earlier would make the
 * stream readable again at once and spin.
 */
import type { Socket } from "node:net";
import type { Clock } from "@kontinuum/std";

/** What a connection speaks. */
export type Protocol = "tls" | "h2" | "h1";

/** The start of the HTTP/2 preface (RFC 9113, 3.4): no HTTP/1.1 request line begins so. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n");
const tlsHandshake = 0x16;

/** The protocol of some first bytes; `undefined` while undecided. */
export function protocolOf(bytes: Buffer): Protocol | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes[0] === tlsHandshake) return "tls";
  const length = Math.min(bytes.length, preface.length);
  if (preface.compare(bytes, 0, length, 0, length) !== 0) return "h1";
  return length === preface.length ? "h2" : undefined;
}

/** Calls back once with the protocol; a connection that stays silent or breaks is destroyed. */
export function sniff(
  socket: Socket,
  clock: Clock,
  timeoutMs: number,
  decided: (protocol: Protocol) => void,
): void {
  const chunks: Buffer[] = [];
  const onError = (): void => void socket.destroy();
  const done = (): void => {
    timer.clear();
    socket.off("data", onData);
    socket.off("error", onError);
    socket.off("close", done);
  };
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk);
    const bytes = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    const protocol = protocolOf(bytes);
    if (!protocol) return;
    done();
    socket.pause();
    socket.unshift(bytes);
    decided(protocol);
  };
  const timer = clock.timer(timeoutMs, () => {
    done();
    socket.on("error", () => {});
    socket.destroy();
  });
  socket.on("error", onError);
  socket.on("close", done);
  socket.on("data", onData);
}
