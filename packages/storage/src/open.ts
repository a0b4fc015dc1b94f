/**
 * A store from its URL: the one place that knows which schemes exist.
 */
import { CodedError, type Edges } from "@kontinuum/std";
import type { Store } from "./contract.ts";
import { etcdTarget } from "./drivers/etcd/etcd-url.ts";
import { MemoryBackend } from "./drivers/memory/memory-backend.ts";
import { EncryptedStore, type EncryptionOptions } from "./encryption/encrypted-store.ts";
import type { Retention } from "./engine/compactor.ts";
import { EngineStore } from "./engine/engine-store.ts";

/** How to open a store. */
export interface OpenOptions {
  /** How much history is kept; parts left out have their defaults. */
  readonly retention?: Partial<Retention>;
  /** Seals values under the prefixes; absent: nothing is sealed, and sealed values stay sealed. */
  readonly encryption?: Omit<EncryptionOptions, "random">;
}

/** Most revisions that `memory://` keeps by default. */
const memoryRevisions = 20_000;

/** The forms of URL that {@link openStore} takes, for messages and help texts. */
export const storeUrlForms = [
  "memory://",
  "sqlite://PATH",
  "postgres://USER@HOST/DATABASE",
  "etcd://HOST:PORT[,HOST:PORT…]",
  "grpc://HOST:PORT",
  "unix:///PATH",
] as const;

/**
 * Opens a store. `memory://` lives in this process; `sqlite://PATH` (`sqlite:///absolute` or
 * `sqlite://relative/to/here`) owns its file until it is closed.
 * Fails with `invalid_argument` for a URL that is none of {@link storeUrlForms}.
 */
export async function openStore(url: string, edges: Edges, options: OpenOptions = {}): Promise<Store> {
  const store = await openPlain(url, edges, options);
  if (!options.encryption) return store;
  try {
    return await EncryptedStore.over(store, { ...options.encryption, random: edges.random });
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function openPlain(url: string, edges: Edges, options: OpenOptions): Promise<Store> {
  if (url === "")
    throw new CodedError(
      "invalid_argument",
      `the storage URL is empty: use one of ${storeUrlForms.join(", ")}`,
    );
  const match = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/s.exec(url);
  const scheme = match?.[1];
  const rest = match?.[2] ?? "";
  switch (scheme) {
    case "memory":
      return new EngineStore(new MemoryBackend(edges), edges, {
        maxRevisions: memoryRevisions,
        ...options.retention,
      });
    // The others are loaded when asked for: a process speaks to one database, and need not hold the rest in memory.
    case "sqlite": {
      const path = sqlitePath(rest);
      const { SqliteBackend } = await import("./drivers/sqlite/sqlite-backend.ts");
      return new EngineStore(SqliteBackend.open(path, edges), edges, options.retention);
    }
    case "postgres":
    case "postgresql": {
      const { PostgresBackend } = await import("./drivers/postgres/postgres-backend.ts");
      return new EngineStore(await PostgresBackend.open(url, edges), edges, options.retention);
    }
    case "etcd":
    case "grpc":
    case "unix": {
      const target = etcdTarget(scheme, rest);
      const { connectEtcd } = await import("./drivers/etcd/etcd-store.ts");
      return connectEtcd(target, edges, scheme);
    }
    default:
      throw new CodedError(
        "invalid_argument",
        `storage scheme ${JSON.stringify(scheme ?? "")} is not supported: use one of ${storeUrlForms.join(", ")}`,
      );
  }
}

function sqlitePath(rest: string): string {
  const path = rest.split("?", 1)[0] ?? "";
  if (path === "" || path === "/")
    throw new CodedError("invalid_argument", "a SQLite storage URL names a file: sqlite://PATH");
  return decodeURIComponent(path);
}
