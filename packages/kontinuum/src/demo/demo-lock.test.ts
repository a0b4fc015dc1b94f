/**
 * The demo's lock: held by a living process only, whatever has its id now.
 */
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { isCoded } from "@kontinuum/std";
import { lockFolder } from "./demo-lock.ts";

async function inFolder(work: (dir: string, file: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(path.join(os.tmpdir(), "demo-lock-"));
  try {
    await work(dir, path.join(dir, "demo.pid"));
  } finally {
    await rm(dir, { recursive: true });
  }
}

test("a folder has one holder; giving it back leaves nothing", async () => {
  await inFolder(async (dir) => {
    const unlock = await lockFolder(dir);
    await assert.rejects(
      lockFolder(dir),
      (error) => isCoded(error, "conflict") && error.message.includes(`process ${process.pid}`),
    );
    await unlock();
    await (
      await lockFolder(dir)
    )();
    assert.deepEqual(await readdir(dir), []);
  });
});

test("a lock of an earlier boot, of a process whose id was given away, or without sense blocks nobody", async () => {
  await inFolder(async (dir, file) => {
    const unlock = await lockFolder(dir);
    const held = JSON.parse(await readFile(file, "utf8"));
    await unlock();
    // This test's own process lives; only what stands beside its id says that it is not the holder.
    for (const stale of [
      JSON.stringify({ ...held, boot: "00000000-0000-0000-0000-000000000000" }),
      JSON.stringify({ ...held, started: "1" }),
      JSON.stringify({ pid: 1 }),
      `${process.ppid}\n`,
      JSON.stringify({ ...held, pid: 2 ** 22 + 1 }),
      "",
    ]) {
      await writeFile(file, stale);
      await (
        await lockFolder(dir)
      )();
    }
  });
});
