/**
 * `kontinuum store` over real files: a sealed Secret goes through backup, restore and copy, and comes out only with its key.
 */
import assert from "node:assert/strict";
import { chmod, copyFile, mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openEncryptedStore } from "../serve/process-store.ts";
import { main } from "./main.ts";

const edges = systemEdges();
const secretKey = "/registry/secrets/default/password";

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = "";
  let err = "";
  const code = await main(["store", ...args], {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    stdin: Readable.from([]),
    environment: {},
    edges,
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

async function readSecret(url: string): Promise<string | undefined> {
  const store = await openEncryptedStore(url, "", edges);
  try {
    return (await store.range({ key: secretKey })).kvs[0]?.value.toString();
  } finally {
    await store.close();
  }
}

test("backup, restore and copy carry what is sealed, and only its key opens it", async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "store-cli-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const url = (name: string): string => `sqlite://${path.join(folder, name)}`;
  const file = (name: string): string => path.join(folder, name);
  const store = await openEncryptedStore(url("a.db"), "", edges);
  await store.txn({ success: [{ type: "put", key: secretKey, value: "hunter2" }] });
  await store.close();

  assert.match((await run("verify", "--storage", url("a.db"))).out, /1 pairs at revision 2: all well/);
  const backup = await run("backup", file("x.backup"), "--storage", url("a.db"));
  assert.equal(backup.code, 0, backup.err);

  const keyless = await run("restore", file("x.backup"), "--storage", url("b.db"));
  assert.equal(keyless.code, 5);
  assert.match(keyless.err, /needs encryption key .*: give the key file/);
  const restored = await run(
    "restore",
    file("x.backup"),
    "--storage",
    url("b.db"),
    "--encryption-key-file",
    file("a.db.key"),
  );
  assert.equal(restored.code, 0, restored.err);
  const copied = await run("copy", "--from", url("a.db"), "--to", url("c.db"));
  assert.equal(copied.code, 0, copied.err);
  assert.match(copied.out, /1 pairs copied/);

  for (const name of ["b.db", "c.db"]) {
    await copyFile(file("a.db.key"), file(`${name}.key`));
    await chmod(file(`${name}.key`), 0o600);
    assert.equal(await readSecret(url(name)), "hunter2", name);
  }
  const again = await run("copy", "--from", url("a.db"), "--to", url("c.db"));
  assert.notEqual(again.code, 0, "a store that is not empty is not written over");
});
