/**
 * What people ask of a store, and the test that shows each of it. A promise whose test is renamed or gone fails here.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const contract = "packages/storage/src/contract";
const trouble = "packages/storage/src/drivers/sqlite/sqlite-trouble.test.ts";
const operations = "packages/storage/src/operations/operations.test.ts";

/** The promise, the file, and a part of the test's name. */
const ledger: readonly (readonly [string, string, string])[] = [
  // Growth
  [
    "history is removed in slices that always make progress",
    "packages/storage/src/engine/compactor.test.ts",
    "history goes when it is old",
  ],
  [
    "history is bounded however fast it grows",
    "packages/storage/src/engine/compactor.test.ts",
    "never more than the most revisions",
  ],
  ["files shrink while serving", trouble, "the file stays within twice its live data"],
  ["the write-ahead log is bounded", trouble, "the write-ahead log is bounded"],
  ["over a long run, too", "test/storage/storage.soak.ts", "write-ahead log at its largest"],
  [
    "space is given back on demand",
    "test/storage/etcdctl.test.ts",
    "defrag gives space back before it answers",
  ],
  // Watches
  [
    "ids of the database cannot have gaps",
    `${contract}/txn.contract.ts`,
    "revisions of concurrent writers are consecutive",
  ],
  [
    "no failed write takes a revision",
    `${contract}/txn.contract.ts`,
    "a transaction that fails changes nothing",
  ],
  [
    "a deletion around compaction is delivered or refused",
    `${contract}/watch.contract.ts`,
    "a start at the compaction mark misses nothing",
  ],
  ["a slow watcher loses nothing", `${contract}/watch.contract.ts`, "a reader that is slow loses nothing"],
  [
    "a slow watcher costs the others nothing",
    "packages/kapi/src/watch-cache/watcher.test.ts",
    "every watcher sees every event once and in order, however slow",
  ],
  [
    "nothing overtakes what waits",
    "packages/storage/src/etcd/outbox.test.ts",
    "nothing overtakes what waits for room",
  ],
  [
    "watches go on after a lost connection",
    "packages/storage/src/drivers/etcd/channel.test.ts",
    "watches go on by themselves",
  ],
  [
    "fragments, progress, filters over the wire",
    "packages/storage/src/etcd/watch-service.test.ts",
    "fragments: a revision larger",
  ],
  // Reads
  [
    "reads never go back, also after a fail-over",
    "test/storage/postgres-failover.test.ts",
    "a standby takes over in the middle of writes",
  ],
  [
    "reads are linearizable across replicas",
    `${contract}/range.contract.ts`,
    "a read that starts after a write was acknowledged sees it",
  ],
  ["a revision of the future is refused", `${contract}/range.contract.ts`, "a future revision is refused"],
  ["pages are of one revision", `${contract}/range.contract.ts`, "paging at one revision sees one state"],
  ["history as one store under faults", "test/storage/faults.test.ts", "PostgreSQL"],
  ["history as one store in simulation", `${contract}/simulation.test.ts`, "SQLite, crashing"],
  [
    "the same answers as a real etcd",
    "test/storage/differential.test.ts",
    "the same program, a real etcd and our face",
  ],
  // Leases
  [
    "expiry comes, and not before its time",
    `${contract}/lease.contract.ts`,
    "expiry deletes the keys, and not before its time",
  ],
  ["clocks that jump do not end leases early", trouble, "leases go by the wall clock across a restart"],
  // Backup and restore
  ["a backup is consistent while writing", operations, "a backup taken while writing is of one revision"],
  ["a point in time can be had", operations, "a backup at a revision is of that revision"],
  [
    "any driver into any other",
    "test/storage/backup-matrix.test.ts",
    "backups from every driver into every driver",
  ],
  [
    "a backup names the keys that it needs",
    operations,
    "an encrypted store's backup stays sealed and says which key it needs",
  ],
  ["settings that differ are found first", operations, "restoreBackup(path, target, { keys: other })"],
  [
    "an empty or damaged backup touches nothing",
    operations,
    "a damaged backup is refused before the target is touched",
  ],
  ["what is there is never written over", operations, "a store that is not empty is not restored into"],
  ["what comes back is what was there", operations, "has the same pairs, revisions and leases"],
  [
    "backups of older releases are restored",
    "test/storage/backup-matrix.test.ts",
    "a backup of format version 1 is restored",
  ],
  [
    "each kind of damage is named",
    "test/storage/verify.test.ts",
    "each kind of damage is named with its key",
  ],
  // Durability
  ["kill -9 loses nothing", "test/storage/crash.test.ts", "SQLite: ten kill -9 rounds"],
  [
    "a flush precedes each acknowledgement",
    "test/storage/sqlite-disk.test.ts",
    "power loss: what was flushed",
  ],
  [
    "a lost answer is looked up",
    "test/storage/postgres-driver.test.ts",
    "a commit whose answer is lost is looked up",
  ],
  // Bad input
  ["corrupt file", trouble, "damaged pages are found by verify"],
  ["foreign file", trouble, "a file of another program is refused and not touched"],
  ["newer schema", trouble, "a newer schema is refused with the remedy"],
  ["read-only disk", "test/storage/sqlite-disk.test.ts", "read-only: refused with the remedy"],
  ["full disk", "test/storage/sqlite-disk.test.ts", "full: writes are refused, reads go on"],
  [
    "database gone",
    "test/storage/postgres-driver.test.ts",
    "a database that is gone is a retryable failure in bounded time",
  ],
  ["two processes on one file", trouble, "a second owner is refused and told the first one's process"],
  [
    "schemes that are not supported",
    "packages/storage/src/open.test.ts",
    "what is not supported is refused with what is",
  ],
  // Encryption
  [
    "values are sealed below",
    "packages/storage/src/encryption/encrypted-store.test.ts",
    "values under the prefixes are sealed below",
  ],
  [
    "keys rotate while serving",
    "packages/storage/src/encryption/encrypted-store.test.ts",
    "plain values and old keys stay readable",
  ],
  [
    "a wrong key is refused",
    "packages/storage/src/encryption/encrypted-store.test.ts",
    "a missing or wrong key is refused",
  ],
  [
    "keys may be wrapped elsewhere",
    "packages/storage/src/encryption/key-file.test.ts",
    "wrapped keys go through the plug-in",
  ],
];

test("each promise has its test", async () => {
  const sources = new Map<string, string>();
  for (const [promise, file, name] of ledger) {
    const url = new URL(`../../${file}`, import.meta.url);
    const source = sources.get(file) ?? (await readFile(url, "utf8"));
    sources.set(file, source);
    assert.ok(source.includes(name), `${promise}: ${file} has no ${JSON.stringify(name)}`);
  }
});
