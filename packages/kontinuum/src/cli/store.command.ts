/**
 * `kontinuum store`: the store by itself: its etcd face, its state, backups.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { CodedError, ensureFolder, messageOf } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import { redactConnectionString } from "../config/redact.ts";
import { readValues } from "../config/variables.ts";
import { parseListenAddress } from "../config/listen-address.ts";
import type { Terminal } from "./terminal.ts";

/** Where the store is: the same two settings as `serve`. */
interface StoreChoice {
  readonly storage?: string | undefined;
  readonly encryptionKeyFile?: string | undefined;
}

/** The command group `store`. */
export function storeCommand(terminal: Terminal): CommandUnknownOpts {
  const group = new Command("store").description("The store by itself: etcd face, state, backups.");
  const commands: readonly CommandUnknownOpts[] = [
    serveCommand(terminal),
    statusCommand(terminal),
    verifyCommand(terminal),
    compactCommand(terminal),
    backupCommand(terminal),
    restoreCommand(terminal),
    copyCommand(terminal),
    createKeyCommand(terminal),
  ];
  for (const command of commands) group.addCommand(command);
  return group;
}

const storageFlag = [
  "--storage <address>",
  "storage connection string (default: KONTINUUM_SERVER_STORAGE)",
] as const;
const keyFlag = [
  "--encryption-key-file <file>",
  "encryption key (default: KONTINUUM_SERVER_ENCRYPTION_KEY_FILE, or beside the SQLite file)",
] as const;
const examples = (...lines: string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`;

/** The chosen store: flags over environment over defaults. */
function chosen(terminal: Terminal, choice: StoreChoice): { readonly url: string; readonly keyFile: string } {
  const values = readValues(terminal.environment, {
    ...(choice.storage === undefined ? {} : { KONTINUUM_SERVER_STORAGE: choice.storage }),
    ...(choice.encryptionKeyFile === undefined
      ? {}
      : { KONTINUUM_SERVER_ENCRYPTION_KEY_FILE: choice.encryptionKeyFile }),
  });
  return { url: values.KONTINUUM_SERVER_STORAGE, keyFile: values.KONTINUUM_SERVER_ENCRYPTION_KEY_FILE };
}

/** Opens the chosen store as `serve` would, runs `work` and closes it. */
async function withStore(
  terminal: Terminal,
  choice: StoreChoice,
  work: (store: Store, url: string) => Promise<void>,
): Promise<void> {
  const { url, keyFile } = chosen(terminal, choice);
  const { openEncryptedStore } = await import("../serve/process-store.ts");
  const store = await openEncryptedStore(url, keyFile, terminal.edges);
  try {
    await work(store, url);
  } finally {
    await store.close();
  }
}

function serveCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("serve")
    .description("Serve the store's etcd face, for etcdctl and API servers, until Ctrl-C.")
    .option(...storageFlag)
    .option(...keyFlag)
    .option(
      "--addr <host:port>",
      "listen address; plain text, so loopback unless it has TLS",
      "127.0.0.1:2379",
    )
    .option("--tls-cert <file>", "PEM certificate chain")
    .option("--tls-key <file>", "PEM private key")
    .option("--tls-client-ca <file>", "PEM authorities; clients must show a certificate of theirs")
    .addHelpText(
      "after",
      examples(
        "kontinuum store serve --storage sqlite://kontinuum.db",
        "etcdctl --endpoints 127.0.0.1:2379 get --prefix /registry/ --keys-only",
      ),
    )
    .action(async (options) => {
      const { host, port, loopback } = parseListenAddress("--addr", options.addr, true);
      const tls = await readTls(options);
      if (!loopback && !tls?.ca) {
        throw new CodedError(
          "invalid_argument",
          "--addr beyond loopback needs --tls-cert, --tls-key and --tls-client-ca: whoever reaches it reads and writes everything",
        );
      }
      await withStore(terminal, options, async (store) => {
        const { serveEtcd } = await import("@kontinuum/storage");
        const server = await serveEtcd(store, { host, port, ...(tls ? { tls } : {}) });
        terminal.stdout.write(`store serves etcd at ${server.url}\n`);
        await untilAborted(terminal.signal);
        await server.close();
      });
    });
}

function statusCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("status")
    .description("Show driver, revision and size.")
    .option(...storageFlag)
    .option(...keyFlag)
    .option("-o, --output <format>", "table or json", "table")
    .addHelpText(
      "after",
      examples("kontinuum store status", "kontinuum store status --storage sqlite://kontinuum.db -o json"),
    )
    .action(async (options) => {
      await withStore(terminal, options, async (store, url) => {
        const status = { storage: redactConnectionString(url), ...(await store.status()) };
        if (options.output === "json") terminal.stdout.write(`${JSON.stringify(status, null, 2)}\n`);
        else
          for (const [name, value] of Object.entries(status))
            terminal.stdout.write(`${name.padEnd(16)} ${String(value)}\n`);
      });
    });
}

function verifyCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("verify")
    .description("Read everything and check what must hold.")
    .option(...storageFlag)
    .option(...keyFlag)
    .addHelpText("after", examples("kontinuum store verify --storage sqlite://kontinuum.db"))
    .action(async (options) => {
      await withStore(terminal, options, async (store) => {
        const { verifyStore } = await import("@kontinuum/storage");
        const { problems, pairs, revision } = await verifyStore(store);
        for (const problem of problems) terminal.stdout.write(`${problem}\n`);
        if (problems.length > 0)
          throw new CodedError(
            "data_loss",
            `${problems.length} problems in ${pairs} pairs: restore a backup`,
          );
        terminal.stdout.write(`${pairs} pairs at revision ${revision}: all well\n`);
      });
    });
}

function compactCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("compact")
    .description("Drop history, keeping the newest revisions.")
    .option(...storageFlag)
    .option(...keyFlag)
    .option("--keep <revisions>", "revisions to keep", "1000")
    .addHelpText("after", examples("kontinuum store compact --keep 1000"))
    .action(async (options) => {
      const keep = Number(options.keep);
      if (!Number.isSafeInteger(keep) || keep < 0)
        throw new CodedError(
          "invalid_argument",
          `--keep must be a whole number, not ${JSON.stringify(options.keep)}`,
        );
      await withStore(terminal, options, async (store) => {
        const { compactStore } = await import("@kontinuum/storage");
        terminal.stdout.write(`compacted at revision ${await compactStore(store, { keep })}\n`);
      });
    });
}

function backupCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("backup")
    .description("Write a verified backup, while the store is in use or not. Secrets stay encrypted in it.")
    .argument("<file>", "file to write; must not exist")
    .option(...storageFlag)
    .option(...keyFlag)
    .addHelpText("after", examples("kontinuum store backup kontinuum-2026-11-30.backup"))
    .action(async (file, options) => {
      await withStore(terminal, options, async (store) => {
        const { backupToFile } = await import("@kontinuum/storage");
        const { pairs, revision } = await backupToFile(store, file, {
          signal: terminal.signal,
          clock: terminal.edges.clock,
        });
        terminal.stdout.write(
          `${pairs} pairs at revision ${revision} written to ${file}; keep the encryption key apart from it\n`,
        );
      });
    });
}

function restoreCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("restore")
    .description("Fill an empty store from a backup.")
    .argument("<file>", "backup")
    .option(...storageFlag)
    .option(...keyFlag)
    .addHelpText(
      "after",
      examples(
        "kontinuum store restore kontinuum-2026-11-30.backup --storage sqlite://new.db --encryption-key-file kontinuum.db.key",
      ),
    )
    .action(async (file, options) => {
      const { url, keyFile } = chosen(terminal, options);
      const { openSealedStore } = await import("../serve/process-store.ts");
      const { restoreBackup } = await import("@kontinuum/storage");
      // The backup's values are sealed already: they go in as they are, once the key was shown to open them.
      const { store, keys } = await openSealedStore(url, keyFile, terminal.edges);
      try {
        const { pairs, revision } = await restoreBackup(file, store, keys ? { keys } : {});
        terminal.stdout.write(
          `${pairs} pairs restored; the store is at revision ${revision}; serve it with the same encryption key\n`,
        );
      } finally {
        await store.close();
      }
    });
}

function copyCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("copy")
    .description("Copy a store into an empty one of any kind, at one revision. Sealed values stay sealed.")
    .requiredOption("--from <address>", "storage connection string of the source")
    .requiredOption("--to <address>", "storage connection string of the empty target")
    .addHelpText(
      "after",
      examples(
        "kontinuum store copy --from sqlite://kontinuum.db --to postgres://kontinuum@127.0.0.1/kontinuum",
      ),
    )
    .action(async ({ from, to }) => {
      const { copyStore, openStore } = await import("@kontinuum/storage");
      const { edges, signal } = terminal;
      // Both without a key: what is sealed is copied as it is, so whoever copies need not be able to read it.
      const source = await openStore(from, edges);
      try {
        const target = await openStore(to, edges);
        try {
          const { pairs, revision } = await copyStore(source, target, { signal, clock: edges.clock });
          terminal.stdout.write(
            `${pairs} pairs copied; the target is at revision ${revision}; it needs the encryption key of the source\n`,
          );
        } finally {
          await target.close();
        }
      } finally {
        await source.close();
      }
    });
}

function createKeyCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("create-key")
    .description("Make an encryption key for a shared store.")
    .argument("<file>", "file to write; must not exist")
    .addHelpText("after", examples("kontinuum store create-key /etc/kontinuum/store.key"))
    .action(async (file) => {
      const { createKeyFile } = await import("@kontinuum/storage");
      await ensureFolder(path.dirname(file), { setting: `key file ${file}` });
      createKeyFile(file, terminal.edges.random);
      terminal.stdout.write(`encryption key written to ${file}; give every hub this file, and back it up\n`);
    });
}

async function readTls(options: {
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly tlsClientCa?: string | undefined;
}): Promise<{ cert: string; key: string; ca?: string } | undefined> {
  const { tlsCert, tlsKey, tlsClientCa } = options;
  if (!tlsCert && !tlsKey) return undefined;
  if (!tlsCert || !tlsKey) throw new CodedError("invalid_argument", "--tls-cert and --tls-key go together");
  const [cert, key] = [await readPemFile(tlsCert), await readPemFile(tlsKey)];
  return tlsClientCa ? { cert, key, ca: await readPemFile(tlsClientCa) } : { cert, key };
}

async function readPemFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CodedError("not_found", `cannot read ${file}: ${messageOf(error)}`);
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
