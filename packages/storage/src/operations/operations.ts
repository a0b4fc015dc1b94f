/**
 * What an operator does with a store, as plain functions for a command line: back up to a file, verify,
 * compact. Serving is `serveEtcd`, restoring and copying are in `restore.ts`.
 */
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { CodedError, isCoded, messageOf } from "@kontinuum/std";
import { prefixRange, type Revision, type Store } from "../contract.ts";
import { storedForm } from "../encryption/encrypted-store.ts";
import { EngineStore } from "../engine/engine-store.ts";
import { pagesOf } from "../engine/paging.ts";
import { writeBackup, type BackupOptions } from "./backup.ts";
import { verifyBackup, type BackupSummary } from "./backup-file.ts";

/** Findings that {@link verifyStore} reports before it stops. */
const maxFindings = 100;

/**
 * Writes a backup to a file, 0600, verified before it gets its name; nothing is left behind when it
 * fails. Fails with `already_exists` when the file exists.
 */
export async function backupToFile(
  store: Store,
  path: string,
  options: BackupOptions = {},
): Promise<BackupSummary> {
  const part = `${path}.part`;
  try {
    // Reserves the name, so that an existing file is never replaced.
    await (await open(path, "wx", 0o600)).close();
  } catch (cause) {
    throw new CodedError("already_exists", `${path} exists or cannot be written: choose another name`, {
      cause,
    });
  }
  try {
    // Whoever holds the name holds this one too: a leftover is of a process that died.
    await rm(part, { force: true });
    const file = await open(part, "wx", 0o600);
    try {
      for await (const chunk of writeBackup(store, options)) await file.write(chunk);
      await file.sync();
    } finally {
      await file.close();
    }
    const summary = await verifyBackup(part);
    await rename(part, path);
    await syncFolder(dirname(path));
    return summary;
  } catch (error) {
    await rm(part, { force: true });
    await rm(path, { force: true });
    if (isCoded(error)) throw error;
    throw new CodedError("unavailable", `the backup ${path} could not be written: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** What {@link verifyStore} found. */
export interface StoreFindings {
  /** Each names what is wrong and where; empty when all is well. */
  readonly problems: readonly string[];
  /** Live pairs looked at. */
  readonly pairs: number;
  readonly revision: Revision;
}

/**
 * Reads everything and checks what must hold; values are opened when the store is encrypted, so a missing
 * key shows. Stops after {@link maxFindings}.
 */
export async function verifyStore(store: Store): Promise<StoreFindings> {
  const problems: string[] = [];
  const below = storedForm(store);
  if (below instanceof EngineStore)
    for await (const finding of below.check()) {
      problems.push(finding);
      if (problems.length >= maxFindings) break;
    }
  let pairs = 0;
  let revision = 0;
  try {
    const leases = new Set(await store.leases());
    for await (const page of pagesOf(store, prefixRange(""))) {
      revision = page.revision;
      for (const kv of page.kvs) {
        pairs++;
        const name = JSON.stringify(kv.key.toString());
        if (kv.version < 1 || kv.createRevision > kv.modRevision || kv.modRevision > revision)
          problems.push(`${name} has impossible revisions`);
        if (kv.lease !== 0n && !leases.has(kv.lease))
          problems.push(`${name} is bound to a lease that does not exist`);
      }
      if (problems.length >= maxFindings) break;
    }
  } catch (error) {
    problems.push(messageOf(error));
  }
  return { problems: problems.slice(0, maxFindings), pairs, revision };
}

/**
 * Compacts to `revision`, or so that `keep` revisions stay (default 0), and waits until the history is
 * removed and space was given back. Answers the mark.
 */
export async function compactStore(
  store: Store,
  options: { revision?: Revision; keep?: number } = {},
): Promise<Revision> {
  const { revision, compactRevision } = await store.status();
  const mark = options.revision ?? Math.max(1, revision - (options.keep ?? 0));
  if (options.revision !== undefined || mark > compactRevision) await store.compact(mark);
  const below = storedForm(store);
  // Not on etcd: a member answers nobody while it gives space back, so that is asked for by itself.
  if (below instanceof EngineStore) await below.defragment();
  return Math.max(mark, compactRevision);
}
