/**
 * The names and addresses a hub's own certificate is good for.
 */
import net from "node:net";
import os from "node:os";
import { isDnsSubdomain } from "@kontinuum/std";
import type { Config } from "../config/config.ts";
import { hostOf } from "../config/listen-address.ts";

/** Most names in a certificate: a machine with many addresses is named by the first of them. */
const maxNames = 64;

/** What the outside world calls this process: the zones' endpoint first, then where it listens, then this machine. */
export function servingNames(
  config: Config,
  host: { readonly name: string; readonly addresses: readonly string[] } = thisMachine(),
): readonly string[] {
  const names = [
    hostOf(config.grpc.endpoint),
    config.listen.host,
    URL.parse(config.oidc?.redirectUrl ?? "")?.hostname ?? "",
    "localhost",
    "127.0.0.1",
    "::1",
    host.name.toLowerCase(),
    ...host.addresses,
  ];
  const usable = names.filter(
    (name) => !["::", "0.0.0.0"].includes(name) && (net.isIP(name) || isDnsSubdomain(name)),
  );
  return [...new Set(usable)].slice(0, maxNames);
}

function thisMachine(): { name: string; addresses: string[] } {
  const addresses = Object.values(os.networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .map(({ address }) => address);
  return { name: os.hostname(), addresses };
}
