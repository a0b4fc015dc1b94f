/**
 * The network as a parameter: opening connections and resolving names.
 *
 * Whoever dials takes a {@link Network}, so that a simulation can drop, delay and cut, and so that
 * the address rules of discovery and of the outbound client have one place to stand.
 */
import { lookup } from "node:dns/promises";
import net from "node:net";
import type { Duplex } from "node:stream";
import { CodedError } from "./errors.ts";

/** Where to connect. */
export interface DialTarget {
  /** IP address or host name. */
  readonly host: string;
  readonly port: number;
  /** Gives up after so many milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Own address to connect from. Default: the system's choice. */
  readonly localAddress?: string;
}

/** Outgoing connections and name lookups. */
export interface Network {
  /** Opens a TCP connection. Fails with `unavailable` or `deadline_exceeded`. */
  dial(target: DialTarget): Promise<Duplex>;
  /** All addresses of a name, in resolver order. An address resolves to itself. */
  resolve(host: string): Promise<readonly string[]>;
}

/** The machine's network. */
export const systemNetwork: Network = {
  dial({ host, port, timeoutMs = 10_000, signal, localAddress }) {
    return new Promise((resolve, reject) => {
      const socket = net.connect({
        host,
        port,
        noDelay: true,
        ...(localAddress === undefined ? {} : { localAddress }),
      });
      const done = (): void => {
        socket.removeAllListeners();
        signal?.removeEventListener("abort", onAbort);
        socket.setTimeout(0);
      };
      const fail = (error: CodedError): void => {
        done();
        socket.on("error", () => {});
        socket.destroy();
        reject(error);
      };
      const onAbort = (): void =>
        fail(new CodedError("cancelled", `connecting to ${host}:${port} was cancelled`));
      socket.setTimeout(timeoutMs, () =>
        fail(new CodedError("deadline_exceeded", `${host}:${port} did not answer within ${timeoutMs} ms`)),
      );
      socket.once("connect", () => {
        done();
        resolve(socket);
      });
      socket.once("error", (cause) =>
        fail(new CodedError("unavailable", `cannot connect to ${host}:${port}: ${cause.message}`, { cause })),
      );
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) onAbort();
    });
  },
  async resolve(host) {
    if (net.isIP(host)) return [host];
    try {
      return (await lookup(host, { all: true, verbatim: true })).map((entry) => entry.address);
    } catch (cause) {
      throw new CodedError("unavailable", `cannot resolve host name ${JSON.stringify(host)}`, { cause });
    }
  },
};
