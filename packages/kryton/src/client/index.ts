/**
 * The typed client of the machine API: for our own command line and pages, and for other programs.
 */
import type { OutboundClient } from "@kontinuum/std";
import { KrytonClient } from "./gen/client.ts";
import { Exchange, type ExchangeOptions } from "./exchange.ts";

export { KrytonClient } from "./gen/client.ts";
export { KrytonClientError, type CallOptions, type ExchangeOptions } from "./exchange.ts";

/** A client for the API at `url`. `outbound` decides which addresses may be called. */
export function createKrytonClient(
  url: string,
  outbound: OutboundClient,
  token?: ExchangeOptions["token"],
): KrytonClient {
  return new KrytonClient(new Exchange({ url, outbound, ...(token ? { token } : {}) }));
}
