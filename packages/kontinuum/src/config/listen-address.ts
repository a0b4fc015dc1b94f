/**
 * Listen addresses as Go programs write them: `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`.
 */
import { CodedError } from "@kontinuum/std";

/** Where to listen. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Whether only this machine can reach it. */
  readonly loopback: boolean;
}

/**
 * Parses `text`, which came from `source`. Without a host, all interfaces are meant; but while everybody is
 * anonymous only loopback is, so that a server without authentication is reachable from outside only when
 * its address says so. Fails with `invalid_argument`.
 */
export function parseListenAddress(source: string, text: string, anonymous: boolean): ListenAddress {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65535) {
    throw new CodedError(
      "invalid_argument",
      `${source} must be host:port, such as 127.0.0.1:8080 or :8080, not ${JSON.stringify(text)}`,
    );
  }
  const named = match[1] ?? match[2] ?? "";
  const host = named === "" ? (anonymous ? "127.0.0.1" : "::") : named;
  return { host, port, loopback: isLoopback(host) };
}

/** Host of `host:port`, without brackets; empty for an empty text. */
export const hostOf = (address: string): string => address.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");

/** Whether `host` names this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
