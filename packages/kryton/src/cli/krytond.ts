/**
 * `krytond`: the machine API as a process of its own.
 *
 * Configured by environment variables only. Exit status 0 after a clean stop, 1 when the listener
 * failed, 2 for a configuration that is refused: one line says which variable and what to do.
 */
import { CodedError, createLog, ensureFolder, isCoded, messageOf, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage/client";
import { dirname } from "node:path";
import { readConfig, type Config } from "../config/config.ts";
import { createKryton, type Kryton } from "../server.ts";
import { limited } from "../provider-contract/limited.ts";
import { openSealer } from "../store/encryption-key.ts";
import { refuseOldNode } from "./node-version.ts";

/** How long the store may take to answer at start, milliseconds. */
const storeLimitMs = 10_000;

const usage = `krytond serves the Kryton machine API.

Usage: krytond [--help | --version]

It is configured by environment variables, among them:
  KRYTON_ADDR            where to listen (default :8080; 127.0.0.1:8080 while authentication is off)
  KRYTON_PROVIDER        demo (default); dockur, libvirt and KubeVirt are the
                         contract's other providers, not in this build yet
  KRYTON_PROJECTS        comma-separated projects (default: default)
  KRYTON_AUTH_MODE       apikey, proxy or disabled
  KRYTON_API_KEYS_FILE   digests of API keys, for apikey
  KRYTON_STORAGE         memory://, sqlite://PATH, postgres://… or etcd://…
`;

/** Runs until SIGTERM or SIGINT; the result is the exit status. */
export async function krytond(args: readonly string[]): Promise<number> {
  if (args.some((arg) => arg === "--help" || arg === "-h")) {
    process.stdout.write(usage);
    return 0;
  }
  if (args.includes("--version")) {
    process.stdout.write("krytond 1.0.0\n");
    return 0;
  }
  if (args.length > 0) {
    process.stderr.write(`krytond: unknown argument ${JSON.stringify(args[0])}; see krytond --help\n`);
    return 2;
  }
  const edges = systemEdges({ log: createLog({ level: "info", format: "json" }) });
  let config: Config;
  let kryton: Kryton;
  let close: () => Promise<void>;
  try {
    config = readConfig(process.env);
    const sqlite = /^sqlite:\/\/([^?]+)/.exec(config.storage)?.[1];
    if (sqlite !== undefined)
      await ensureFolder(dirname(decodeURIComponent(sqlite)), { setting: "KRYTON_STORAGE" });
    const storage = config.storage;
    const store = await limited(edges.clock, storeLimitMs, () => openStore(storage, edges)).catch(
      (error: unknown) => {
        if (!isCoded(error, "deadline_exceeded")) throw error;
        throw new CodedError(
          "unavailable",
          `KRYTON_STORAGE: the store did not answer within ${storeLimitMs / 1000} s`,
        );
      },
    );
    const sealer = await openSealer(
      { file: config.encryptionKeyFile, storage: config.storage },
      store,
      edges,
    );
    kryton = await createKryton({ store, edges, config, sealer });
    close = () => store.close();
  } catch (error) {
    process.stderr.write(`krytond: ${error instanceof CodedError ? error.message : messageOf(error)}\n`);
    return 2;
  }
  if (config.authMode === "disabled" && config.host !== "127.0.0.1") {
    edges.log.warn("authentication is off: whoever reaches this address controls every machine", {
      address: `${config.host}:${config.port}`,
    });
  }
  const stop = Promise.withResolvers<void>();
  process.once("SIGTERM", () => stop.resolve());
  process.once("SIGINT", () => stop.resolve());
  try {
    await kryton.start();
  } catch (error) {
    process.stderr.write(`krytond: ${messageOf(error)}\n`);
    await kryton.stop();
    await close();
    return 1;
  }
  edges.log.info("krytond serves", { url: kryton.url, provider: config.provider, auth: config.authMode });
  await stop.promise;
  edges.log.info("krytond stops");
  await kryton.stop();
  await close();
  return 0;
}

if (import.meta.main) {
  refuseOldNode("krytond");
  const status = await krytond(process.argv.slice(2));
  // What a failed start has opened must not keep the process.
  if (status === 0) process.exitCode = 0;
  else process.exit(status);
}
