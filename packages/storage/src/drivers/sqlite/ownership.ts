/**
 * One process owns a SQLite file. The lock is SQLite's own (exclusive locking mode: freed by the kernel
 * when the process dies, however it dies); beside it a small file names the owner, for the message
 * that the second process prints.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";

/** Where the owner of `path` is written down. */
export function ownerFile(path: string): string {
  return `${path}-owner`;
}

/** Writes this process down as the owner. A full disk is no reason not to serve reads: then nothing is written. */
export function recordOwner(path: string): void {
  try {
    writeFileSync(ownerFile(path), `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // The lock is what counts, the name is a courtesy.
  }
}

/** Takes the note away. */
export function clearOwner(path: string): void {
  rmSync(ownerFile(path), { force: true });
}

/** The owner for a message: `process 123`, or `another process` when it is not written down. */
export function describeOwner(path: string): string {
  try {
    const pid = Number.parseInt(readFileSync(ownerFile(path), "utf8"), 10);
    if (Number.isSafeInteger(pid)) return `process ${pid}`;
  } catch {
    // Not readable: the lock is what counts, the name is a courtesy.
  }
  return "another process";
}
