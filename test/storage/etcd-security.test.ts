/** TLS, client certificates and users, against our face and a real etcd. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import { connectEtcd, openStore, serveEtcd } from "@kontinuum/storage";
import { findEtcd, findEtcdctl, startEtcd } from "../services/etcd.ts";
import { findProgram, run, skipUnless } from "../services/service.ts";

const openssl = await findProgram("openssl", "openssl");
const etcdctl = await findEtcdctl();

describe("TLS", { skip: skipUnless(openssl) }, () => {
  let folder: string;
  const file = (name: string): string => join(folder, name);
  const ssl = async (...args: string[]): Promise<void> => {
    const ran = await run("openssl", args, { cwd: folder });
    assert.equal(ran.code, 0, ran.stderr);
  };
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "tls-"));
    await ssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test CA");
    for (const name of ["server", "client"])
      await ssl(
        "req",
        "-x509",
        ...key,
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-keyout",
        `${name}.key`,
        "-out",
        `${name}.crt`,
        "-subj",
        `/CN=${name}`,
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:localhost",
      );
  });
  after(() => rm(folder, { recursive: true }));

  test("the store's own client and etcdctl, with client certificates required", async () => {
    const [ca, cert, keyPem] = await Promise.all(
      ["ca.crt", "server.crt", "server.key"].map((name) => readFile(file(name), "utf8")),
    );
    const store = await openStore("memory://", systemEdges());
    const server = await serveEtcd(store, { tls: { cert: cert ?? "", key: keyPem ?? "", ca: ca ?? "" } });
    assert.match(server.url, /^https:/);
    const url = `etcd://127.0.0.1:${server.port}?ca-file=${file("ca.crt")}&cert-file=${file("client.crt")}&key-file=${file("client.key")}`;
    const remote = await openStore(url, systemEdges());
    await remote.txn({ success: [{ type: "put", key: "/a", value: "1" }] });
    assert.equal((await remote.range({ key: "/a" })).count, 1);
    await remote.close();

    const bare = await openStore(`etcd://127.0.0.1:${server.port}?ca-file=${file("ca.crt")}`, systemEdges());
    await assert.rejects(bare.range({ key: "/a" }), (error) => isCoded(error, "unavailable"));
    await bare.close();
    const strict = await openStore(`etcd://127.0.0.1:${server.port}?tls=true`, systemEdges());
    await assert.rejects(strict.range({ key: "/a" }), (error) => isCoded(error, "unavailable"));
    await strict.close();

    if (typeof etcdctl === "string") {
      const ran = await run(
        etcdctl,
        [
          `--endpoints=https://127.0.0.1:${server.port}`,
          `--cacert=${file("ca.crt")}`,
          `--cert=${file("client.crt")}`,
          `--key=${file("client.key")}`,
          "get",
          "/a",
        ],
        { env: { ETCDCTL_API: "3", PATH: process.env["PATH"] ?? "" } },
      );
      assert.equal(ran.stdout, "/a\n1\n", ran.stderr);
    }
    await server.close();
    await store.close();
  });
});

test(
  "users and passwords of a real etcd",
  { skip: skipUnless(await findEtcd()) || skipUnless(etcdctl) },
  async () => {
    const etcd = await startEtcd();
    const ctl = async (...args: string[]): Promise<void> => {
      const ran = await run(
        typeof etcdctl === "string" ? etcdctl : "",
        [`--endpoints=${etcd.endpoint}`, ...args],
        {
          env: { ETCDCTL_API: "3", PATH: process.env["PATH"] ?? "" },
        },
      );
      assert.equal(ran.code, 0, ran.stderr);
    };
    try {
      await ctl("user", "add", "root:secret");
      await ctl("user", "grant-role", "root", "root");
      await ctl("user", "add", "ada:lovelace");
      await ctl("role", "add", "own");
      await ctl("role", "grant-permission", "own", "--prefix=true", "readwrite", "/ada/");
      await ctl("user", "grant-role", "ada", "own");
      await ctl("auth", "enable");
      const ada = await openStore(`etcd://ada:lovelace@${etcd.endpoint}`, systemEdges());
      await ada.txn({ success: [{ type: "put", key: "/ada/x", value: "1" }] });
      const watch = ada.watch({ key: "/ada/x", startRevision: 1 });
      const { value } = await watch[Symbol.asyncIterator]().next();
      assert.equal(value?.events[0]?.kv.value.toString(), "1");
      await assert.rejects(ada.range({ key: "/other" }), (error) => isCoded(error, "permission_denied"));
      await ada.close();
      const wrong = connectEtcd(
        { endpoints: [etcd.endpoint], credentials: { name: "ada", password: "wrong" } },
        systemEdges(),
      );
      await assert.rejects(wrong.range({ key: "/ada/x" }), (error) => {
        assert.ok(isCoded(error, "unauthenticated") || isCoded(error, "invalid_argument"), String(error));
        assert.doesNotMatch(error.message, /wrong/);
        return true;
      });
      await wrong.close();
    } finally {
      await etcd.stop();
    }
  },
);
