/**
 * Making folders: what is missing is made private, and what cannot be made is said in one line, soon.
 */
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { isCoded } from "./errors.ts";
import { ensureFolder } from "./folder.ts";

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "folder-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const refused = (folder: string, text: RegExp): Promise<void> =>
  assert.rejects(ensureFolder(folder, { setting: "STATE_DIR" }), (error: unknown) => {
    assert.ok(isCoded(error, "invalid_argument"), String(error));
    assert.match(error.message, text);
    assert.match(error.message, /^STATE_DIR: [^\n]*; name a folder that can be written$/);
    return true;
  });

test("every missing level is made, private by default; what exists keeps its permissions", async () => {
  await inFolder(async (root) => {
    await mkdir(path.join(root, "open"));
    await chmod(path.join(root, "open"), 0o755);
    const deep = path.join(root, "open", "a", "b");
    await Promise.all([ensureFolder(deep, { setting: "x" }), ensureFolder(deep, { setting: "x" })]);
    await ensureFolder(deep, { setting: "x" });
    const mode = async (name: string): Promise<number> => (await stat(path.join(root, name))).mode & 0o777;
    assert.deepEqual(
      [await mode("open"), await mode("open/a"), await mode("open/a/b")],
      [0o755, 0o700, 0o700],
    );
    await ensureFolder(path.join(root, "shared"), { setting: "x", mode: 0o750 });
    assert.equal((await mode("shared")) & ~0o750, 0);
  });
});

test("places where nothing can be made are refused at once, naming the setting and the obstacle", async () => {
  await inFolder(async (root) => {
    await writeFile(path.join(root, "file"), "");
    await symlink(path.join(root, "nowhere"), path.join(root, "dangling"));
    await refused("/dev/null/x", /\/dev\/null is not a folder/);
    await refused("/dev/null", /\/dev\/null is not a folder/);
    await refused(path.join(root, "file", "a", "b"), /file is not a folder/);
    await refused(path.join(root, "dangling"), /dangling cannot be made \(EEXIST\)/);
    await refused("/proc/x/y", /\/proc/);
    await refused(path.join(root, "n".repeat(300)), /ENAMETOOLONG/);
    await refused(path.join(root, "d/".repeat(300)), /more than 256 folders deep/);
  });
});

test(
  "a folder that may not be written is refused",
  { skip: process.getuid?.() === 0 && "root may write everywhere: run as another user" },
  async () => {
    await inFolder(async (root) => {
      const closed = path.join(root, "closed");
      await mkdir(closed, { mode: 0o500 });
      await refused(closed, /closed may not be written \(EACCES\)/);
      await refused(path.join(closed, "x"), /closed may not be written, so .*x cannot be made/);
    });
  },
);
