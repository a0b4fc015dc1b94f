/**
 * The rack's folder: one file per machine, one file and one store per cluster.
 *
 * Files hold cluster secrets (a machine's configuration does): the folder is 0700 and files are 0600.
 * A file is replaced by rename, so a crash leaves the old or the new content, and writes of one file
 * follow one another. Without a folder everything is kept in memory only.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { CodedError, isObject } from "@kontinuum/std";

/** See the module's comment. */
export class RackFiles {
  readonly #folder: string | undefined;
  readonly #writes = new Map<string, Promise<void>>();

  /** `folder` absent: nothing is kept. */
  constructor(folder?: string) {
    this.#folder = folder;
  }

  /** Makes the folder. */
  async open(): Promise<void> {
    if (this.#folder !== undefined) await mkdir(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Where something of that name may be kept, or `undefined` when nothing is. */
  location(...parts: readonly string[]): string | undefined {
    return this.#folder === undefined ? undefined : path.join(this.#folder, ...parts.map(safeName));
  }

  /** Names of the files kept under `kind`, without extension. */
  async names(kind: string): Promise<string[]> {
    const folder = this.location(kind);
    if (folder === undefined) return [];
    try {
      return (await readdir(folder))
        .filter((file) => file.endsWith(".json"))
        .map((file) => file.slice(0, -5));
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  async read(kind: string, name: string): Promise<string | undefined> {
    const file = this.location(kind, `${name}.json`);
    if (file === undefined) return undefined;
    try {
      return await readFile(file, "utf8");
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async write(kind: string, name: string, text: string): Promise<void> {
    const file = this.location(kind, `${name}.json`);
    if (file === undefined) return;
    await this.#inOrder(file, async () => {
      await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(`${file}.new`, text, { mode: 0o600, flush: true });
      await rename(`${file}.new`, file);
    });
  }

  async remove(kind: string, name: string): Promise<void> {
    const file = this.location(kind, `${name}.json`);
    if (file !== undefined) await this.#inOrder(file, () => rm(file, { force: true }));
  }

  /** Waits for every write so far. */
  async settled(): Promise<void> {
    await Promise.all(this.#writes.values());
  }

  #inOrder(file: string, write: () => Promise<void>): Promise<void> {
    const before = this.#writes.get(file) ?? Promise.resolve();
    const after = before.catch(() => {}).then(write);
    this.#writes.set(file, after);
    const forget = (): void => {
      if (this.#writes.get(file) === after) this.#writes.delete(file);
    };
    after.then(forget, forget);
    return after;
  }
}

function safeName(part: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$/.test(part)) return part;
  throw new CodedError("invalid_argument", `${JSON.stringify(part)} can't be the name of a file of the rack`);
}

function isMissing(error: unknown): boolean {
  return isObject(error) && error["code"] === "ENOENT";
}
