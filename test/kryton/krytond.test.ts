import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { call, machineBody } from "../../packages/kryton/src/kryton.fixture.ts";
import { KrytondProcess } from "./krytond-process.ts";

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "krytond-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("a clean stop is status 0, a refused configuration 2 with one line, a busy address 1", async () => {
  await inFolder(async (HOME) => {
    const krytond = await KrytondProcess.start({ HOME });
    assert.equal(await krytond.stop(), 0);
    const refused = async (env: Record<string, string>): Promise<string> => {
      const error: unknown = await KrytondProcess.start({ HOME, ...env }).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof Error);
      return error.message;
    };
    assert.match(await refused({ KRYTON_PROVIDER: "x" }), /ended with 2: krytond: KRYTON_PROVIDER: .*\n$/);
    assert.match(
      await refused({ KRYTON_IMAGES_FILE: "/nope" }),
      /ended with 2: krytond: image catalog \/nope/,
    );
    assert.match(await refused({ KRYTON_STORAGE: "floppy://a" }), /ended with 2: krytond: storage scheme/);
    assert.match(
      await refused({ KRYTON_EVENTS_FILE: "/dev/null/events" }),
      /ended with 2: krytond: KRYTON_EVENTS_FILE/,
    );
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    assert.match(
      await refused({ KRYTON_ADDR: `127.0.0.1:${port}` }),
      /ended with 1: krytond: address .* is in use/,
    );
    await new Promise((resolve) => server.close(resolve));
  });
});

test("a folder that cannot be made, or a provider that is not built, is one line and status 2, and leaves nothing", async () => {
  await inFolder(async (HOME) => {
    const refused = async (env: Record<string, string>): Promise<string> => {
      const error: unknown = await KrytondProcess.start({ HOME, ...env }).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof Error);
      return error.message;
    };
    const unusable = /ended with 2: krytond: \w+: [^\n]*; name a folder that can be written\n$/;
    assert.match(await refused({ KRYTON_STORAGE: "sqlite:///proc/x/y.db" }), unusable);
    assert.match(await refused({ KRYTON_STORAGE: "sqlite:///dev/null/y.db" }), unusable);
    assert.match(await refused({ KRYTON_EVENTS_FILE: "/proc/x/events" }), unusable);
    for (const KRYTON_PROVIDER of ["dockur", "libvirt", "kubevirt"]) {
      const env = { KRYTON_PROVIDER, KRYTON_AUTH_MODE: "disabled", KRYTON_ALLOW_INSECURE: "true" };
      assert.match(
        await refused(env),
        /ended with 2: krytond: KRYTON_PROVIDER: \w+ is not in this build yet;/,
      );
    }
    assert.deepEqual(await readdir(HOME), []);
  });
});

test("on SQLite machines survive kill -9, and the sealing key is private", async () => {
  await inFolder(async (HOME) => {
    const env = { HOME, KRYTON_STORAGE: `sqlite://${HOME}/kryton.db` };
    const first = await KrytondProcess.start(env);
    const made = await call(first.url, "POST", "/api/v1/machines", machineBody("survivor"));
    assert.equal(made.status, 201);
    await first.kill();
    const second = await KrytondProcess.start(env);
    const found = await call(second.url, "GET", `/api/v1/machines/${made.json.id}`);
    assert.deepEqual(found.json, made.json);
    const again = await call(second.url, "POST", `/api/v1/machines/${made.json.id}/stop`);
    assert.equal(again.json.state, "stopped");
    assert.equal((await stat(`${HOME}/kryton.db.key`)).mode & 0o777, 0o600);
    assert.equal(await second.stop(), 0);
  });
});
