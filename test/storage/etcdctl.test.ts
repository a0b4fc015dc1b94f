/**
 * The real etcdctl against our face over SQLite: what people have in their fingers works unchanged.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import {
  openStore,
  prefixRange,
  restoreBackup,
  serveEtcd,
  type EtcdServer,
  type Store,
} from "@kontinuum/storage";
import { findEtcd, findEtcdctl, startEtcd } from "../services/etcd.ts";
import { run, servicesRequired, skipUnless, start, waitFor, type Ran } from "../services/service.ts";

const found = await findEtcdctl();
const foundEtcd = await findEtcd();
const skip = skipUnless(found);
const etcdctl = typeof found === "string" ? found : "";

describe("etcdctl", { skip }, () => {
  let folder: string;
  let store: Store;
  let server: EtcdServer;
  const env = { ETCDCTL_API: "3", PATH: process.env["PATH"] ?? "" };
  const endpoint = (): string => `--endpoints=127.0.0.1:${server.port}`;
  const ctl = (...args: string[]): Promise<Ran> => run(etcdctl, [endpoint(), ...args], { env });
  const ok = async (...args: string[]): Promise<string> => {
    const ran = await ctl(...args);
    assert.equal(ran.code, 0, ran.stderr + ran.stdout);
    return ran.stdout;
  };
  const lines = async (...args: string[]): Promise<string[]> =>
    (await ok(...args)).split("\n").filter((line) => line !== "");

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "etcdctl-"));
    store = await openStore(`sqlite://${folder}/store.db`, systemEdges());
    server = await serveEtcd(store);
  });
  after(async () => {
    await server.close();
    await store.close();
    await rm(folder, { recursive: true });
  });

  test("put and get with every flag", async () => {
    for (const [key, value] of [
      ["/g/a", "1"],
      ["/g/b", "2"],
      ["/g/c", "3"],
    ])
      await ok("put", key ?? "", value ?? "");
    const first = await store.revision();
    assert.deepEqual(await lines("put", "--prev-kv", "/g/b", "22"), ["OK", "/g/b", "2"]);
    assert.deepEqual(await lines("get", "/g/a"), ["/g/a", "1"]);
    assert.deepEqual(await lines("get", "--print-value-only", "/g/b"), ["22"]);
    assert.deepEqual(await lines("get", "--print-value-only", `--rev=${first}`, "/g/b"), ["2"]);
    assert.deepEqual(await lines("get", "--prefix", "--keys-only", "/g/"), ["/g/a", "/g/b", "/g/c"]);
    assert.deepEqual(await lines("get", "--keys-only", "/g/a", "/g/c"), ["/g/a", "/g/b"]);
    assert.deepEqual(await lines("get", "--prefix", "--limit=1", "--keys-only", "/g/"), ["/g/a"]);
    assert.deepEqual(
      await lines("get", "--prefix", "--keys-only", "--sort-by=MODIFY", "--order=DESCEND", "/g/"),
      ["/g/b", "/g/c", "/g/a"],
    );
    assert.deepEqual(await lines("get", "--from-key", "--keys-only", "/g/b"), ["/g/b", "/g/c"]);
    assert.deepEqual(await lines("get", "--consistency=s", "/g/c"), ["/g/c", "3"]);
    const json: unknown = JSON.parse(await ok("get", "/g/a", "-w", "json"));
    assert.ok(typeof json === "object" && json !== null && "kvs" in json && "header" in json);
    await ok("put", "--ignore-lease", "/g/a", "11");
    assert.deepEqual(await lines("get", "--print-value-only", "/g/a"), ["11"]);
    const unknown = await ctl("put", "--ignore-lease", "/g/none", "x");
    assert.match(unknown.stderr, /etcdserver: key not found/);
  });

  test("del", async () => {
    for (const key of ["/d/a", "/d/b", "/d/c"]) await ok("put", key, key);
    assert.deepEqual(await lines("del", "--prev-kv", "/d/a"), ["1", "/d/a", "/d/a"]);
    assert.deepEqual(await lines("del", "--prefix", "/d/"), ["2"]);
    assert.deepEqual(await lines("del", "/d/a"), ["0"]);
  });

  test("txn", async () => {
    await ok("put", "/t/a", "1");
    const input = 'value("/t/a") = "1"\nmod("/t/none") = "0"\n\nput /t/b 2\nget /t/a\n\nput /t/c 3\n\n';
    const ran = await run(etcdctl, [endpoint(), "txn"], { env, input });
    assert.match(ran.stdout, /SUCCESS\n\nOK\n\n\/t\/a\n1/);
    const again = await run(etcdctl, [endpoint(), "txn"], {
      env,
      input: 'create("/t/a") = "0"\n\nput /t/b 2\n\nput /t/c 3\n\n',
    });
    assert.match(again.stdout, /FAILURE\n\nOK/);
    assert.deepEqual(await lines("get", "--print-value-only", "/t/c"), ["3"]);
  });

  test("watch from a revision with previous values, and live", async () => {
    await ok("put", "/w/a", "1");
    const from = await store.revision();
    await ok("put", "/w/a", "2");
    const watch = start(etcdctl, [endpoint(), "watch", "--prefix", `--rev=${from}`, "--prev-kv", "/w/"], {
      env,
    });
    try {
      await waitFor("the past", () => watch.output().includes("\n2\n"));
      await ok("put", "/w/b", "live");
      await ok("del", "/w/a");
      await waitFor("the present", () => watch.output().includes("DELETE"));
      assert.equal(
        watch.output().trim().split(/\n+/).join(" "),
        "PUT /w/a 1 PUT /w/a 1 /w/a 2 PUT /w/b live DELETE /w/a 2 /w/a",
      );
    } finally {
      await watch.stop();
    }
  });

  test("leases: grant, timetolive, keep-alive, list, revoke", async () => {
    const granted = await ok("lease", "grant", "100");
    const id = /lease (\S+) granted with TTL\(100s\)/.exec(granted)?.[1] ?? "";
    await ok("put", `--lease=${id}`, "/l/a", "1");
    assert.match(
      await ok("lease", "timetolive", "--keys", id),
      /granted with TTL\(100s\), remaining\(\d+s\), attached keys\(\[\/l\/a\]\)/,
    );
    assert.match(await ok("lease", "keep-alive", "--once", id), /keepalived with TTL\(100\)/);
    assert.ok((await lines("lease", "list")).includes(id));
    await ok("lease", "revoke", id);
    assert.deepEqual(await lines("get", "/l/a"), []);
    assert.match(await ok("lease", "timetolive", id), /already expired/);
    assert.match((await ctl("lease", "revoke", id)).stderr, /etcdserver: requested lease not found/);
  });

  test("compaction, and what is refused after it", async () => {
    await ok("put", "/c/a", "1");
    const old = await store.revision();
    await ok("put", "/c/a", "2");
    const mark = await store.revision();
    await ok("compaction", String(mark));
    assert.match(
      (await ctl("compaction", String(mark))).stderr,
      /mvcc: required revision has been compacted/,
    );
    assert.match(
      (await ctl("get", `--rev=${old}`, "/c/a")).stderr,
      /mvcc: required revision has been compacted/,
    );
    assert.match(
      (await ctl("get", `--rev=${mark + 1_000}`, "/c/a")).stderr,
      /mvcc: required revision is a future revision/,
    );
    const watch = await ctl("watch", `--rev=${old}`, "/c/a");
    assert.match(watch.stdout + watch.stderr, /mvcc: required revision has been compacted/);
    assert.deepEqual(await lines("get", "--print-value-only", "/c/a"), ["2"]);
  });

  test("status, health, hash, members, alarms, defragmentation", async () => {
    assert.match(await ok("endpoint", "status", "-w", "table"), /\| +127\.0\.0\.1:\d+ \| +1 \| +3\.5\.13 \|/);
    await ok("endpoint", "health");
    assert.match(await ok("endpoint", "hashkv"), /:\d+, \d+/);
    assert.match(await ok("member", "list"), /started, kontinuum/);
    assert.equal(await ok("alarm", "list"), "");
  });

  test("defrag gives space back before it answers", async () => {
    for (let i = 0; i < 200; i++)
      await store.txn({ success: [{ type: "put", key: "/big", value: `${i}`.repeat(4_000) }] });
    const { sizeBytes, revision } = await store.status();
    await ok("compaction", String(revision));
    assert.match(await ok("defrag"), /Finished defragmenting/);
    const after = await store.status();
    assert.ok(after.sizeBytes < sizeBytes / 2, `${after.sizeBytes} of ${sizeBytes} bytes`);
    assert.deepEqual(await store.range({ key: "/big", countOnly: true }).then(({ count }) => count), 1);
  });

  test("hashes at a revision are equal as long as the revision is kept", async () => {
    await ok("put", "/h/a", "1");
    const revision = await store.revision();
    const hash = async (): Promise<string> =>
      (await ok("endpoint", "hashkv", `--rev=${revision}`)).trim().split(", ")[1] ?? "";
    const before = await hash();
    await ok("put", "/h/a", "2");
    assert.equal(await hash(), before);
    assert.notEqual((await ok("endpoint", "hashkv")).trim().split(", ")[1], before);
    await ok("compaction", String(revision + 1));
    const gone = await ctl("endpoint", "hashkv", `--rev=${revision}`);
    assert.match(gone.stderr, /required revision has been compacted/);
  });

  test("snapshot save is a backup that restores", async () => {
    const path = join(folder, "snapshot");
    await ok("snapshot", "save", path);
    assert.equal(((await stat(path)).size - 32) % 512, 0);
    const restored = await openStore("memory://", systemEdges());
    const { revision } = await restoreBackup(path, restored);
    assert.equal((await restored.hash()).hash, (await store.hash(revision)).hash);
    await restored.close();
  });

  test("snapshot save over etcd is etcd's own file", { skip: skipUnless(foundEtcd) }, async () => {
    const etcd = await startEtcd();
    const remote = await openStore(etcd.url, systemEdges());
    const face = await serveEtcd(remote);
    try {
      await remote.txn({ success: [{ type: "put", key: "/s/a", value: "1" }] });
      const file = join(folder, "etcd.snapshot");
      const saved = await run(etcdctl, [`--endpoints=127.0.0.1:${face.port}`, "snapshot", "save", file], {
        env,
      });
      assert.equal(saved.code, 0, saved.stderr);
      const status = await run(etcdctl, ["snapshot", "status", file, "-w", "json"], { env });
      assert.equal(status.code, 0, status.stderr);
      assert.ok(Number(JSON.parse(status.stdout).totalKey) > 0, status.stdout);
    } finally {
      await face.close();
      await remote.close();
      await etcd.stop();
    }
  });

  test("make-mirror copies and follows", async () => {
    await ok("put", "/m/a", "1");
    const target = await openStore("memory://", systemEdges());
    const mirror = await serveEtcd(target);
    const copying = start(etcdctl, [endpoint(), "make-mirror", "--prefix=/m/", `127.0.0.1:${mirror.port}`], {
      env,
    });
    const contents = async (): Promise<string> =>
      (await target.range(prefixRange("/m/"))).kvs
        .map((kv) => `${kv.key.toString()}=${kv.value.toString()}`)
        .join();
    try {
      await waitFor("the first copy", async () => (await contents()) === "/m/a=1");
      await ok("put", "/m/b", "2");
      await ok("del", "/m/a");
      await waitFor("the changes", async () => (await contents()) === "/m/b=2");
    } finally {
      await copying.stop();
      await mirror.close();
      await target.close();
    }
  });

  test("lock: the second waits for the first", async () => {
    const first = start(etcdctl, [endpoint(), "lock", "/lock/x"], { env });
    await waitFor("the first lock", () => first.output().includes("/lock/x/"));
    const second = start(etcdctl, [endpoint(), "lock", "/lock/x"], { env });
    await waitFor(
      "both in line",
      async () => (await store.range({ ...prefixRange("/lock/x/"), countOnly: true })).count === 2,
    );
    assert.equal(second.output(), "");
    await first.stop("SIGINT");
    await waitFor("the second lock", () => second.output().includes("/lock/x/"));
    await second.stop("SIGINT");
  });

  test("elect: one leads, the next follows, listeners hear it", async () => {
    const one = start(etcdctl, [endpoint(), "elect", "/elect/x", "one"], { env });
    await waitFor("the first leader", () => one.output().includes("one"));
    const listener = start(etcdctl, [endpoint(), "elect", "--listen", "/elect/x"], { env });
    const two = start(etcdctl, [endpoint(), "elect", "/elect/x", "two"], { env });
    await waitFor(
      "both candidates",
      async () => (await store.range({ ...prefixRange("/elect/x/"), countOnly: true })).count === 2,
    );
    await one.stop("SIGINT");
    await waitFor("the second leader", () => two.output().includes("two"));
    await waitFor("the listener", () => /one[\s\S]*two/.test(listener.output()));
    await two.stop("SIGINT");
    await listener.stop();
  });
});

// It takes a minute by itself: where services are required (continuous integration), and on demand.
const checkPerf = servicesRequired || process.env["STORAGE_CHECK_PERF"] === "1";

test(
  "etcdctl check perf is passed",
  { skip: skip || (checkPerf ? false : "takes a minute: STORAGE_CHECK_PERF=1"), timeout: 240_000 },
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "check-perf-"));
    const store = await openStore(`sqlite://${folder}/store.db`, systemEdges());
    const server = await serveEtcd(store);
    t.after(async () => {
      await server.close();
      await store.close();
      await rm(folder, { recursive: true });
    });
    const ran = await run(etcdctl, [`--endpoints=127.0.0.1:${server.port}`, "check", "perf", "--load=s"], {
      env: { ETCDCTL_API: "3", PATH: process.env["PATH"] ?? "" },
      timeoutMs: 180_000,
    });
    assert.match(ran.stdout, /PASS: Throughput/);
  },
);
