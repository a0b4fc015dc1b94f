/**
 * A TCP proxy that can lose, delay and refuse: a network with faults between a store and its database.
 */
import net, { type AddressInfo, type Socket } from "node:net";

/** A proxy in front of one port of loopback. */
export interface FlakyProxy {
  readonly port: number;
  /** Cuts every connection. */
  cut(): void;
  /** Nothing passes in either direction until {@link FlakyProxy.resume}. */
  pause(): void;
  resume(): void;
  /** New connections are refused while `true`. */
  refuse(value: boolean): void;
  close(): Promise<void>;
}

/** Starts a proxy to `port`. */
export async function startFlakyProxy(port: number): Promise<FlakyProxy> {
  const sockets = new Set<Socket>();
  let paused = false;
  let refusing = false;
  const server = net.createServer((client) => {
    if (refusing) {
      client.destroy();
      return;
    }
    const upstream = net.connect({ host: "127.0.0.1", port });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("data", (chunk) => to.write(chunk));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      if (paused) from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    cut,
    pause() {
      paused = true;
      for (const socket of sockets) socket.pause();
    },
    resume() {
      paused = false;
      for (const socket of sockets) socket.resume();
    },
    refuse(value) {
      refusing = value;
    },
    close() {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
