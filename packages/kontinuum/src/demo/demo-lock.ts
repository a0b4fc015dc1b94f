/**
 * One demo per folder: a second one would run the same machines on the same addresses.
 *
 * The lock is a file that names its holder: process, the time that process started, and the boot of the machine. A
 * process id alone is not enough, since after a crash or a reboot another process may have it. The file appears
 * whole (written beside, then linked), so nobody ever reads half a holder.
 *
 * Sources: proc(5), `/proc/<pid>/stat` field 22 and `/proc/sys/kernel/random/boot_id`.
 */
import { link, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { at, CodedError, stringAt } from "@kontinuum/std";

/** Times a stale lock is taken over before giving up. */
const attempts = 3;

/** Takes the folder; resolves with how to give it back. Fails with `conflict` while another process has it. */
export async function lockFolder(dir: string): Promise<() => Promise<void>> {
  const file = path.join(dir, "demo.pid");
  const mine = path.join(dir, `demo.pid.${process.pid}`);
  await writeFile(mine, `${JSON.stringify({ pid: process.pid, ...(await lifeOf(process.pid)) })}\n`, {
    mode: 0o600,
  });
  try {
    for (let attempt = 0; attempt < attempts; attempt++) {
      try {
        await link(mine, file);
        return () => rm(file, { force: true });
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      }
      const holder = await livingHolder(file);
      if (holder !== undefined) {
        throw new CodedError(
          "conflict",
          `a demo runs in ${dir} already (process ${holder}): stop it, or set KONTINUUM_DEMO_DIR to another folder`,
        );
      }
      // Left behind by one that was killed.
      await rm(file, { force: true });
    }
  } finally {
    await rm(mine, { force: true });
  }
  throw new CodedError("conflict", `the lock ${file} keeps changing: are several demos starting at once?`);
}

/** The process that wrote the lock, when that very process still lives. */
async function livingHolder(file: string): Promise<number | undefined> {
  let holder: unknown;
  try {
    holder = JSON.parse(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
  const pid = at(holder, "pid");
  if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  const life = await lifeOf(pid);
  const isSame =
    life !== undefined &&
    stringAt(holder, "started") === life.started &&
    stringAt(holder, "boot") === life.boot;
  return isSame ? pid : undefined;
}

/** What tells this process from any other that has had or will have its id; `undefined` when there is none. */
async function lifeOf(pid: number): Promise<{ started: string; boot: string } | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name in field 2 may hold spaces and parentheses: count from the last one, which ends it.
    const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    const boot = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
    return started === undefined ? undefined : { started, boot };
  } catch {
    return undefined;
  }
}
