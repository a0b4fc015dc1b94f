/**
 * The step-by-step of `docs/kryton/production.md`: its own commands, run in an empty folder as a person would.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { freePort, run, start, waitFor } from "../services/service.ts";

const root = path.resolve(import.meta.dirname, "../..");

test("one host, step by step: keys, a server that keeps its machines, and who may not come in", async () => {
  const text = await readFile(path.join(root, "docs/kryton/production.md"), "utf8");
  const block = /## One host, step by step\n\n```sh\n([\s\S]*?)```/.exec(text)?.[1] ?? "";
  const [keys = "", server = "", ...asks] = block.trim().split("\n");
  assert.ok(keys.endsWith("make-keys") && server.endsWith("&") && asks.length === 2, block);
  const folder = await mkdtemp(path.join(tmpdir(), "kryton-production-"));
  try {
    for (const name of ["bin", "packages"]) await symlink(path.join(root, name), path.join(folder, name));
    const port = await freePort();
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      KRYTON_ADDR: `127.0.0.1:${port}`,
      KRYTON_URL: `http://127.0.0.1:${port}`,
    };
    const shell = (command: string, more: Record<string, string> = {}) =>
      run("/bin/sh", ["-c", command], { cwd: folder, env: { ...env, ...more } });
    const serve = async () => {
      const running = start("/bin/sh", ["-c", `exec env ${server.replace(/ &$/, "")}`], { cwd: folder, env });
      await waitFor("krytond", () => running.output().includes("krytond serves"));
      return running;
    };
    assert.match((await shell(keys)).stdout, /^made keys\/keys\.json and keys\/lab\.token/);
    const first = await serve();
    try {
      const [me = "", doctor = ""] = asks;
      assert.deepEqual(JSON.parse((await shell(me)).stdout), {
        name: "lab-admin",
        role: "admin",
        projects: ["*"],
      });
      assert.match((await shell(doctor)).stdout, /^CHECK +STATUS/);
      const made = await shell(
        me.replace(/ me$/, " create web --image debian-13 --cpu 1 --memory 1024 --disk 20"),
      );
      assert.equal(made.code, 0, made.stdout);
      const nobody = await shell("bin/krytonctl list");
      assert.equal(nobody.code, 1);
      assert.match(nobody.stdout, /UNAUTHORIZED/);
      assert.equal((await stat(path.join(folder, "kryton.db.key"))).mode & 0o777, 0o600);
      assert.match(first.output(), /"msg":"audit".*"user":"lab-admin"|"user":"lab-admin".*"msg":"audit"/);
    } finally {
      await first.stop();
    }
    const second = await serve();
    try {
      assert.match((await shell(`${asks[0]?.replace(/ me$/, " list -o table")}`)).stdout, / web +running/);
    } finally {
      await second.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
