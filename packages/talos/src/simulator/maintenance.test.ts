import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createClient, Code, ConnectError } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import { probe } from "../client/probe.ts";
import { isTalosError } from "../client/talos-error.ts";
import { ClusterService } from "../gen/cluster/cluster_pb.ts";
import { State } from "../gen/cosi/resource/state_pb.ts";
import { ApplyConfigurationRequest_Mode as Mode, MachineService } from "../gen/machine/machine_pb.ts";
import { StorageService } from "../gen/storage/storage_pb.ts";
import { describeMachine } from "./machine-spec.ts";
import { eventually, freshAddressBase, startRack, TestCluster } from "./rack.fixture.ts";

const edges = systemEdges();

async function maintenance(t: TestContext, talosVersion = "v1.13.0") {
  const address = freshAddressBase();
  const rack = await startRack(t, { machines: [describeMachine({ name: "m", address, talosVersion })] });
  const transport = createGrpcTransport({
    baseUrl: `https://${address}:50000`,
    nodeOptions: { rejectUnauthorized: false },
    idleConnectionTimeoutMs: 100,
  });
  return {
    rack,
    address,
    machine: createClient(MachineService, transport),
    state: createClient(State, transport),
    cluster: createClient(ClusterService, transport),
    storage: createClient(StorageService, transport),
  };
}

async function codeOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
    return "OK";
  } catch (error) {
    return Code[ConnectError.from(error).code] ?? "?";
  }
}

async function drain(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const message of stream) all.push(message);
  return all;
}

test("the permission matrix of 1.13", async (t) => {
  const { machine, state, cluster, storage } = await maintenance(t);
  const seen = {
    version: await codeOf(() => machine.version({})),
    hostname: await codeOf(() => machine.hostname({})),
    memory: await codeOf(() => machine.memory({})),
    cpuInfo: await codeOf(() => machine.cPUInfo({})),
    systemStat: await codeOf(() => machine.systemStat({})),
    serviceList: await codeOf(() => machine.serviceList({})),
    mounts: await codeOf(() => machine.mounts({})),
    disks: await codeOf(() => storage.disks({})),
    reset: await codeOf(() => machine.reset({})),
    reboot: await codeOf(() => machine.reboot({})),
    shutdown: await codeOf(() => machine.shutdown({})),
    upgrade: await codeOf(() => machine.upgrade({ image: "x:v1.13.1" })),
    bootstrap: await codeOf(() => machine.bootstrap({})),
    kubeconfig: await codeOf(() => drain(machine.kubeconfig({}))),
    metaWrite: await codeOf(() => machine.metaWrite({})),
    etcdMemberList: await codeOf(() => machine.etcdMemberList({})),
    healthCheck: await codeOf(() => drain(cluster.healthCheck({}))),
    dmesg: await codeOf(() => drain(machine.dmesg({}))),
    logs: await codeOf(() => drain(machine.logs({ id: "machined", namespace: "system" }))),
    read: await codeOf(() => drain(machine.read({ path: "/etc/hostname" }))),
    sensitive: await codeOf(() =>
      drain(state.list({ namespace: "config", type: "MachineConfigs.config.talos.dev" })),
    ),
    create: await codeOf(() => state.create({})),
  };
  assert.deepEqual(seen, {
    version: "OK",
    hostname: "OK",
    memory: "OK",
    cpuInfo: "OK",
    systemStat: "OK",
    serviceList: "OK",
    mounts: "OK",
    disks: "OK",
    reset: "PermissionDenied",
    reboot: "PermissionDenied",
    shutdown: "PermissionDenied",
    upgrade: "PermissionDenied",
    bootstrap: "PermissionDenied",
    kubeconfig: "PermissionDenied",
    metaWrite: "PermissionDenied",
    etcdMemberList: "Unimplemented",
    healthCheck: "Unimplemented",
    dmesg: "OK",
    logs: "OK",
    read: "PermissionDenied",
    sensitive: "PermissionDenied",
    create: "PermissionDenied",
  });
  assert.equal((await machine.version({})).messages[0]?.features, undefined);
});

test("maintenance mode of 1.12 knows fewer calls", async (t) => {
  const { machine, address } = await maintenance(t, "v1.12.0");
  assert.equal(await codeOf(() => machine.version({})), "Unimplemented");
  assert.equal(await codeOf(() => machine.hostname({})), "Unimplemented");
  const parse = machine.applyConfiguration({ data: Buffer.from("kind: Nonsense\napiVersion: v1alpha1\n") });
  assert.equal(await codeOf(() => parse), "Unknown");
  const staged = machine.applyConfiguration({ data: Buffer.from("x"), mode: Mode.STAGED });
  assert.equal(await codeOf(() => staged), "Unimplemented");
  assert.equal(
    (await probe(address, { edges })).version,
    "v1.12.0",
    "the version is read from its resource instead",
  );
});

test("resources: errors, order, watches", async (t) => {
  const { state, rack } = await maintenance(t);
  const get = (namespace: string, type: string, id: string) => state.get({ namespace, type, id });
  const missing = "LinkStatuses.net.talos.dev";
  await assert.rejects(get("network", missing, "nope"), (error) => {
    const { code, rawMessage } = ConnectError.from(error);
    return (
      code === Code.NotFound && rawMessage === `resource ${missing}(network/nope@undefined) doesn't exist`
    );
  });
  assert.equal(await codeOf(() => get("network", "Unknowns.net.talos.dev", "x")), "PermissionDenied");
  assert.equal(await codeOf(() => get("nowhere", missing, "x")), "PermissionDenied");
  assert.deepEqual(await drain(state.list({ namespace: "network", type: missing.toLowerCase() })), []);
  const { resource } = await get("runtime", "MachineStatuses.runtime.talos.dev", "machine");
  assert.equal(resource?.metadata?.version, "1");
  assert.match(resource?.spec?.yamlSpec ?? "", /stage: maintenance/);

  const events: string[] = [];
  const abort = new AbortController();
  const watching = (async () => {
    const stream = state.watch(
      { namespace: "runtime", type: "MachineStatuses.runtime.talos.dev", id: "machine", apiVersion: 1 },
      { signal: abort.signal },
    );
    for await (const { event } of stream)
      events.push(event.map(({ eventType }) => eventType).join() || "ready");
  })().catch(() => {});
  await eventually("present state", () => events.length === 2);
  assert.deepEqual(events, ["ready", "0"]);
  const [node] = rack.nodes;
  assert.ok(node);
  await node.powerOff();
  await watching;
  abort.abort();
  const both = state.watch({
    namespace: "network",
    type: missing,
    id: "eth0",
    options: { bootstrapContents: true },
  });
  assert.notEqual(await codeOf(() => drain(both)), "OK");
});

test("configurations are refused as the real one refuses them", async (t) => {
  const { machine, address, rack } = await maintenance(t);
  const cluster = await TestCluster.create(address);
  const good = cluster.config("controlplane", "cp");
  const apply = (config: string, mode: Mode = Mode.REBOOT) =>
    machine.applyConfiguration({ data: Buffer.from(config), mode });
  const bad: [string, string, RegExp][] = [
    ["an unknown key", good.replace("machine:\n", "machine:\n    nonsense: 1\n"), /unknown keys/],
    ["an unknown kind", `${good}---\napiVersion: v1alpha1\nkind: Nonsense\n`, /not registered/],
    ["no document", "", /config not found/],
    ["not YAML", "a: [", /not YAML/],
    ["no endpoint", good.replace(/endpoint: .*/, 'endpoint: ""'), /endpoint/],
    [
      "no disk",
      good
        .replace("diskSelector: {}", "wipe: false")
        .replace("wipe: false\n        wipe: false", "wipe: false"),
      /disk/,
    ],
    ["a bad CNI", good.replace("name: none", "name: bad"), /cni|CNI/],
    ["Kubernetes out of range", good.replaceAll("v1.32.0", "v1.20.0"), /not supported/],
    ["a worker with a CA key", good.replace("type: controlplane", "type: worker"), /key/],
    [
      "a disk that is not there",
      good.replace("diskSelector: {}", 'diskSelector: {model: "nope"}'),
      /matches no disk/,
    ],
  ];
  for (const [what, config, message] of bad) {
    await assert.rejects(apply(config), (error) => {
      const { code, rawMessage } = ConnectError.from(error);
      assert.equal(code, Code.InvalidArgument, what);
      assert.match(rawMessage, message, what);
      assert.ok(!rawMessage.includes(cluster.bundle.trustdInfo.token), "no secret in an error");
      return true;
    });
  }
  const dry = await machine.applyConfiguration({ data: Buffer.from(good), dryRun: true });
  assert.equal(dry.messages[0]?.mode, Mode.NO_REBOOT, "in maintenance mode a reboot is not one");
  assert.match(dry.messages[0]?.modeDetails ?? "", /Dry run/);
  assert.equal(rack.nodes[0]?.stage, "maintenance", "nothing was applied");
  const hostnameOnly = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: x\n";
  await apply(hostnameOnly);
  assert.equal(rack.nodes[0]?.stage, "maintenance");
});

test("a probe of a configured node says so; a second apply is refused in TLS", async (t) => {
  const { address, rack } = await maintenance(t);
  const cluster = await TestCluster.create(address);
  await cluster.apply(address, cluster.config("controlplane", "cp"));
  await eventually("mutual TLS", () => rack.nodes[0]?.isCriUp);
  await assert.rejects(probe(address, { edges }), (error) => isTalosError(error, "certificate_required"));
});

test("each boot has another maintenance key", async (t) => {
  const { address, rack } = await maintenance(t);
  const before = await probe(address, { edges });
  const [node] = rack.nodes;
  assert.ok(node);
  await node.powerOff();
  await assert.rejects(probe(address, { edges, timeoutMs: 2000 }), (error) =>
    isTalosError(error, "unreachable"),
  );
  await node.powerOn();
  const after = await probe(address, { edges });
  assert.notEqual(after.fingerprint, before.fingerprint);
  assert.equal(after.uuid, before.uuid);
});
