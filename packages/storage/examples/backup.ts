/**
 * A backup while serving, verified, restored into another kind of store.
 * Run: `node packages/storage/examples/backup.ts`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemEdges } from "@kontinuum/std";
import { backupToFile, openStore, restoreBackup, verifyBackup, verifyStore } from "@kontinuum/storage";

const folder = await mkdtemp(join(tmpdir(), "backup-example-"));
const edges = systemEdges();
const store = await openStore("memory://", edges);
for (let i = 0; i < 1_000; i++)
  await store.txn({ success: [{ type: "put", key: `/k/${i}`, value: `value ${i}` }] });

const file = join(folder, "store.backup");
const { pairs, revision, sha256 } = await backupToFile(store, file);
console.log(`${pairs} pairs at revision ${revision}, SHA-256 ${sha256.slice(0, 16)}…`);
console.log(`verified: ${(await verifyBackup(file)).pairs} pairs`);

const restored = await openStore(`sqlite://${folder}/restored.db`, edges);
await restoreBackup(file, restored);
console.log(
  `restored, next revision ${(await restored.revision()) + 1}; problems: ${(await verifyStore(restored)).problems.length}`,
);
console.log(`equal contents: ${(await restored.hash()).hash === (await store.hash()).hash}`);
await Promise.all([store.close(), restored.close()]);
await rm(folder, { recursive: true });
