/**
 * The store of a process: the hub's own, with Secrets encrypted in it, or, in a zone, the hub's through its
 * etcd face.
 *
 * The encryption key lies outside of what it encrypts. Beside a SQLite file it is made on first start; a
 * shared store needs one that all hubs have, so there it must be given.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { CodedError, ensureFolder, isCoded, type Edges } from "@kontinuum/std";
import {
  createKeyFile,
  EncryptedStore,
  openStore,
  readKeyFile,
  type KeyRing,
  type Store,
} from "@kontinuum/storage";
import type { Config } from "../config/config.ts";
import { redactConnectionString } from "../config/redact.ts";
import { hubTarget, openHubStore } from "../relay/hub-store.ts";
import { whenStoreReady } from "./store-ready.ts";

/** What is encrypted: every Secret, whatever its namespace, and what the hub itself keeps beside the API's objects. */
const encryptedPrefixes = ["/registry/secrets/", "/kontinuum/"] as const;

/** Opens the store of a process. A zone must be given its hub's face, and nothing else. */
export async function openProcessStore(config: Config, edges: Edges): Promise<Store> {
  const url = config.values.KONTINUUM_SERVER_STORAGE;
  const target = hubTarget(url);
  if (config.placement && !target) {
    throw new CodedError(
      "invalid_argument",
      "KONTINUUM_SERVER_STORAGE of a zone must be grpc://<zone>@<host>:<port>: a zone has no store of its own",
    );
  }
  if (target) {
    const store = await openHubStore(target, config, edges);
    return ready(store, `the hub at ${target.endpoint}`, edges);
  }
  const database = sqlitePath(url);
  if (database !== undefined)
    await ensureFolder(path.dirname(database), { setting: "KONTINUUM_SERVER_STORAGE" });
  return openEncryptedStore(url, config.values.KONTINUUM_SERVER_ENCRYPTION_KEY_FILE, edges);
}

/** Opens a hub's own store. `keyFile` is empty for the default place. */
export async function openEncryptedStore(url: string, keyFile: string, edges: Edges): Promise<Store> {
  const needsKey = /^(sqlite|postgres|postgresql|etcd|grpc|unix):/.test(url);
  // Without data that outlives the process there is nothing to encrypt; an unknown scheme is refused by the store.
  if (!needsKey && keyFile === "") return openStore(url, edges);
  const file = keyFile || defaultKeyFile(url);
  // Asked before the store is opened, which would make the database.
  const isNew = keyFile === "" && !existsSync(file);
  if (isNew && existsSync(sqlitePath(url) ?? "")) edges.log.warn("encrypts Secrets from now on", { file });
  const store = await ready(await openStore(url, edges), `the store ${redactConnectionString(url)}`, edges);
  try {
    if (isNew) {
      makeKeyFile(file, edges);
      edges.log.info("made the encryption key; back it up apart from the database", { file });
    }
    const keys = await readKeyFile(file);
    return await EncryptedStore.over(store, { keys, prefixes: encryptedPrefixes, random: edges.random });
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Opens a hub's own store as it lies, without opening what is sealed in it, and the keys that are at hand: those of
 * `keyFile`, or of the default place when something is there.
 */
export async function openSealedStore(
  url: string,
  keyFile: string,
  edges: Edges,
): Promise<{ readonly store: Store; readonly keys: KeyRing | undefined }> {
  const database = sqlitePath(url);
  const file = keyFile || (database === undefined ? "" : `${database}.key`);
  const keys = file !== "" && (keyFile !== "" || existsSync(file)) ? await readKeyFile(file) : undefined;
  return { store: await openStore(url, edges), keys };
}

async function ready(store: Store, name: string, edges: Edges): Promise<Store> {
  try {
    await whenStoreReady(store, name, edges);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function defaultKeyFile(url: string): string {
  const database = sqlitePath(url);
  if (database !== undefined) return `${database}.key`;
  throw new CodedError(
    "invalid_argument",
    "KONTINUUM_SERVER_ENCRYPTION_KEY_FILE is required for a shared store: make a key with kontinuum store create-key FILE and give every hub the same file",
  );
}

function sqlitePath(url: string): string | undefined {
  const encoded = /^sqlite:\/\/([^?]+)/.exec(url)?.[1];
  return encoded === undefined ? undefined : decodeURIComponent(encoded);
}

function makeKeyFile(file: string, edges: Edges): void {
  try {
    createKeyFile(file, edges.random);
  } catch (error) {
    // Another process of this host was faster: its key is the key.
    if (!isCoded(error, "already_exists")) throw error;
  }
}
