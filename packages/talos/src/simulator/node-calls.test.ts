/**
 * What a running node tells of itself beside its resources: files, programs, containers, images, packets, etcd; and its
 * answers to what cannot be.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Code, ConnectError, createClient, type Client, type Transport } from "@connectrpc/connect";
import { ContainerdNamespace, ContainerDriver } from "../gen/common/common_pb.ts";
import { InspectService } from "../gen/inspect/inspect_pb.ts";
import { ImageService } from "../gen/machine/image_pb.ts";
import { LifecycleService } from "../gen/machine/lifecycle_pb.ts";
import { MachineService, NetstatRequest_Filter } from "../gen/machine/machine_pb.ts";
import { eventually, startRunningNode } from "./rack.fixture.ts";
import type { SimulatedNode } from "./node.ts";
import type { TestContext } from "node:test";

interface Running {
  readonly node: SimulatedNode;
  readonly transport: Transport;
  readonly machine: Client<typeof MachineService>;
}

/** One node, bootstrapped, and an admin's connection to it. */
async function running(t: TestContext): Promise<Running> {
  const { node, transport } = await startRunningNode(t);
  return { node, transport, machine: createClient(MachineService, transport) };
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

async function codeOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
    return "OK";
  } catch (error) {
    return Code[ConnectError.from(error).code] ?? "?";
  }
}

test("files are listed, read, summed and copied", { timeout: 60_000 }, async (t) => {
  const { machine } = await running(t);
  const top = await all(machine.list({ root: "/" }));
  assert.deepEqual(
    top.filter(({ isDir }) => isDir).map(({ relativeName }) => relativeName),
    [".", "etc", "proc", "sys", "system", "usr", "var"],
  );
  const deep = await all(machine.list({ root: "/etc", recurse: true, recursionDepth: -1 }));
  assert.ok(deep.some(({ relativeName }) => relativeName === "kubernetes/kubelet.yaml"));
  const folders = await all(machine.list({ root: "/etc", recurse: true, types: [1] }));
  assert.ok(folders.every(({ isDir }) => isDir));
  const [file] = await all(machine.read({ path: "/etc/../etc//hostname" }));
  assert.equal(Buffer.from(file?.bytes ?? []).toString(), "cp-1\n");
  const usage = await all(machine.diskUsage({ paths: ["/etc", "/nope"], all: true }));
  assert.ok(usage.some(({ name, size }) => name === "/etc" && size > 4096n));
  assert.match(usage.at(-1)?.error ?? "", /no such file/);
  const [archive] = await all(machine.copy({ rootPath: "/sys/fs/cgroup" }));
  const tar = await promisify(gunzip)(archive?.bytes ?? new Uint8Array());
  assert.equal(tar.length % 512, 0);
  assert.match(tar.toString("latin1"), /podruntime\/kubelet\/memory\.current/);
  assert.deepEqual(
    [
      await codeOf(() => all(machine.read({ path: "/nope" }))),
      await codeOf(() => all(machine.read({ path: "/etc" }))),
      await codeOf(() => all(machine.list({ root: "/nope" }))),
      await codeOf(() => all(machine.copy({ rootPath: "etc" }))),
    ],
    ["NotFound", "Unknown", "Unknown", "Unknown"],
  );
});

test("processes, containers, ports, logs and packets", { timeout: 60_000 }, async (t) => {
  const { machine } = await running(t);
  const [processes] = (await machine.processes({})).messages;
  assert.deepEqual([processes?.processes[0]?.pid, processes?.processes[0]?.executable], [1, "/sbin/init"]);
  const [system] = (await machine.containers({ namespace: "system" })).messages;
  assert.deepEqual(
    system?.containers.map(({ id }) => id),
    ["apid", "etcd", "kubelet", "trustd"],
  );
  const [pods] = (await machine.containers({ namespace: "k8s.io", driver: ContainerDriver.CRI })).messages;
  assert.deepEqual(pods?.containers, []);
  const [stats] = (await machine.stats({ namespace: "system" })).messages;
  assert.ok(stats?.stats.every(({ memoryUsage }) => memoryUsage > 0n));
  const [listening] = (await machine.netstat({ filter: NetstatRequest_Filter.LISTENING })).messages;
  assert.ok(listening?.connectrecord.some(({ localport }) => localport === 50_000));
  const [connected] = (await machine.netstat({ filter: NetstatRequest_Filter.CONNECTED })).messages;
  assert.deepEqual(connected?.connectrecord, []);
  const [ids] = (await machine.logsContainers({})).messages;
  assert.ok(ids?.ids.includes("etcd"));
  const capture = machine.packetCapture({ interface: "eth0" })[Symbol.asyncIterator]();
  const { value: head } = await capture.next();
  assert.equal(Buffer.from(head?.bytes ?? []).readUInt32LE(0), 0xa1b2c3d4);
  await capture.return?.();
  const [edgesOf] = (
    await createClient(InspectService, (await running(t)).transport).controllerRuntimeDependencies({})
  ).messages;
  assert.ok(edgesOf?.edges.some(({ controllerName }) => controllerName === "network.LinkStatusController"));
  assert.deepEqual(
    [
      await codeOf(() => machine.containers({})),
      await codeOf(() => machine.containers({ namespace: "x", driver: ContainerDriver.CRI })),
      await codeOf(() => machine.restart({ namespace: "system", id: "nope" })),
      await codeOf(() => machine.restart({ namespace: "system", id: "kubelet" })),
      await codeOf(() => all(machine.packetCapture({ interface: "nope" }))),
      await codeOf(() => all(machine.logs({ namespace: "system", id: "nope" }))),
      await codeOf(() => machine.serviceStop({ id: "apid" })),
      await codeOf(() => machine.serviceRestart({ id: "kubelet" })),
    ],
    ["InvalidArgument", "Unknown", "Unknown", "OK", "NotFound", "Unknown", "Unknown", "OK"],
  );
});

test("etcd: alarms, leadership, leaving, downgrades", { timeout: 60_000 }, async (t) => {
  const { machine, node } = await running(t);
  assert.deepEqual((await machine.etcdAlarmList({})).messages[0]?.memberAlarms, []);
  assert.deepEqual((await machine.etcdAlarmDisarm({})).messages[0]?.memberAlarms, []);
  assert.equal((await machine.etcdForfeitLeadership({})).messages[0]?.member, "");
  await node.cluster?.addEtcdMember({ id: "00000000000000ff", hostname: "cp-2", address: "127.1.1.1" });
  assert.equal((await machine.etcdForfeitLeadership({})).messages[0]?.member, "00000000000000ff");
  assert.equal((await machine.etcdStatus({})).messages[0]?.memberStatus?.leader, 255n);
  await machine.etcdRemoveMemberByID({ memberId: 255n });
  assert.deepEqual(
    [
      await codeOf(() => machine.etcdRemoveMemberByID({ memberId: 255n })),
      await codeOf(() => machine.etcdLeaveCluster({})),
      await codeOf(() => machine.etcdDefragment({})),
      await codeOf(() => machine.etcdDowngradeValidate({ version: "3.5" })),
      await codeOf(() => machine.etcdDowngradeValidate({ version: "" })),
      await codeOf(() => machine.etcdDowngradeEnable({ version: "3.4" })),
      await codeOf(() => machine.etcdDowngradeCancel({})),
      await codeOf(() => all(machine.etcdSnapshot({}))),
    ],
    ["NotFound", "Unknown", "OK", "OK", "InvalidArgument", "InvalidArgument", "Unknown", "Unimplemented"],
  );
});

test("images and META are kept", { timeout: 60_000 }, async (t) => {
  const { machine, transport, node } = await running(t);
  const images = createClient(ImageService, transport);
  const containerd = { driver: ContainerDriver.CRI, namespace: ContainerdNamespace.NS_CRI };
  const present = async (): Promise<string[]> =>
    (await all(images.list({ containerd }))).map(({ name }) => name);
  assert.ok((await present()).some((name) => name.includes("kube-apiserver")));
  const replies = await all(images.pull({ containerd, imageRef: "nginx" }));
  assert.deepEqual(replies.at(-1)?.response, { case: "name", value: "docker.io/library/nginx:latest" });
  assert.ok((await present()).includes("docker.io/library/nginx:latest"));
  await images.remove({ containerd, imageRef: "docker.io/library/nginx:latest" });
  assert.ok(!(await present()).includes("docker.io/library/nginx:latest"));
  await machine.metaWrite({ key: 0x0a, value: Buffer.from("x=y") });
  assert.equal(node.record.meta?.["10"], "x=y");
  await machine.metaDelete({ key: 0x0a });
  const lifecycle = createClient(LifecycleService, transport);
  assert.deepEqual(
    [
      await codeOf(() => images.remove({ containerd, imageRef: "nope" })),
      await codeOf(() => all(images.pull({ containerd, imageRef: "a b" }))),
      await codeOf(() => machine.metaDelete({ key: 0x0a })),
      await codeOf(() => machine.metaWrite({ key: 0x06, value: Buffer.from("x") })),
      await codeOf(() => machine.metaWrite({ key: 256, value: Buffer.from("x") })),
      await codeOf(() => machine.rollback({})),
      await codeOf(() => all(lifecycle.install({ source: { imageName: "a:v1.13.1" } }))),
      await codeOf(() => all(lifecycle.upgrade({}))),
    ],
    [
      "NotFound",
      "Unknown",
      "NotFound",
      "PermissionDenied",
      "InvalidArgument",
      "Unknown",
      "AlreadyExists",
      "InvalidArgument",
    ],
  );
  const failed = await all(lifecycle.upgrade({ source: { imageName: "no-tag" } }));
  assert.deepEqual(failed.at(-1)?.progress?.response, { case: "exitCode", value: 1 });
  await all(lifecycle.upgrade({ source: { imageName: "a/b:v1.13.7" } }));
  assert.deepEqual([node.record.talosVersion, node.record.nextVersion], ["v1.13.0", "v1.13.7"]);
  await machine.reboot({});
  await eventually(
    "the new release",
    () => node.stage === "running" && node.record.talosVersion === "v1.13.7",
  );
  await eventually("rolling back", () => machine.rollback({}).then(() => true));
  await eventually(
    "the old release",
    () => node.stage === "running" && node.record.talosVersion === "v1.13.0",
  );
});

test("a service nobody has is refused as gRPC refuses it", { timeout: 60_000 }, async (t) => {
  const { transport } = await running(t);
  const { hostname } = MachineService.method;
  const method = { ...hostname, parent: { ...MachineService, typeName: "machine.DebugService" } };
  await assert.rejects(transport.unary(method, undefined, undefined, undefined, {}), (error) => {
    const { code, rawMessage } = ConnectError.from(error);
    return code === Code.Unimplemented && rawMessage === "unknown service machine.DebugService";
  });
});
