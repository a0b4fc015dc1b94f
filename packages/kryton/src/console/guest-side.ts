/**
 * The guest's end of a console, whichever way it is reached: a VNC connection, or the WebSocket of a web console.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket as Socket } from "ws";
import { KrytonError } from "../model/errors.ts";
import { forwardedHeaders, upstreamPath } from "./web-proxy.ts";

const handshakeMs = 10_000;
const maxPayload = 4 * 1024 * 1024;

/** One end that bytes go to and come from. */
export interface GuestSide {
  /** Subprotocol the browser is to be told; empty: none. */
  readonly protocol: string;
  /** Bytes that wait to be taken by the guest. */
  waiting(): number;
  send(bytes: Buffer, binary: boolean, done: () => void): void;
  listen(onData: (bytes: Buffer, binary: boolean) => void, onEnd: () => void): void;
  pause(): void;
  resume(): void;
  close(): void;
}

/** A VNC connection. */
export function vncSide(guest: Duplex): GuestSide {
  return {
    protocol: "binary",
    waiting: () => guest.writableLength,
    send: (bytes, _binary, done) => void guest.write(bytes, () => done()),
    listen(onData, onEnd) {
      guest.on("data", (chunk: Buffer) => onData(chunk, true));
      guest.once("close", onEnd);
      guest.once("error", onEnd);
    },
    pause: () => void guest.pause(),
    resume: () => void guest.resume(),
    close: () => void guest.destroy(),
  };
}

/** Opens the WebSocket of a web console at the path the browser asked for. Fails with `CONSOLE_UNAVAILABLE`. */
export async function openWebSide(
  incoming: IncomingMessage,
  machineId: string,
  upstreamUrl: string,
): Promise<GuestSide> {
  const { WebSocket } = await import("ws");
  const unavailable = (cause: unknown): KrytonError =>
    new KrytonError("CONSOLE_UNAVAILABLE", "the machine's console does not answer", { cause });
  let upstream: URL;
  try {
    upstream = new URL(upstreamPath(incoming.url ?? "", machineId), upstreamUrl);
  } catch (cause) {
    throw unavailable(cause);
  }
  upstream.protocol = upstream.protocol === "https:" ? "wss:" : "ws:";
  const offered = (incoming.headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
  const headers = Object.fromEntries(
    Object.entries(forwardedHeaders(incoming.headers, upstream.host)).flatMap(([name, value]) =>
      typeof value === "string" &&
      !name.startsWith("sec-websocket-") &&
      name !== "upgrade" &&
      name !== "origin"
        ? [[name, value]]
        : [],
    ),
  );
  const protocols = offered.filter((name) => /^[A-Za-z0-9._-]{1,64}$/.test(name));
  const socket: Socket = new WebSocket(upstream, protocols, {
    headers,
    handshakeTimeout: handshakeMs,
    maxPayload,
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("open", () => {
      // Nothing that comes before somebody listens may be lost.
      socket.pause();
      resolve();
    });
    socket.once("error", (cause) => reject(unavailable(cause)));
  });
  return webSide(socket);
}

function webSide(socket: Socket): GuestSide {
  return {
    protocol: socket.protocol,
    waiting: () => socket.bufferedAmount,
    send: (bytes, binary, done) => socket.send(bytes, { binary }, () => done()),
    listen(onData, onEnd) {
      socket.on("message", (data, binary) => onData(bytesOf(data), binary));
      socket.once("close", onEnd);
      socket.once("error", onEnd);
      socket.resume();
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: () => socket.terminate(),
  };
}

/** The bytes of a WebSocket message. */
export function bytesOf(data: Buffer | ArrayBuffer | Buffer[]): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}
