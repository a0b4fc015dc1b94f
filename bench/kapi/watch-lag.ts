/**
 * Many watchers of objects that change often: how long after its write was sent each of them has seen it.
 */
import net from "node:net";
import { RawClient, requestBytes } from "./raw-client.ts";

/** Delays in milliseconds, sorted, and which part of all was seen at all. */
export interface Lags {
  readonly sorted: readonly number[];
  readonly seen: number;
}

const url = "/api/v1/namespaces/kube-public/configmaps";
const mark = Buffer.from('"tick":"');
const digits = 7;
/** Objects that are written in turn: writes of one object would wait for each other's commit. */
const tickers = 100;
/** How long the last events may take. */
const graceMs = 5000;

/** Opens `watchers` watches and writes `perSecond` times a second for `seconds`. */
export async function watchLags(
  port: number,
  watchers: number,
  perSecond: number,
  seconds: number,
): Promise<Lags> {
  const writes = perSecond * seconds;
  const sent: number[] = [];
  const lags: number[] = [];
  let open = 0;
  const sockets = Array.from({ length: watchers }, () =>
    watch(
      port,
      () => open++,
      (id) => {
        const at = sent[id];
        if (at !== undefined) lags.push(performance.now() - at);
      },
    ),
  );
  while (open < watchers) await new Promise((resolve) => setTimeout(resolve, 10));
  const writer = await Promise.all(Array.from({ length: 8 }, () => RawClient.connect(port)));
  for (let i = 0; i < tickers; i++)
    await writer[0]?.send(
      requestBytes("POST", url, JSON.stringify({ metadata: { name: `ticker${i}` }, data: {} })),
    );
  const start = performance.now();
  let turn = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(writes, Math.floor(((performance.now() - start) / 1000) * perSecond));
      for (; turn < due; turn++) {
        sent[turn] = performance.now();
        const body = `{"data":{"tick":"${String(turn).padStart(digits, "0")}"}}`;
        const path = `${url}/ticker${turn % tickers}`;
        const request = requestBytes("PATCH", path, body, "application/merge-patch+json");
        void writer[turn % writer.length]?.send(request);
      }
      if (turn < writes) return;
      clearInterval(timer);
      resolve();
    }, 2);
  });
  const until = performance.now() + graceMs;
  while (lags.length < writes * watchers && performance.now() < until)
    await new Promise((resolve) => setTimeout(resolve, 20));
  for (const socket of sockets) socket.destroy();
  for (const client of writer) client.close();
  return { sorted: lags.sort((a, b) => a - b), seen: lags.length / (writes * watchers) };
}

/** One watch; `seen` is told the number of every write it is told about. */
function watch(port: number, opened: () => void, seen: (id: number) => void): net.Socket {
  let isOpen = false;
  const onread = {
    buffer: Buffer.allocUnsafe(64 * 1024),
    callback: (size: number, bytes: Uint8Array): boolean => {
      if (!isOpen) {
        isOpen = true;
        opened();
      }
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, size);
      for (let i = chunk.indexOf(mark); i !== -1; i = chunk.indexOf(mark, i + 1))
        seen(Number(chunk.toString("latin1", i + mark.length, i + mark.length + digits)));
      return true;
    },
  };
  const socket = net.connect({ port, host: "127.0.0.1", onread });
  socket.write(requestBytes("GET", `${url}?watch=1&resourceVersion=0`));
  socket.on("error", () => {});
  return socket;
}
