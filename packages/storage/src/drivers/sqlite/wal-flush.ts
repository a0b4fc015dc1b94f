/**
 * Flushes of the write-ahead log, off the event loop: SQLite commits without one, and nobody is told of a commit before the
 * flush that follows it is done. What a flush costs is the disk's time, and the process does other work meanwhile.
 *
 * One flush at a time, and none after one that failed: the kernel tells a failure to one caller only and may have dropped what it
 * could not write, so that a later "done" says nothing.
 *
 * Before the log is folded into the file, and when it starts anew, SQLite flushes by itself (`synchronous=NORMAL`).
 */
import { closeSync, constants, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { fault } from "../../faults.ts";

/** Flushes an open file and says when it is done, or that it failed. */
export type StartFlush = (file: number, done: (error: Error | null) => void) => void;

/** The flushes of one database. */
export class WalFlush {
  readonly #path: string;
  readonly #log: number;
  readonly #start: StartFlush;
  #pending: Promise<void> | undefined;
  #failure: Error | undefined;

  /** The write-ahead log of the database at `path` exists already. `start` flushes an open file. */
  constructor(path: string, start: StartFlush = fdatasync) {
    this.#path = path;
    this.#start = start;
    this.#log = openSync(`${path}-wal`, constants.O_RDWR);
    flushFolder(dirname(path));
  }

  /** Whether commits may have been lost: nothing after this is durable for certain. */
  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /** Resolves when everything committed so far is durable, after the flushes asked for before. */
  flush(): Promise<void> {
    const before = this.#pending;
    const flushed = before ? before.then(() => this.#sync()) : this.#sync();
    this.#pending = flushed;
    const over = (): void => {
      if (this.#pending === flushed) this.#pending = undefined;
    };
    flushed.then(over, over);
    return flushed;
  }

  /** Waits for flushes under way; fails with none of them. */
  async settled(): Promise<void> {
    while (this.#pending) await this.#pending.catch(() => {});
  }

  close(): void {
    closeSync(this.#log);
  }

  #sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#lost());
      this.#start(this.#log, (error) => {
        if (!error) return resolve();
        this.#failure = error;
        reject(this.#lost());
      });
    });
  }

  #lost(): Error {
    const text = `the disk of ${this.#path} failed: whether the write is kept is unknown; check the disk and restart`;
    return fault("lost", text, { cause: this.#failure });
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
