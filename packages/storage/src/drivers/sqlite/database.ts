/**
 * Opening the SQLite file: who owns it, whether it is ours, its schema and its settings.
 *
 * WAL; the flush that `synchronous=FULL` would make inside each commit is made after it, off the event loop (`wal-flush.ts`).
 * Incremental vacuum gives freed pages back while serving. The file and its companions are readable by the owner only.
 */
import { CodedError } from "@kontinuum/std";
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  realpathSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fault } from "../../faults.ts";
import { clearOwner, describeOwner, recordOwner } from "./ownership.ts";
import { isBusy, sqliteFault } from "./sqlite-faults.ts";

/** Marks a SQLite file as ours ("KNTS"), so that a foreign one is never written to. */
export const applicationId = 0x4b4e5453;
/** Version of the schema below. */
export const schemaVersion = 1;
/**
 * Bytes of the write-ahead log at which it is folded into the file, and to which it is cut back after that. Index
 * pages that many writes touch are then written once; recovery after a crash still takes a fraction of a second.
 */
const walLimitBytes = 32 * 1024 * 1024;
const pageBytes = 4_096;
/** Bytes of SQLite's own page cache. */
const pageCacheBytes = 32 * 1024 * 1024;

/**
 * - `log`: every retained change; `id` rises with time, a change's `prev` is the log entry it replaced
 *   (0 for a creation), `version` 0 marks a deletion.
 * - `head`: the newest entry of each live key.
 * - `log_turn` finds creations and deletions after a revision: what counting in the past needs.
 */
const schema = `
CREATE TABLE log(
  id INTEGER PRIMARY KEY, rev INTEGER NOT NULL, key BLOB NOT NULL, created INTEGER NOT NULL,
  version INTEGER NOT NULL, lease INTEGER NOT NULL, prev INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX log_rev ON log(rev);
CREATE UNIQUE INDEX log_key ON log(key, rev, version);
CREATE INDEX log_turn ON log(rev, key, version) WHERE version <= 1;
CREATE TABLE head(key BLOB PRIMARY KEY, id INTEGER NOT NULL, lease INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX head_lease ON head(lease, key) WHERE lease <> 0;
CREATE TABLE lease(id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL, expires_at INTEGER NOT NULL);
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', 1), ('compact', 0), ('swept', 0);
`;

/** Opens, owns and, when new, creates the database at `path`. A path that cannot be used is `invalid_argument`. */
export function openDatabase(path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    create0600(path);
    db = new DatabaseSync(path, { timeout: 250 });
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    // The first read takes the lock; a busy file says so here.
    const kind = inspect(db, path);
    if (kind === "new") db.exec("PRAGMA auto_vacuum = INCREMENTAL");
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -${pageCacheBytes / 1024}; PRAGMA journal_size_limit = ${walLimitBytes}; PRAGMA wal_autocheckpoint = ${walLimitBytes / pageBytes};`);
    // Exclusive mode keeps the write lock from the first write transaction on.
    db.exec("BEGIN EXCLUSIVE");
    if (kind === "new") {
      db.exec(schema);
      db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion};`);
    }
    db.exec("COMMIT");
    // From here on who commits also flushes.
    db.exec("PRAGMA synchronous = NORMAL");
    recordOwner(path);
    for (const file of [path, `${path}-wal`]) if (existsSync(file)) chmodSync(file, 0o600);
    return db;
  } catch (error) {
    db?.close();
    if (isBusy(error))
      throw new CodedError(
        "failed_precondition",
        `${path} is already in use by ${describeOwner(path)}: stop it first, or use PostgreSQL or etcd for several processes`,
        { cause: error },
      );
    throw sqliteFault(error, path);
  }
}

/** Closes the database, folding the write-ahead log into the file. */
export function closeDatabase(db: DatabaseSync, path: string): void {
  db.close();
  clearOwner(path);
}

/** An absolute path without links, so that two names of one file are one owner. */
export function canonicalPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

function create0600(path: string): void {
  if (existsSync(path)) {
    if (!statSync(path).isFile())
      throw new CodedError("invalid_argument", `${path} is not a file: give the path of a SQLite database`);
    writable(path);
    return;
  }
  try {
    closeSync(openSync(path, "a", 0o600));
  } catch (cause) {
    throw new CodedError(
      "invalid_argument",
      `${path} cannot be created: check that its folder exists and may be written`,
      { cause },
    );
  }
}

/** SQLite itself would only speak of an input/output error when it cannot make its write-ahead log. */
function writable(path: string): void {
  try {
    for (const each of [path, dirname(path)]) accessSync(each, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw new CodedError(
      "invalid_argument",
      `${path} or its folder cannot be written: check the mount and its permissions`,
      { cause },
    );
  }
}

function inspect(db: DatabaseSync, path: string): "new" | "ours" {
  const pragma = (name: string): number => {
    const row: Record<string, unknown> | undefined = db.prepare(`PRAGMA ${name}`).get();
    const value = row?.[name];
    return typeof value === "number" ? value : 0;
  };
  const tables = db.prepare("SELECT count(*) AS n FROM sqlite_schema").get();
  const id = pragma("application_id");
  if (tables?.["n"] === 0 && id === 0) return "new";
  if (id !== applicationId)
    throw fault("corrupt", `${path} is a SQLite database of another program: choose another path`);
  const version = pragma("user_version");
  if (version > schemaVersion)
    throw new CodedError(
      "failed_precondition",
      `${path} has schema version ${version}, this program knows ${schemaVersion}: use the newer release that wrote it`,
    );
  return "ours";
}
