/**
 * Setting storage up from the API: against the real API server of this project, with definitions of the CSI snapshot,
 * Longhorn and Rook kinds, and over kill -9.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { at, systemRandom } from "@kontinuum/std";
import { krytonctl } from "../../packages/kryton/src/cli/krytonctl.ts";
import {
  bearer,
  call,
  start,
  until,
  type Fixture,
  type Parsed,
} from "../../packages/kryton/src/kryton.fixture.ts";
import {
  clusterToken,
  definition,
  startCluster,
  writeManifests,
  type ClusterFixture,
} from "./cluster.fixture.ts";
import { findProgram, run, skipUnless } from "../services/service.ts";
import { KrytondProcess } from "./krytond-process.ts";

const openssl = await findProgram("openssl", "openssl");

const setup = "/api/v1/storage/setup";

interface Site {
  readonly cluster: ClusterFixture;
  readonly env: Record<string, string>;
  readonly folder: string;
}

/** A cluster, manifests, and the variables of a krytond that is connected to it. */
async function inSite(work: (site: Site) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "kryton-storage-"));
  try {
    await using cluster = await startCluster(folder);
    const manifests = join(folder, "manifests");
    await writeManifests(manifests);
    await work({
      cluster,
      folder,
      env: { KRYTON_KUBECONFIG: cluster.kubeconfig, KRYTON_STORAGE_MANIFESTS: manifests },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Waits for the end of a set-up. */
function ended(url: string, headers: Record<string, string> = {}): Promise<Parsed> {
  return until(async () => {
    const { json } = await call(url, "GET", setup, undefined, headers);
    return json.state === "succeeded" || json.state === "failed" ? json : undefined;
  }, 40_000);
}

const types = async (api: Fixture): Promise<string[]> =>
  (await api.call("GET", "/api/v1/events")).json.items.map((event: { type: string }) => event.type);

test("Longhorn is set up step by step, becomes the default class, and can be asked for again", async () => {
  await inSite(async ({ cluster, env }) => {
    const old = { "storageclass.kubernetes.io/is-default-class": "true" };
    await cluster.ask("POST", "/apis/storage.k8s.io/v1/storageclasses", {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "old", annotations: old },
      provisioner: "rancher.io/local-path",
    });
    await cluster.ask(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      definition("kubevirt.io", "KubeVirt", "kubevirts", "Namespaced"),
    );
    await until(async () =>
      at(await cluster.ask("GET", "/apis/kubevirt.io/v1"), "resources") ? true : undefined,
    );
    const kubevirt = {
      apiVersion: "kubevirt.io/v1",
      kind: "KubeVirt",
      metadata: { name: "kubevirt", namespace: "default" },
      spec: {},
    };
    await cluster.ask("POST", "/apis/kubevirt.io/v1/namespaces/default/kubevirts", kubevirt);
    await using api = await start({ env });
    const before = (await api.call("GET", "/api/v1/storage")).json;
    assert.equal(before.scriptsAvailable, true, JSON.stringify(before));
    assert.equal(before.setup.state, "idle");
    assert.deepEqual(before.storageClasses[0].name, "old");
    cluster.acting = false;
    const begun = await api.call("POST", setup, { backend: "longhorn" });
    assert.equal(begun.status, 202, begun.text);
    assert.equal(begun.json.state, "running");
    const again = await api.call("POST", setup, { backend: "longhorn" });
    assert.equal(again.status, 400);
    assert.match(again.json.error.message, /running already/);
    const job = await until(async () => {
      const { json } = await api.call("GET", "/api/v1/jobs/storage:setup");
      return /snapshot-controller/.test(json.message ?? "") ? json : undefined;
    });
    assert.deepEqual(
      [job.kind, job.name, job.state, job.progressPercent, job.steps.map((step: Parsed) => step.state)],
      ["storage", "Storage: longhorn", "running", 50, ["active", "pending", "pending", "pending"]],
    );
    cluster.acting = true;
    const done = await ended(api.url);
    assert.equal(done.state, "succeeded", JSON.stringify(done.logs));
    assert.equal(done.setup.storageClass, "longhorn");
    assert.ok(done.logs.some((line: string) => /\[OK\] StorageClass longhorn was made/.test(line)));
    const after = (await api.call("GET", "/api/v1/storage")).json;
    const made = after.storageClasses.find((entry: Parsed) => entry.name === "longhorn");
    assert.deepEqual([made.default, made.snapshotCapable, made.recommended], [true, true, true]);
    assert.equal(after.storageClasses.find((entry: Parsed) => entry.name === "old").default, undefined);
    assert.deepEqual(after.config, { storageClass: "longhorn" });
    assert.deepEqual(after.backendsInstalled, { longhorn: true });
    const gates = at(
      await cluster.ask("GET", "/apis/kubevirt.io/v1/namespaces/default/kubevirts/kubevirt"),
      "spec",
      "configuration",
      "developerConfiguration",
      "featureGates",
    );
    assert.deepEqual(gates, ["Snapshot"]);
    const seen = await types(api);
    assert.equal(seen[0], "io.kryton.storage.setup.finished");
    assert.equal(seen.filter((type) => type === "io.kryton.storage.setup.started").length, 1);
    assert.equal((await api.call("POST", setup, { backend: "longhorn", setDefault: false })).status, 202);
    assert.equal((await ended(api.url)).state, "succeeded", "what is there stays");
    assert.equal(
      (await api.call("PUT", "/api/v1/storage/config", { storageClass: "old" })).status,
      400,
      "local-path holds no machines",
    );
    assert.equal((await api.call("PUT", "/api/v1/storage/config", { storageClass: "longhorn" })).status, 200);
    assert.match(
      (await api.call("GET", "/metrics")).text,
      /kryton_operations_total\{operation="storage-setup"\} 2/,
    );
  });
});

test("Rook is set up on one disk, or takes a pool in a cluster that is there", async () => {
  await inSite(async ({ cluster, env }) => {
    await using api = await start({ env });
    const refused = await api.call("POST", setup, { backend: "rook-ceph", rookMode: "pool-only" });
    assert.equal(refused.status, 202);
    const failed = await ended(api.url);
    assert.match(failed.setup.error, /pool-only needs a Ceph cluster/);
    const body = {
      backend: "rook-ceph",
      rookMode: "device",
      device: "/dev/disk/by-id/nothing-here",
      wipeDevice: true,
    };
    assert.equal((await api.call("POST", setup, body)).status, 202);
    const done = await ended(api.url);
    assert.equal(done.state, "succeeded", JSON.stringify(done.logs));
    const ceph = await cluster.ask(
      "GET",
      "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/rook-ceph",
    );
    assert.deepEqual(at(ceph, "spec", "storage"), {
      useAllNodes: true,
      useAllDevices: false,
      devices: [{ name: body.device }],
    });
    assert.equal(
      at(ceph, "spec", "cephVersion", "image"),
      "registry.example/ceph@sha256:0",
      "as the manifests say",
    );
    assert.deepEqual(at(ceph, "spec", "cleanupPolicy"), { wipeDevicesFromOtherClusters: true });
    assert.equal(
      (await api.call("POST", setup, { backend: "rook-ceph", rookMode: "pool-only" })).status,
      202,
    );
    assert.equal((await ended(api.url)).setup.storageClass, "rook-ceph-block");
  });
});

test("a set-up that was killed goes on where it was, once", async () => {
  await inSite(async ({ cluster, env, folder }) => {
    const all = { ...env, HOME: folder, KRYTON_STORAGE: `sqlite://${folder}/kryton.db` };
    const first = await KrytondProcess.start(all);
    cluster.acting = false;
    assert.equal((await call(first.url, "POST", setup, { backend: "longhorn" })).status, 202);
    const reached = (text: RegExp, url: string): Promise<true> =>
      until(
        async () =>
          (await call(url, "GET", setup)).json.logs.some((line: string) => text.test(line))
            ? true
            : undefined,
        20_000,
      );
    await reached(/snapshot-controller/, first.url);
    cluster.acting = true;
    await reached(/Enable KubeVirt snapshots: done/, first.url);
    cluster.acting = false;
    await first.kill();
    const second = await KrytondProcess.start(all);
    assert.equal((await call(second.url, "GET", setup)).json.state, "running");
    cluster.acting = true;
    const done = await ended(second.url);
    assert.equal(done.state, "succeeded", JSON.stringify(done.logs));
    const count = (text: RegExp): number => done.logs.filter((line: string) => text.test(line)).length;
    assert.equal(count(/Enable KubeVirt snapshots: done/), 1, "a finished step is not run again");
    assert.equal(count(/Storage is set up/), 1);
    const events = (await call(second.url, "GET", "/api/v1/events?type=io.kryton.storage.setup.finished"))
      .json.items;
    assert.equal(events.length, 1);
    assert.equal(await second.stop(), 0);
  });
});

test("a set-up can be cancelled, and a refusal of the cluster ends it with its reason", async () => {
  await inSite(async ({ cluster, env, folder }) => {
    cluster.acting = false;
    await using api = await start({ env });
    assert.equal((await api.call("POST", `${setup}/cancel`)).status, 409);
    assert.equal((await api.call("POST", setup, { backend: "longhorn" })).status, 202);
    assert.equal((await api.call("POST", `${setup}/cancel`)).status, 202);
    assert.match((await ended(api.url)).setup.error, /^cancelled by local-demo/);
    cluster.acting = true;
    await writeFile(
      join(folder, "manifests/longhorn/longhorn.yaml"),
      "apiVersion: v1\nkind: Namespace\nmetadata: {name: Not_A_Label}\n",
    );
    assert.equal((await api.call("POST", setup, { backend: "longhorn" })).status, 202);
    assert.match((await ended(api.url)).setup.error, /Not_A_Label/);
    await writeFile(join(folder, "manifests/longhorn/longhorn.yaml"), "a: [1\n");
    assert.equal((await api.call("POST", setup, { backend: "longhorn" })).status, 202);
    assert.match((await ended(api.url)).setup.error, /is not valid YAML/);
    await rm(join(folder, "manifests/longhorn"), { recursive: true });
    const none = await api.call("POST", setup, { backend: "longhorn" });
    assert.equal(none.status, 400);
    assert.match(none.json.error.message, /KRYTON_STORAGE_MANIFESTS/);
  });
});

test("what a set-up may be asked for, and by whom", async () => {
  await inSite(async ({ env }) => {
    await using api = await start({
      env,
      keys: {
        boss: { role: "admin", projects: ["*"] },
        op: { role: "operator", projects: ["*"] },
        v: { role: "viewer", projects: ["*"] },
      },
    });
    for (const who of ["op", "v"]) {
      assert.equal((await api.call("POST", setup, { backend: "longhorn" }, bearer(who))).status, 403);
      assert.equal((await api.call("POST", `${setup}/cancel`, undefined, bearer(who))).status, 403);
    }
    for (const body of [
      { backend: "longhorn", rookMode: "lab" },
      { backend: "longhorn", device: "/dev/sdc" },
      { backend: "rook-ceph", rookMode: "device" },
      { backend: "rook-ceph", rookMode: "lab", device: "/dev/sdc" },
      { backend: "rook-ceph", rookMode: "lab", wipeDevice: true },
      { backend: "rook-ceph", rookMode: "device", device: "/dev/../etc/passwd" },
      { backend: "rook-ceph", rookMode: "device", device: "/dev/sdc; reboot" },
      { backend: "rook-ceph", rookMode: "device", device: "sdc" },
    ]) {
      assert.equal((await api.call("POST", setup, body, bearer("boss"))).status, 400, JSON.stringify(body));
    }
    const { blockDevices = [] } = (await api.call("GET", "/api/v1/storage", undefined, bearer("boss"))).json;
    for (const { path, recommended } of blockDevices.filter((device: Parsed) => device.blocked)) {
      assert.equal(recommended, undefined);
      const answer = await api.call(
        "POST",
        setup,
        { backend: "rook-ceph", rookMode: "device", device: path },
        bearer("boss"),
      );
      assert.equal(answer.status, 400, `${path} is offered although it is in use`);
    }
    assert.equal(
      (await api.call("GET", "/api/v1/storage", undefined, bearer("v"))).json.blockDevices,
      undefined,
    );
    const settings = (await api.call("GET", "/api/v1/settings", undefined, bearer("boss"))).json.system;
    assert.equal(settings.kubernetesConnected, true);
    assert.match(settings.kubernetesEndpoint, /^http:\/\/127/);
    const { probes } = (await api.call("POST", "/api/v1/settings/test", undefined, bearer("boss"))).json
      .connection;
    assert.deepEqual(
      probes.map((probe: Parsed) => [probe.name, probe.status]),
      [
        ["provider", "pass"],
        ["kubernetes", "pass"],
        ["storage", "pass"],
      ],
    );
  });
});

test("krytonctl sets storage up and follows the log until its end", async () => {
  await inSite(async ({ env }) => {
    await using api = await start({ env });
    const ctl = async (...args: string[]): Promise<{ status: number; out: string; err: string }> => {
      let out = "";
      let err = "";
      const io = {
        out: (text: string) => void (out += text),
        err: (text: string) => void (err += text),
        env: { KRYTON_URL: api.url },
        random: systemRandom,
      };
      return { status: await krytonctl(args, io), out, err };
    };
    const done = await ctl("setup-storage", "--backend", "longhorn", "--wait");
    assert.equal(done.status, 0, done.err);
    assert.deepEqual(
      [JSON.parse(done.out).state, JSON.parse(done.out).storageClass],
      ["succeeded", "longhorn"],
    );
    assert.match(done.err, /\[OK\] Storage is set up\.\n$/);
    const lines = done.err.trim().split("\n");
    assert.equal(new Set(lines).size, lines.length, "no line twice");
    const failed = await ctl(
      "setup-storage",
      "--backend",
      "rook-ceph",
      "--rook-mode",
      "pool-only",
      "--no-default",
      "--wait",
    );
    assert.equal(failed.status, 1);
    assert.match(JSON.parse(failed.out).error, /pool-only needs a Ceph cluster/);
  });
});

test(
  "a cluster is reached over TLS, and only when it is the one that was meant",
  { skip: skipUnless(openssl) },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "kryton-cluster-tls-"));
    try {
      const file = (name: string): string => join(folder, name);
      for (const name of ["cluster", "other"]) {
        const kind = [
          "req",
          "-x509",
          "-newkey",
          "ec",
          "-pkeyopt",
          "ec_paramgen_curve:P-256",
          "-nodes",
          "-days",
          "2",
        ];
        const subject = ["-subj", "/CN=cluster", "-addext", "subjectAltName=IP:127.0.0.1"];
        await run(String(openssl), [
          ...kind,
          ...subject,
          "-keyout",
          file(`${name}.key`),
          "-out",
          file(`${name}.crt`),
        ]);
      }
      const tls = {
        cert: await readFile(file("cluster.crt"), "utf8"),
        key: await readFile(file("cluster.key"), "utf8"),
      };
      await using cluster = await startCluster(folder, tls);
      await writeFile(file("token"), "wrong\n");
      const probe = async (ca: string): Promise<[number, string]> => {
        await using api = await start({
          env: {
            KRYTON_KUBERNETES_ENDPOINT: cluster.url,
            KRYTON_KUBERNETES_CA_FILE: file(`${ca}.crt`),
            KRYTON_KUBERNETES_TOKEN_FILE: file("token"),
          },
        });
        const storage = await api.call("GET", "/api/v1/storage");
        assert.doesNotMatch(
          storage.text,
          /127\.0\.0\.1|Bearer|t0ken/,
          "the cluster's address is not for everybody",
        );
        return [storage.status, storage.json.error?.code ?? "none"];
      };
      assert.deepEqual(
        await probe("cluster"),
        [502, "PROVIDER_ERROR"],
        "a wrong token is the cluster's refusal",
      );
      await writeFile(file("token"), `${clusterToken}\n`);
      assert.deepEqual(await probe("cluster"), [200, "none"]);
      assert.deepEqual(
        await probe("other"),
        [503, "PROVIDER_UNAVAILABLE"],
        "another certificate is not trusted",
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
