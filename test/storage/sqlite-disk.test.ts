/**
 * SQLite against the disk itself: full, read-only, and losing power. The first two need a file system of their
 * own (a tmpfs, so the right to mount), the last one strace.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isCoded, systemEdges } from "@kontinuum/std";
import { openStore, reasonOf, serveEtcd, type Store } from "@kontinuum/storage";
import { findEtcdctl } from "../services/etcd.ts";
import { findProgram, run, skipUnless, type Ran } from "../services/service.ts";
import { DiskTrace } from "./disk-trace.ts";

const put = (store: Store, key: string, value: string) =>
  store.txn({ success: [{ type: "put", key, value }] });

async function mountable(): Promise<string | { missing: string }> {
  const folder = await mkdtemp(join(tmpdir(), "mount-"));
  const tried = await run("mount", ["-t", "tmpfs", "-o", "size=1m", "none", folder]).catch(() => undefined);
  if (tried?.code === 0) await run("umount", [folder]);
  await rm(folder, { recursive: true });
  return tried?.code === 0
    ? folder
    : { missing: "a tmpfs cannot be mounted here (needs root and CAP_SYS_ADMIN)" };
}

// Mounting is a right and not a program: without it the suite is left out even where services are required.
const mount = await mountable();

/** The alarm as the real etcdctl lists and disarms it. */
async function alarmOverTheWire(store: Store): Promise<void> {
  const program = await findEtcdctl();
  if (typeof program !== "string") return store.disarm?.("no_space");
  const server = await serveEtcd(store);
  const ctl = (...args: string[]): Promise<Ran> =>
    run(program, [`--endpoints=127.0.0.1:${server.port}`, ...args], {
      env: { ETCDCTL_API: "3", PATH: process.env["PATH"] ?? "" },
    });
  try {
    assert.equal((await ctl("alarm", "list")).stdout, "memberID:1 alarm:NOSPACE \n");
    assert.match(
      (await ctl("endpoint", "status", "-w", "json")).stdout,
      /"errors":\["memberID:1 alarm:NOSPACE "\]/,
    );
    assert.equal((await ctl("alarm", "disarm")).stdout, "memberID:1 alarm:NOSPACE \n");
    assert.equal((await ctl("alarm", "list")).stdout, "");
  } finally {
    await server.close();
  }
}

describe("a disk of its own", { skip: typeof mount === "string" ? false : mount.missing }, () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "disk-"));
    assert.equal((await run("mount", ["-t", "tmpfs", "-o", "size=6m", "none", folder])).code, 0);
  });
  after(async () => {
    // Lazily: a test that failed may have left a file open.
    await run("umount", ["-l", folder]);
    await rm(folder, { recursive: true });
  });

  test("full: writes are refused, reads go on, and writes go on when there is space again", async () => {
    const store = await openStore(`sqlite://${folder}/full.db`, systemEdges());
    await put(store, "/before", "1");
    await writeFile(join(folder, "filler"), Buffer.alloc(3 * 1024 * 1024));
    let acknowledged = 0;
    let refusal: unknown;
    for (let i = 0; i < 200 && refusal === undefined; i++)
      await put(store, `/k/${i}`, "x".repeat(50_000)).then(
        () => acknowledged++,
        (error: unknown) => (refusal = error),
      );
    assert.ok(isCoded(refusal, "unavailable"), String(refusal));
    assert.equal(reasonOf(refusal), "no_space");
    assert.match(refusal.message, /disk of .* is full: nothing was written/);
    assert.equal((await store.range({ key: "/before" })).count, 1);
    assert.equal((await store.range({ key: "/k/", end: "/k0" })).count, acknowledged);
    assert.deepEqual(await store.alarms?.(), ["no_space"]);
    await alarmOverTheWire(store);
    // Disarmed by hand it comes back with the next write that finds no room.
    assert.deepEqual(await store.alarms?.(), []);
    await assert.rejects(
      put(store, "/still", "x".repeat(100_000)),
      (error) => reasonOf(error) === "no_space",
    );
    assert.deepEqual(await store.alarms?.(), ["no_space"]);
    await rm(join(folder, "filler"));
    await put(store, "/after", "1");
    assert.deepEqual(await store.alarms?.(), []);
    const revision = await store.revision();
    await store.close();
    const again = await openStore(`sqlite://${folder}/full.db`, systemEdges());
    assert.deepEqual(
      [await again.revision(), (await again.range({ key: "/k/", end: "/k0" })).count],
      [revision, acknowledged],
    );
    await again.close();
    await rm(join(folder, "full.db"));
  });

  test("read-only: refused with the remedy", async () => {
    await (await openStore(`sqlite://${folder}/ro.db`, systemEdges())).close();
    assert.equal((await run("mount", ["-o", "remount,ro", folder])).code, 0);
    try {
      await assert.rejects(openStore(`sqlite://${folder}/ro.db`, systemEdges()), (error) => {
        assert.ok(isCoded(error, "invalid_argument"), String(error));
        assert.match(error.message, /cannot be written: check the mount/);
        return true;
      });
    } finally {
      await run("mount", ["-o", "remount,rw", folder]);
    }
  });
});

const strace = await findProgram("strace", "strace");

test(
  "power loss: what was flushed before an acknowledgement is enough to find every acknowledged write",
  { skip: skipUnless(strace), timeout: 120_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "flush-"));
    try {
      const traced = join(folder, "trace");
      const writer = fileURLToPath(new URL("./flush-writer.ts", import.meta.url));
      const calls = "trace=openat,pwrite64,pwritev,write,fdatasync,fsync,ftruncate,close,unlink,rename";
      const ran = await run(
        typeof strace === "string" ? strace : "",
        [
          "-f",
          "-xx",
          "-s",
          "100000000",
          "-e",
          calls,
          "-o",
          traced,
          process.execPath,
          "--no-warnings",
          writer,
          `${folder}/store.db`,
        ],
        { timeoutMs: 110_000 },
      );
      assert.equal(ran.code, 0, ran.stderr);
      const trace = new DiskTrace(`${folder}/store.db`);
      let checked = 0;
      for (const line of (await readFile(traced, "latin1")).split("\n")) {
        const acknowledged = trace.line(line);
        if (acknowledged === undefined) continue;
        const copy = join(folder, `copy-${checked}`);
        await mkdir(copy);
        for (const [suffix, bytes] of trace.durable())
          await writeFile(join(copy, `store.db${suffix}`), bytes);
        const store = await openStore(`sqlite://${copy}/store.db`, systemEdges());
        const { count } = await store.range({ key: "/k/", end: "/k0", countOnly: true });
        assert.ok(count >= acknowledged, `${acknowledged} writes were acknowledged, ${count} survive`);
        await store.close();
        await rm(copy, { recursive: true });
        checked++;
      }
      assert.ok(
        checked >= 20 && trace.flushes >= checked,
        `${checked} acknowledgements, ${trace.flushes} flushes`,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
