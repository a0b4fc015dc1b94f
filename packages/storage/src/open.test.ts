import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import { etcdTarget } from "./drivers/etcd/etcd-url.ts";
import { connectEtcd } from "./drivers/etcd/etcd-store.ts";
import { serveEtcd } from "./etcd/services.ts";
import { openStore } from "./open.ts";

async function message(url: string): Promise<string> {
  try {
    await (await openStore(url, systemEdges())).close();
  } catch (error) {
    assert.ok(isCoded(error, "invalid_argument"), String(error));
    return error.message;
  }
  return "opened";
}

test("what is not supported is refused with what is", async () => {
  for (const url of ["mysql://root@db/x", "nats://localhost", "http://x", "sqlite", "/var/lib/x.db"])
    assert.match(
      await message(url),
      /not supported: use one of memory:\/\/, sqlite:\/\/PATH, postgres:/,
      url,
    );
  assert.match(await message(""), /empty: use one of/);
});

test("forms that miss something say what", async () => {
  assert.match(await message("sqlite://"), /names a file/);
  assert.match(await message("etcd://"), /host and port/);
  assert.match(await message("unix://"), /absolute path/);
  assert.match(await message("unix://relative/path"), /absolute path/);
  assert.match(await message("postgres://user@host"), /names no database/);
  assert.match(await message("postgres://user@one,two"), /names no database/);
  assert.match(await message("postgres://user@one:5432,/db"), /not as host:port,host:port/);
  assert.match(await message("etcd://host:1?cafile=x"), /unknown parameter cafile .* use tls, ca-file/);
  assert.match(await message("etcd://host:1?ca-file=/none"), /ca-file \/none cannot be read/);
});

test("no message repeats a password", async () => {
  for (const url of [
    "mysql://root:hunter2@db/x",
    "postgres://u:hunter2@host",
    "postgres://u:hunter2@host,,/db",
    "etcd://u:hunter2@",
    "weird://a:hunter2@b",
  ])
    assert.doesNotMatch(await message(url), /hunter2/);
});

test("etcd URLs", () => {
  assert.deepEqual(etcdTarget("etcd", "a:1,b:2,c"), { endpoints: ["a:1", "b:2", "c:2379"] });
  assert.deepEqual(etcdTarget("etcd", "u%40x:p%3Aw@a:1"), {
    endpoints: ["a:1"],
    credentials: { name: "u@x", password: "p:w" },
  });
  assert.deepEqual(etcdTarget("grpc", "[::1]:5/ignored?tls=true"), { endpoints: ["[::1]:5"], tls: {} });
  assert.deepEqual(etcdTarget("unix", "/run/a.sock"), { endpoints: ["unix:///run/a.sock"] });
  assert.deepEqual(etcdTarget("etcd", "a:1?insecure-skip-verify=true").tls, { rejectUnauthorized: false });
});

test("relative and absolute SQLite paths, and a Unix socket", async () => {
  const folder = await mkdtemp(join(tmpdir(), "open-"));
  try {
    const store = await openStore(`sqlite://${folder}/a.db`, systemEdges());
    const server = await serveEtcd(store, { socketPath: join(folder, "etcd.sock") });
    assert.equal(server.url, `unix://${folder}/etcd.sock`);
    const remote = await openStore(server.url, systemEdges());
    await remote.txn({ success: [{ type: "put", key: "/a", value: "1" }] });
    assert.equal((await store.range({ key: "/a" })).count, 1);
    assert.equal((await remote.status()).driver, "unix");
    await remote.close();
    await server.close();
    await store.close();
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a server that is not there is a retryable failure in bounded time", async () => {
  const store = await openStore("memory://", systemEdges());
  const server = await serveEtcd(store);
  await server.close();
  await store.close();
  const remote = connectEtcd({ endpoints: [`127.0.0.1:${server.port}`] }, systemEdges());
  await assert.rejects(remote.range({ key: "/a" }), (error) => isCoded(error, "unavailable"));
  await assert.rejects(remote.txn({ success: [{ type: "put", key: "/a", value: "" }] }), (error) =>
    isCoded(error, "unavailable"),
  );
  await remote.close();
  await assert.rejects(remote.range({ key: "/a" }), (error) => isCoded(error, "unavailable"));
});

test("the next endpoint is used when one is gone", async () => {
  const store = await openStore("memory://", systemEdges());
  const [first, second] = [await serveEtcd(store), await serveEtcd(store)];
  const remote = connectEtcd(
    { endpoints: [`127.0.0.1:${first.port}`, `127.0.0.1:${second.port}`] },
    systemEdges(),
  );
  await remote.txn({ success: [{ type: "put", key: "/a", value: "1" }] });
  const watch = remote.watch({ key: "/a" });
  await watch.ready;
  await first.close();
  assert.equal((await remote.range({ key: "/a" })).count, 1);
  await remote.txn({ success: [{ type: "put", key: "/a", value: "2" }] });
  const { value } = await watch[Symbol.asyncIterator]().next();
  assert.equal(value?.events[0]?.kv.value.toString(), "2");
  await remote.close();
  await second.close();
  await store.close();
});
