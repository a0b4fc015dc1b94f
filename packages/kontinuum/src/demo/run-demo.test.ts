/**
 * A demo that cannot begin says why in one line, soon, with the exit code of its kind, and leaves nothing.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { cleanDemo } from "./clean-demo.ts";
import { lockFolder } from "./demo-lock.ts";
import { runDemo } from "./run-demo.ts";

async function once(dir: string): Promise<{ code: number; said: string }> {
  let said = "";
  const code = await runDemo({
    dir,
    once: true,
    helm: "",
    signal: new AbortController().signal,
    write: (text) => (said += text),
  });
  return { code, said };
}

test("folders that cannot be used are bad input", async () => {
  const root = await mkdtemp(path.join(os.tmpdir(), "run-demo-"));
  try {
    await mkdir(path.join(root, "kontinuum.log"));
    for (const dir of ["/proc/x", "/proc", "/dev/null/x", "/dev/null", root]) {
      const { code, said } = await once(dir);
      assert.equal(code, 2, dir);
      assert.match(said, /^demo: KONTINUUM_DEMO_DIR: [^\n]*; name a folder that can be written\n$/, dir);
    }
    assert.deepEqual(await readdir(root), ["kontinuum.log"]);
  } finally {
    await rm(root, { recursive: true });
  }
});

test("a folder that another demo has is a conflict", async () => {
  const root = await mkdtemp(path.join(os.tmpdir(), "run-demo-"));
  const unlock = await lockFolder(root);
  try {
    const { code, said } = await once(root);
    assert.equal(code, 5);
    assert.match(
      said,
      /^demo: a demo runs in .* already \(process \d+\): stop it, or set KONTINUUM_DEMO_DIR/,
    );
    assert.equal(await cleanDemo(root, () => {}), 5);
    assert.deepEqual(await readdir(root), ["demo.pid"]);
  } finally {
    await unlock();
    await rm(root, { recursive: true });
  }
});

test("what a demo left is removed, and nothing is no failure", async () => {
  const root = await mkdtemp(path.join(os.tmpdir(), "run-demo-"));
  await mkdir(path.join(root, "rack"));
  assert.equal(await cleanDemo(root, () => {}), 0);
  await assert.rejects(readdir(root), { code: "ENOENT" });
  assert.equal(await cleanDemo(root, () => {}), 0);
});
