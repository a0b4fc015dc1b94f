/**
 * Flushes of the write-ahead log, off the event loop: SQLite commits without one, and nobody is told of a commit before the
 * flush that follows it is done. What a flush costs is the disk's time, and the process does other work meanwhile.
 *
 * Before the log is folded into the file, and when it starts anew, SQLite flushes by itself (`synchronous=NORMAL`).
 */
import { closeSync, constants, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { fault } from "../../faults.ts";

/** The flushes of one database. */
export class WalFlush {
  readonly #path: string;
  readonly #log: number;
  #pending: Promise<void> | undefined;
  #failure: Error | undefined;

  /** The write-ahead log of the database at `path` exists already. */
  constructor(path: string) {
    this.#path = path;
    this.#log = openSync(`${path}-wal`, constants.O_RDWR);
    flushFolder(dirname(path));
  }

  /** Whether commits may have been lost: nothing after this is durable for certain. */
  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /** Resolves when everything committed so far is durable. */
  async flush(): Promise<void> {
    const flushed = new Promise<void>((resolve, reject) => {
      fdatasync(this.#log, (error) => (error ? reject(error) : resolve()));
    });
    this.#pending = flushed;
    try {
      await flushed;
    } catch (cause) {
      this.#failure = cause instanceof Error ? cause : new Error(String(cause));
      throw fault(
        "lost",
        `the disk of ${this.#path} failed: whether the write is kept is unknown; check the disk and restart`,
        { cause },
      );
    } finally {
      if (this.#pending === flushed) this.#pending = undefined;
    }
  }

  /** Waits for flushes under way; fails with none of them. */
  async settled(): Promise<void> {
    while (this.#pending) await this.#pending.catch(() => {});
  }

  close(): void {
    closeSync(this.#log);
  }
}

/** Makes the name of a new log durable. */
function flushFolder(folder: string): void {
  const opened = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(opened);
  } catch {
    // Some file systems flush no folders; SQLite itself goes on, too.
  } finally {
    closeSync(opened);
  }
}
