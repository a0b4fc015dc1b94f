import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemRandom } from "@kontinuum/std";
import { start } from "../kryton.fixture.ts";
import { hashToken } from "./generate-token.ts";
import { krytonctl } from "./krytonctl.ts";

interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

async function run(env: Record<string, string>, ...args: string[]): Promise<Ran> {
  let out = "";
  let err = "";
  const status = await krytonctl(args, {
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env,
    random: systemRandom,
  });
  return { status, out, err };
}

const small = ["--image", "debian-13", "--cpu", "1", "--memory", "1024", "--disk", "20"];

test("every command talks to its route and prints the body as JSON with two spaces", async () => {
  await using api = await start();
  const env = { KRYTON_URL: `${api.url}/` };
  const ctl = (...args: string[]): Promise<Ran> => run(env, ...args);
  const created = await ctl("create", ...small, "--ttl", "60", "a");
  assert.equal(created.status, 0, created.err);
  const machine = JSON.parse(created.out);
  assert.equal(created.out, `${JSON.stringify(machine, null, 2)}\n`);
  assert.equal(machine.spec.ttlMinutes, 60);
  const { id } = machine;
  assert.equal((await ctl("create", "b", ...small)).status, 0, "flags may follow the name");
  assert.equal(JSON.parse((await ctl("list")).out).items.length, 2);
  assert.equal(JSON.parse((await ctl("get", id)).out).id, id);
  assert.equal(JSON.parse((await ctl("stop", id)).out).state, "stopped");
  assert.equal(JSON.parse((await ctl("start", "-project=default", id, "--wait")).out).state, "running");
  const snapshot = JSON.parse((await ctl("snapshot", id, "--name", "s")).out);
  assert.equal(snapshot.name, "s");
  assert.equal(JSON.parse((await ctl("snapshots", id)).out).items.length, 1);
  assert.equal(JSON.parse((await ctl("restore", id, snapshot.id)).out).state, "restored");
  assert.deepEqual(await ctl("delete-snapshot", id, snapshot.id), { status: 0, out: "", err: "" });
  assert.equal(JSON.parse((await ctl("images")).out).items.length, 23);
  assert.equal(JSON.parse((await ctl("capabilities")).out).provider, "demo");
  assert.equal((await ctl("doctor")).status, 0);
  assert.equal(JSON.parse((await ctl("storage")).out).provider, "demo");
  assert.ok(JSON.parse((await ctl("events")).out).items.length > 4);
  assert.ok(JSON.parse((await ctl("operations")).out).items.length > 4);
  assert.deepEqual(await ctl("delete", id), { status: 0, out: "", err: "" });
  const refused = await ctl("get", id);
  assert.equal(refused.status, 1);
  assert.equal(JSON.parse(refused.out).error.code, "NOT_FOUND");
  const storage = await ctl("set-storage", "");
  assert.equal(storage.status, 1);
  assert.equal(JSON.parse(storage.out).error.code, "UNSUPPORTED");
});

test("tables and all pages are for people", async () => {
  await using api = await start();
  const env = { KRYTON_URL: api.url };
  for (let i = 0; i < 55; i++) await api.machine(`m${i}`);
  assert.equal(JSON.parse((await run(env, "list")).out).items.length, 50);
  assert.equal(JSON.parse((await run(env, "list", "--all")).out).items.length, 55);
  const table = (await run(env, "list", "--all", "-o", "table")).out.split("\n");
  assert.match(table[0] ?? "", /^ID +NAME +STATE +IMAGE/);
  assert.equal(table.length, 57);
  assert.match((await run(env, "doctor", "-o", "table")).out, /auth +pass/);
  for (const shell of ["bash", "zsh", "fish"])
    assert.match((await run(env, "completion", shell)).out, /krytonctl/);
});

test("create flags become the body; what is wrong from here is refused here", async () => {
  await using api = await start();
  const directory = await mkdtemp(join(tmpdir(), "kryton-ctl-"));
  const env = { KRYTON_URL: api.url };
  try {
    const key = join(directory, "key.pub");
    await writeFile(
      key,
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1qLkV6m0m2Q3Q7mD0yqj0YwKxw0xv5xj7r2z3wq5bQ me\n",
    );
    const linux = await run(
      env,
      "create",
      "l",
      ...small,
      "--ssh-key",
      key,
      "--username",
      "ci",
      "--label",
      "a=b",
    );
    assert.equal(linux.status, 0, linux.out);
    assert.equal(JSON.parse(linux.out).spec.initialization.username, "ci");
    assert.deepEqual(JSON.parse(linux.out).spec.labels, { a: "b" });
    const dockur = [
      "--dockur-username",
      "u",
      "--dockur-extra-disks",
      "32, 64",
      "--dockur-audio",
      "--dockur-no-autologin",
    ];
    const windows = await run(env, "create", "w", "--image", "windows-11-pro", ...dockur);
    assert.deepEqual(JSON.parse(windows.out).spec.dockur, {
      username: "u",
      extraDisksGiB: [32, 64],
      audio: true,
      autologin: false,
    });
    await writeFile(key, "not a key");
    assert.equal((await run(env, "create", "x", "--ssh-key", key)).status, 2);
    assert.equal((await run(env, "create", "x", "--ssh-key", join(directory, "none"))).status, 1);
    assert.equal((await run(env, "create", "x", "--username", "Bad Name")).status, 2);
    assert.equal((await run(env, "create", "x", "--dockur-extra-disks", "a")).status, 2);
    assert.equal((await run(env, "create", "x", "--cpu", "many")).status, 2);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("usage mistakes are 2, lost connections 1, help 0", async () => {
  const env = { KRYTON_URL: "http://127.0.0.1:1" };
  const nothing = await run(env);
  assert.equal(nothing.status, 2);
  assert.match(nothing.out, /Usage: krytonctl/);
  const unknown = await run(env, "frobnicate");
  assert.equal(unknown.status, 2);
  assert.match(unknown.out, /Usage: krytonctl/);
  assert.equal((await run(env, "get")).status, 2);
  assert.equal((await run(env, "list", "--nope")).status, 2);
  assert.equal((await run(env, "create", "-h")).status, 0);
  const lost = await run(env, "list");
  assert.equal(lost.status, 1);
  assert.equal(lost.out, "");
  assert.match(lost.err, /^krytonctl: .*127\.0\.0\.1:1/);
  const token = (await run(env, "generate-token")).out.trim();
  assert.equal(token.length, 43);
  assert.equal((await run(env, "hash-token", token)).out.trim(), hashToken(token));
});

test("an output that goes away or is full ends the programs with one line at most", async () => {
  for (const name of ["krytonctl", "kryton-image"]) {
    const program = new URL(`../../../../bin/${name}`, import.meta.url).pathname;
    const run = async (stdout: "pipe" | number): Promise<{ status: number; errors: string }> => {
      const child = spawn(program, ["help"], { stdio: ["ignore", stdout, "pipe"] });
      child.stdout?.destroy();
      let errors = "";
      child.stderr?.setEncoding("utf8").on("data", (text: string) => (errors += text));
      const [status] = await once(child, "close");
      return { status, errors };
    };
    assert.deepEqual(await run("pipe"), { status: 141, errors: "" }, `${name} | true`);
    const full = await open("/dev/full", "w");
    const filled = await run(full.fd);
    await full.close();
    assert.equal(filled.status, 1);
    assert.match(filled.errors, /^[a-z-]+: standard output cannot be written: ENOSPC.*\n$/, name);
  }
});

test("switches take a value as well", async () => {
  await using api = await start();
  const env = { KRYTON_URL: api.url };
  const name = ["create", "x", "--image", "windows-11-pro"];
  const created = await run(env, ...name, "-dockur-audio=true", "--dockur-secure-boot=false", "--wait=f");
  assert.deepEqual(JSON.parse(created.out).spec.dockur, { audio: true }, created.err);
  assert.equal((await run(env, "list", "--all=perhaps")).status, 2);
});
