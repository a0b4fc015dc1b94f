import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { Client } from "@kontinuum/controller";
import { CodedError, isCoded, SimulatedClock, systemEdges } from "@kontinuum/std";
import { routeOf, type RouteOrigin } from "./grpc/route.ts";
import { readNodeConfig } from "./node-config.ts";
import { TestCluster } from "./rack.fixture.ts";
import { PodAddresses } from "./kubernetes/pod-address.ts";
import { containerMounts, prepareVolumes } from "./kubernetes/pod-environment.ts";
import { mayRunOn } from "./kubernetes/scheduler.controller.ts";
import type { Node, Pod } from "./kubernetes/kinds.ts";
import { templateHash } from "./kubernetes/template-hash.ts";
import { parseRecord } from "./machine-record.ts";
import { addressNumber, addressText, describeMachine, describeMachines } from "./machine-spec.ts";
import { RackFiles } from "./rack-files.ts";
import { prettySize } from "./resource-descriptions.ts";
import { ResourceStore, type ResourceDescription } from "./resource-store.ts";
import { mayCall } from "./role.ts";

test("machines are the same in every run and only on loopback addresses", () => {
  const one = describeMachine({ name: "a", address: "127.0.1.2" });
  assert.deepEqual(one, describeMachine({ name: "a", address: "127.0.1.2" }));
  assert.notEqual(one.uuid, describeMachine({ name: "b", address: "127.0.1.2" }).uuid);
  assert.match(one.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.throws(
    () => describeMachine({ name: "a", address: "10.0.0.1" }),
    (error) => isCoded(error, "invalid_argument"),
  );
  const many = describeMachines({ count: 300, addressBase: "127.1.0.250" });
  assert.equal(many[10]?.address, "127.1.1.4");
  assert.equal(new Set(many.flatMap(({ links }) => links.map(({ mac }) => mac))).size, 600);
  assert.equal(addressText(addressNumber("127.255.0.1")), "127.255.0.1");
});

test("a resource store tells what changed and nothing else", async () => {
  const store = new ResourceStore(new SimulatedClock());
  const of = (id: string, text: string): ResourceDescription => ({
    namespace: "n",
    type: "t",
    id,
    owner: "o",
    proto: Buffer.from(text),
    yaml: () => text,
  });
  store.replace([of("b", "1"), of("a", "1")]);
  const changes = store.watch("n", "t");
  store.replace([of("a", "1"), of("b", "2"), of("c", "1")]);
  store.replace([of("a", "1")]);
  const seen: string[] = [];
  for (let i = 0; i < 4; i++) {
    const { value } = await changes.next();
    seen.push(`${value.type} ${value.resource.id} v${value.resource.version}`);
  }
  assert.deepEqual(seen, ["updated b v2", "created c v1", "destroyed b v2", "destroyed c v1"]);
  assert.deepEqual(
    store.list("n", "t").map(({ id }) => id),
    ["a"],
  );
  assert.equal(changes.size, 0);
  for (let i = 0; i < 2000; i++) store.replace([of("a", String(i))]);
  await assert.rejects(async () => {
    for await (const _ of changes);
  }, /too far behind/);
});

test("roles: the narrowest that may", () => {
  const may = (method: string, ...roles: string[]) => mayCall(`/machine.MachineService/${method}`, roles);
  assert.equal(may("Version", "os:reader"), true);
  assert.equal(may("Reboot", "os:reader"), false);
  assert.equal(may("Reboot", "os:operator"), true);
  assert.equal(may("Reset", "os:operator"), false);
  assert.equal(may("EtcdSnapshot", "os:etcd:backup"), true);
  assert.equal(may("SomethingNew", "os:operator"), false, "a method without a rule needs an admin");
  assert.equal(may("SomethingNew", "os:admin"), true);
  assert.equal(may("Version"), false);
});

test("routes follow the metadata, as far as the node may forward", async () => {
  const cluster = await TestCluster.create("127.0.0.8");
  const origin = (type?: "controlplane" | "worker"): RouteOrigin => ({
    isMaintenance: type === undefined,
    node: {
      hostname: "me",
      spec: describeMachine({ name: "m", address: "127.0.0.8" }),
      config: type && readNodeConfig(cluster.config(type, "me")),
    },
  });
  const machine = "machine.MachineService";
  const route = (headers: Record<string, string>, from: RouteOrigin, service = machine) =>
    routeOf(new Headers(headers), service, from);
  const other = "127.0.0.9";
  assert.deepEqual(route({ node: other }, origin()), { kind: "local" }, "in maintenance mode everything is");
  const controlPlane = origin("controlplane");
  assert.deepEqual(route({}, controlPlane), { kind: "local" });
  assert.deepEqual(route({ node: other }, controlPlane), { kind: "one", target: other });
  assert.deepEqual(route({ nodes: `${other}, me` }, controlPlane), { kind: "many", targets: [other, "me"] });
  assert.deepEqual(route({ node: other, proxyfrom: "x" }, controlPlane), { kind: "local" }, "no second hop");
  assert.throws(() => route({ nodes: other }, controlPlane, "cosi.resource.State"), /not supported/);
  assert.throws(() => route({ node: "a,b" }, controlPlane), /single-valued/);
  assert.throws(() => route({ node: `${other}:50000` }, controlPlane), /invalid target/);
  assert.throws(
    () => route({ nodes: Array.from({ length: 2000 }, () => other).join() }, controlPlane),
    /more than/,
  );
  const worker = origin("worker");
  assert.deepEqual(route({ node: "me" }, worker), { kind: "local" });
  assert.deepEqual(route({ nodes: "127.0.0.8" }, worker), { kind: "local" });
  assert.throws(() => route({ node: other }, worker), /no request forwarding/);
});

test("pod addresses are unique, come back, and run out with a clear error", () => {
  const addresses = new PodAddresses("127.5.0.250", 10);
  addresses.reserve("127.5.0.251");
  const taken = Array.from({ length: 7 }, () => addresses.take());
  assert.deepEqual(taken, [
    "127.5.0.250",
    "127.5.0.252",
    "127.5.0.253",
    "127.5.0.254",
    "127.5.1.1",
    "127.5.1.2",
    "127.5.1.3",
  ]);
  assert.throws(
    () => addresses.take(),
    (error) => isCoded(error, "unavailable"),
  );
  addresses.release("127.5.0.253");
  assert.equal(addresses.take(), "127.5.0.253");
});

test("a template's hash does not depend on the order of its keys", () => {
  const a = { metadata: { labels: { x: "1", y: "2" } }, spec: { a: 1, b: [1, 2] } };
  const b = { spec: { b: [1, 2], a: 1 }, metadata: { labels: { y: "2", x: "1" } } };
  assert.equal(templateHash(a), templateHash(b));
  assert.notEqual(templateHash(a), templateHash({ ...a, spec: { a: 1, b: [2, 1] } }));
  assert.match(templateHash(a), /^[a-z0-9]{10}$/);
});

test("names of volumes and keys never lead out of the pod's folder", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "pod-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const pod = (volumes: object[]): Pod => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "n" },
    spec: { containers: [], volumes: volumes.map((volume) => ({ ...volume })) },
  });
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s", namespace: "n" },
    data: { key: "eA==" },
  };
  const body = async function* () {
    yield Buffer.from(JSON.stringify(secret));
  };
  const client = new Client(() => Promise.resolve({ status: 200, headers: {}, body: body() }), {
    edges: systemEdges(),
  });
  const prepare = (volumes: object[]) => prepareVolumes(client, pod(volumes), folder);
  for (const name of ["../out", "/etc", "..", ""]) {
    await assert.rejects(prepare([{ name, emptyDir: {} }]), /not a usable name/);
  }
  const items = (target: string) => [
    { name: "v", secret: { secretName: "s", items: [{ key: "key", path: target }] } },
  ];
  await assert.rejects(prepare(items("../../escaped")), /not a usable name/);
  const folders = await prepare(items("deep/er/file"));
  const file = path.join(folders["v"] ?? "", "deep/er/file");
  assert.equal(await readFile(file, "utf8"), "x");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const container = (subPath: string) => ({
    name: "c",
    volumeMounts: [{ name: "v", mountPath: "/m", subPath }],
  });
  assert.throws(() => containerMounts(container("../../x"), folders), /not a usable name/);
  assert.deepEqual(containerMounts(container("deep"), folders), {
    "/m": path.join(folders["v"] ?? "", "deep"),
  });
});

test("the scheduler minds selectors, taints and readiness", () => {
  const node = (spec: Node["spec"], labels = {}, ready = "True"): Node => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n", labels },
    spec: spec ?? {},
    status: { conditions: [{ type: "Ready", status: ready }] },
  });
  const pod = (spec: Partial<Pod["spec"]>): Pod => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p" },
    spec: { containers: [], ...spec },
  });
  const tainted = node({ taints: [{ key: "gpu", effect: "NoSchedule", value: "yes" }] });
  assert.equal(mayRunOn(pod({}), node({})), true);
  assert.equal(mayRunOn(pod({}), node({}, {}, "Unknown")), false);
  assert.equal(mayRunOn(pod({}), node({ unschedulable: true })), false);
  assert.equal(mayRunOn(pod({}), node({ unschedulable: true }), { isDaemon: true }), true);
  assert.equal(mayRunOn(pod({ nodeSelector: { a: "b" } }), node({}, { a: "c" })), false);
  assert.equal(mayRunOn(pod({ nodeSelector: { a: "b" } }), node({}, { a: "b" })), true);
  assert.equal(mayRunOn(pod({}), tainted), false);
  assert.equal(mayRunOn(pod({ tolerations: [{ key: "gpu", value: "yes" }] }), tainted), true);
  assert.equal(mayRunOn(pod({ tolerations: [{ key: "gpu", value: "no" }] }), tainted), false);
  assert.equal(mayRunOn(pod({ tolerations: [{ operator: "Exists" }] }), tainted), true);
  assert.equal(
    mayRunOn(pod({ tolerations: [{ key: "gpu", operator: "Exists", effect: "NoExecute" }] }), tainted),
    false,
  );
});

test("the rack's files are whole, ordered and private; a damaged one is named", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "rack-files-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const files = new RackFiles(path.join(folder, "rack"));
  await files.open();
  assert.equal((await stat(path.join(folder, "rack"))).mode & 0o777, 0o700);
  await Promise.all(Array.from({ length: 20 }, (_, i) => files.write("machines", "a", String(i))));
  assert.equal(await files.read("machines", "a"), "19");
  assert.deepEqual(await files.names("machines"), ["a"]);
  await files.remove("machines", "a");
  assert.equal(await files.read("machines", "a"), undefined);
  await assert.rejects(files.write("machines", "../x", ""), (error) => error instanceof CodedError);
  await writeFile(path.join(folder, "rack", "machines", "b.json"), "{");
  const text = (await files.read("machines", "b")) ?? "";
  assert.throws(() => parseRecord(text, "the state of machine b"), /the state of machine b is not JSON/);
  assert.throws(
    () => parseRecord('{"powered":1}', "x"),
    (error) => isCoded(error, "data_loss"),
  );
});

test("sizes as Talos prints them", () => {
  assert.equal(prettySize(256 * 1024 ** 3), "275 GB");
  assert.equal(prettySize(1_500_000), "1.5 MB");
  assert.equal(prettySize(512), "512 B");
});
