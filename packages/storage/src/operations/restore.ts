/**
 * Backups into stores, and stores into stores.
 *
 * Into a store of ours, a restore keeps every revision and version. A remote etcd makes its own: there,
 * keys, values and leases are what is carried over.
 */
import { CodedError, isCoded } from "@kontinuum/std";
import type { KeyValue, Op, Store } from "../contract.ts";
import type { EncryptionKeys } from "../encryption/key-file.ts";
import { storedForm } from "../encryption/encrypted-store.ts";
import { isEnvelope, keyIdOf, unseal } from "../encryption/envelope.ts";
import { EngineStore } from "../engine/engine-store.ts";
import { writeBackup, type BackupOptions } from "./backup.ts";
import {
  backupPairs,
  backupRecords,
  verifyBackup,
  type BackupSource,
  type BackupSummary,
} from "./backup-file.ts";

/** Revisions left free after a restore, so that none that was handed out after the backup comes again. */
export const defaultRevisionGap = 1_000_000;
/** Pairs written together into a remote store. */
const remoteBatch = 64;
const loadBatch = 500;

/** Options of {@link restoreBackup}. */
export interface RestoreOptions {
  /** See {@link defaultRevisionGap}. */
  readonly revisionGap?: number;
  /**
   * Keys at hand. A backup that needs others is refused before anything is touched; `"later"` restores it
   * as it is.
   */
  readonly keys?: EncryptionKeys | "later";
}

/** What a restore did. */
export interface Restored extends BackupSummary {
  /** Whether revisions and versions are those of the backup. */
  readonly exact: boolean;
}

/**
 * Verifies a backup and then fills an empty store with it. Fails with `data_loss` for a damaged backup,
 * `failed_precondition` for a store that is not empty or a missing or wrong key.
 */
export async function restoreBackup(
  source: BackupSource,
  target: Store,
  options: RestoreOptions = {},
): Promise<Restored> {
  const summary = await verifyBackup(source);
  await checkKeys(source, summary, options.keys);
  const store = storedForm(target);
  const leases: { id: bigint; ttl: number; remainingSeconds: number }[] = [];
  for await (const { record } of backupRecords(source))
    if (record.case === "lease") {
      const { id, ttl, remaining } = record.value;
      leases.push({ id, ttl: Number(ttl), remainingSeconds: Number(remaining) });
    } else if (record.case === "pair") break;
  if (store instanceof EngineStore) {
    const revision = summary.revision + (options.revisionGap ?? defaultRevisionGap);
    await store.load({ pairs: backupPairs(source, loadBatch), leases, revision });
    return { ...summary, exact: true };
  }
  await fillRemote(store, backupPairs(source, remoteBatch), leases);
  return { ...summary, exact: false };
}

/** Copies everything of one store into an empty other one, at one revision, without a file between. */
export async function copyStore(
  from: Store,
  to: Store,
  options: BackupOptions & RestoreOptions = {},
): Promise<Restored> {
  // The stream is read more than once; every reading must be of the same revision and the same time.
  const revision = options.revision ?? (await from.revision());
  return restoreBackup(() => writeBackup(from, { ...options, revision }), to, {
    revisionGap: 0,
    keys: "later",
    ...options,
  });
}

async function checkKeys(
  source: BackupSource,
  summary: BackupSummary,
  keys: RestoreOptions["keys"],
): Promise<void> {
  if (summary.encryptionKeys.length === 0 || keys === "later") return;
  const missing = summary.encryptionKeys.filter((id) => !keys?.all.has(id));
  if (!keys || missing.length > 0)
    throw new CodedError(
      "failed_precondition",
      `the backup needs encryption key ${missing.join(", ")}: give the key file that it was written with`,
    );
  // One value of each key shows whether it is the right one.
  const unseen = new Set(summary.encryptionKeys);
  for await (const kvs of backupPairs(source, loadBatch)) {
    for (const kv of kvs) {
      if (!isEnvelope(kv.value) || !unseen.delete(keyIdOf(kv.value))) continue;
      unseal(keys.all, kv.key, kv.value);
    }
    if (unseen.size === 0) return;
  }
}

async function fillRemote(
  store: Store,
  pairs: AsyncIterable<KeyValue[]>,
  leases: readonly { id: bigint; remainingSeconds: number }[],
): Promise<void> {
  const { count } = await store.range({ key: "\0", end: "\0", countOnly: true });
  if (count > 0)
    throw new CodedError(
      "failed_precondition",
      `the store to restore into is not empty (${count} keys): give a new one`,
    );
  for (const { id, remainingSeconds } of leases)
    await store.leaseGrant(Math.max(1, remainingSeconds), id).catch((error: unknown) => {
      // A restore that is repeated after a failure finds its leases there.
      if (!isCoded(error, "already_exists")) throw error;
    });
  const known = new Set(leases.map((lease) => lease.id));
  for await (const group of pairs) {
    let batch: Op[] = [];
    let size = 0;
    for (const { key, value, lease } of group) {
      if (size + value.length > 1024 * 1024 && batch.length > 0) {
        await store.txn({ success: batch });
        batch = [];
        size = 0;
      }
      // A lease that was over when the backup was taken took its keys with it by now.
      if (lease !== 0n && !known.has(lease)) continue;
      batch.push({ type: "put", key, value, lease });
      size += key.length + value.length;
    }
    if (batch.length > 0) await store.txn({ success: batch });
  }
}
