/**
 * One demo per folder: a second one would run the same machines on the same addresses.
 */
import { open, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { CodedError } from "@kontinuum/std";

/** Times a stale lock is taken over before giving up. */
const attempts = 3;

/** Takes the folder; resolves with how to give it back. Fails with `conflict` while another process has it. */
export async function lockFolder(dir: string): Promise<() => Promise<void>> {
  const file = path.join(dir, "demo.pid");
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      const handle = await open(file, "wx", 0o600);
      await handle.writeFile(`${process.pid}\n`);
      await handle.close();
      return () => rm(file, { force: true });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
    const holder = Number((await readFile(file, "utf8").catch(() => "")).trim());
    if (isDemo(holder)) {
      throw new CodedError(
        "conflict",
        `a demo runs in ${dir} already (process ${holder}): stop it, or set KONTINUUM_DEMO_DIR to another folder`,
      );
    }
    // Left behind by one that was killed.
    await rm(file, { force: true });
  }
  throw new CodedError("conflict", `the lock ${file} keeps changing: are several demos starting at once?`);
}

function isDemo(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
