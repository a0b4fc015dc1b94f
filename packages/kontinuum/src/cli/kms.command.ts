/**
 * `kontinuum kms`: the key management service for the disks of Talos machines.
 *
 * Who may have a disk key is decided by what the hub knows: the UUID must be that of a registered machine, and the
 * request must come from that machine's address.
 */
import { readFile } from "node:fs/promises";
import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import type { Client } from "@kontinuum/controller";
import { CodedError, createLog, messageOf } from "@kontinuum/std";
import { parseListenAddress } from "../config/listen-address.ts";
import type { Instance } from "../kinds/index.ts";
import { withClient } from "./operator-client.ts";
import type { Terminal } from "./terminal.ts";

/** The command. */
export function kmsCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("kms")
    .description("Serve disk keys to registered Talos machines (sidero.kms), until Ctrl-C.")
    .option("--addr <host:port>", "listen address", ":4050")
    .option("--tls-cert <file>", "PEM certificate chain")
    .option("--tls-key <file>", "PEM private key")
    .option(
      "--root-key-file <file>",
      "32 bytes in base64 or hexadecimal; keep it out of every store it seals",
    )
    .option("--dev", "a root key in memory, everybody allowed, on loopback only")
    .option("--kubeconfig <file>", "kubeconfig of the hub (default: $KUBECONFIG, else ~/.kube/config)")
    .option("--context <name>", "context (default: the current one)")
    .addHelpText(
      "after",
      `
Examples:
  openssl rand -base64 32 > root.key && chmod 600 root.key
  kontinuum kms --tls-cert kms.crt --tls-key kms.key --root-key-file root.key
  kontinuum kms --dev --addr 127.0.0.1:4050`,
    )
    .action(async (options) => {
      const talos = await import("@kontinuum/talos");
      const edges = {
        ...terminal.edges,
        log: createLog({ level: "info", format: "text", destination: terminal.stdout }),
      };
      const { host, port } = parseListenAddress("--addr", options.addr, options.dev === true);
      const serve = async (
        service: Parameters<typeof talos.serveKms>[0]["service"],
        tls?: { cert: string; key: string },
      ) => {
        const server = await talos.serveKms({ service, address: host, port, ...(tls ? { tls } : {}) });
        terminal.stdout.write(`kms serves at ${host}:${server.port}\n`);
        await new Promise<void>((resolve) => {
          if (terminal.signal.aborted) resolve();
          terminal.signal.addEventListener("abort", () => resolve(), { once: true });
        });
        await server.close();
      };
      if (options.dev) return serve(talos.developmentKmsService(edges));
      if (!options.tlsCert || !options.tlsKey || !options.rootKeyFile) {
        throw new CodedError(
          "invalid_argument",
          "--tls-cert, --tls-key and --root-key-file are required, or --dev for a trial on this machine",
        );
      }
      const tls = { cert: await read(options.tlsCert), key: await read(options.tlsKey) };
      const rootKey = talos.parseKmsRootKey(await read(options.rootKeyFile));
      await withClient(terminal, options, async (client) => {
        const allow = (caller: { readonly nodeUuid: string; readonly address: string }): Promise<boolean> =>
          isRegistered(client, caller);
        await serve(talos.kmsService({ rootKey, allow, edges }), tls);
      });
    });
}

async function isRegistered(
  client: Client,
  caller: { readonly nodeUuid: string; readonly address: string },
): Promise<boolean> {
  const { instanceKind } = await import("../kinds/index.ts");
  const { items } = await client.list(instanceKind.resource);
  return items.some((instance) => mayHaveKey(instance, caller));
}

/** Whether the caller is this machine: its UUID, from one of its addresses. */
export function mayHaveKey(
  { status, spec }: Instance,
  caller: { readonly nodeUuid: string; readonly address: string },
): boolean {
  if (!caller.nodeUuid || status?.identity?.uuid?.toLowerCase() !== caller.nodeUuid.toLowerCase())
    return false;
  const own = [
    ...(spec.interfaces ?? []),
    ...(status.interfaces ?? []).flatMap(({ addresses }) =>
      (addresses ?? []).map((cidr) => cidr.split("/")[0] ?? ""),
    ),
  ];
  return own.includes(caller.address);
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CodedError("not_found", `cannot read ${file}: ${messageOf(error)}`);
  }
}
