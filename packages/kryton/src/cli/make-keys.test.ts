import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemRandom } from "@kontinuum/std";
import { bearer, call, start } from "../kryton.fixture.ts";
import { krytonctl } from "./krytonctl.ts";

test("make-keys makes a private pair that works, keeps it, and replaces it only when asked to", async () => {
  const home = await mkdtemp(join(tmpdir(), "kryton-keys-"));
  try {
    const run = async (
      env: Record<string, string> = {},
    ): Promise<{ status: number; out: string; err: string }> => {
      let out = "";
      let err = "";
      const io = {
        out: (t: string) => void (out += t),
        err: (t: string) => void (err += t),
        env: { HOME: home, ...env },
        random: systemRandom,
      };
      return { status: await krytonctl(["make-keys"], io), out, err };
    };
    const keys = join(home, ".kryton", "keys.json");
    const tokenFile = join(home, ".kryton", "lab.token");
    assert.match((await run()).out, /^made .*keys\.json and .*lab\.token\n$/);
    assert.equal((await stat(keys)).mode & 0o777, 0o600);
    assert.equal((await stat(tokenFile)).mode & 0o777, 0o600);
    assert.equal((await stat(join(home, ".kryton"))).mode & 0o777, 0o700);
    const token = (await readFile(tokenFile, "utf8")).trim();
    assert.equal(token.length, 43);
    assert.doesNotMatch(await readFile(keys, "utf8"), new RegExp(token));
    await using api = await start({ env: { KRYTON_AUTH_MODE: "apikey", KRYTON_API_KEYS_FILE: keys } });
    assert.deepEqual((await call(api.url, "GET", "/api/v1/me", undefined, bearer(token))).json, {
      name: "lab-admin",
      role: "admin",
      projects: ["*"],
    });
    assert.match((await run()).out, /^kept /);
    assert.equal((await readFile(tokenFile, "utf8")).trim(), token);
    assert.match((await run({ KRYTON_ROTATE_KEYS: "true", KRYTON_KEY_NAME: "ops" })).out, /^made /);
    assert.notEqual((await readFile(tokenFile, "utf8")).trim(), token);
    assert.equal(JSON.parse(await readFile(keys, "utf8")).keys[0].name, "ops");
    await rm(tokenFile);
    const half = await run();
    assert.equal(half.status, 1);
    assert.match(half.err, /only one of .*KRYTON_ROTATE_KEYS=true/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
