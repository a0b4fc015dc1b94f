import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isCoded, systemRandom } from "@kontinuum/std";
import { createKeyFile, KeyRing, readKeyFile } from "./key-file.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "key-file-"));
});
after(() => rm(folder, { recursive: true }));

const secret = (fill: number): string => Buffer.alloc(32, fill).toString("base64");
async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text, { mode: 0o600 });
  return path;
}

test("a new file holds one key and is readable by its owner only", async () => {
  const path = join(folder, "new");
  createKeyFile(path, systemRandom);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const ring = await readKeyFile(path);
  assert.deepEqual([ring.all.size, ring.active.secret.length], [1, 32]);
  assert.throws(
    () => createKeyFile(path, systemRandom),
    (error) => isCoded(error, "already_exists"),
  );
});

test("the first line encrypts, all decrypt, comments and empty lines are skipped", async () => {
  const ring = await readKeyFile(await write("two", `# keys\nnew:${secret(1)}\n\nold:${secret(2)}\n`));
  assert.deepEqual([ring.active.id, [...ring.all.keys()]], ["new", ["new", "old"]]);
});

test("what is wrong with a file is said, what it holds is not", async () => {
  const text = "top-secret-material";
  for (const [body, pattern] of [
    ["", /no key/],
    [`a:${text}!`, /line 1/],
    [`a:${Buffer.from("short").toString("base64")}`, /32 bytes/],
    [`a:${secret(1)}\na:${secret(2)}`, /twice/],
    [`a b:${secret(1)}`, /id of an encryption key/],
    [`a:kms:${secret(1)}`, /key management service/],
  ] as const) {
    const path = await write("bad", body);
    await assert.rejects(readKeyFile(path), (error: Error) => {
      assert.match(error.message, pattern);
      assert.doesNotMatch(error.message, new RegExp(text));
      return true;
    });
  }
});

test("a file that others can read is refused, and a missing one", async () => {
  const path = await write("open", `a:${secret(1)}`);
  await chmod(path, 0o644);
  await assert.rejects(readKeyFile(path), /chmod 600/);
  await assert.rejects(readKeyFile(join(folder, "none")), (error) => isCoded(error, "invalid_argument"));
});

test("wrapped keys go through the plug-in", async () => {
  const path = await write("kms", `a:kms:${secret(1)}`);
  const ring = await readKeyFile(path, {
    unwrap: async (wrapped) => Buffer.from(wrapped.map((byte) => byte ^ 0xff)),
  });
  assert.deepEqual(ring.active.secret, Buffer.alloc(32, 0xfe));
});

test("a ring refuses to become empty", () => {
  const ring = new KeyRing([{ id: "a", secret: Buffer.alloc(32) }]);
  assert.throws(
    () => ring.replace([]),
    (error) => isCoded(error, "invalid_argument"),
  );
  assert.equal(ring.active.id, "a");
});
