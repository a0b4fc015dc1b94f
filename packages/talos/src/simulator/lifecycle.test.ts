import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import { connectTalos } from "../client/client.ts";
import { probe } from "../client/probe.ts";
import { resourceKinds } from "../client/resource-kind.ts";
import { isTalosError } from "../client/talos-error.ts";
import {
  MachineService,
  MachineStatusEvent_MachineStage as MachineStage,
  MachineStatusEventSchema,
} from "../gen/machine/machine_pb.ts";
import { issueAdminCertificate, issueCertificate } from "../pki/certificates.ts";
import { openSslPem } from "../pki/pem.ts";
import { eventually, startRack, TestCluster } from "./rack.fixture.ts";

const edges = systemEdges();

/** A rack whose first machine is a running control plane. */
async function runningCluster(t: TestContext, machines = 1) {
  const rack = await startRack(t, { machines });
  const addresses = rack.nodes.map(({ spec }) => spec.address);
  const [address = ""] = addresses;
  const cluster = await TestCluster.create(address);
  await cluster.apply(address, cluster.config("controlplane", "cp-1"));
  const admin = await cluster.admin(t, address);
  await eventually("bootstrap", () => admin.bootstrap({ timeoutMs: 2000 }));
  await eventually("running", () => rack.nodes[0]?.stage === "running");
  return { rack, addresses, address, cluster, admin };
}

test("workers and further control planes join; health counts all of them", { timeout: 60_000 }, async (t) => {
  const { rack, addresses, cluster, admin } = await runningCluster(t, 4);
  const [first = "", second = "", third = "", worker = ""] = addresses;
  await cluster.apply(second, cluster.config("controlplane", "cp-2"));
  await cluster.apply(third, cluster.config("controlplane", "cp-3"));
  await cluster.apply(worker, cluster.config("worker", "w-1"));
  await eventually("all running", () => rack.nodes.every(({ stage }) => stage === "running"));
  await admin.healthCheck({ controlPlane: [first, second, third], workers: [worker], timeoutMs: 10_000 });
  const members = await admin.etcdMemberList();
  assert.deepEqual(members.map(({ hostname }) => hostname).sort(), ["cp-1", "cp-2", "cp-3"]);
  const cosi = await admin.state.list(resourceKinds.member);
  assert.deepEqual(
    cosi.map(({ id }) => id),
    ["cp-1", "cp-2", "cp-3", "w-1"],
  );
  // Without the worker in the list the check never passes: an unexpected node.
  await assert.rejects(admin.healthCheck({ controlPlane: [first, second, third], timeoutMs: 300 }), (error) =>
    isTalosError(error, "timeout"),
  );

  // Routing: through the control plane to the worker, not through the worker to others.
  assert.equal(await admin.hostname({ node: worker }), "w-1");
  assert.equal((await admin.version({ node: worker })).tag, "v1.13.0");
  const direct = await cluster.admin(t, worker);
  assert.equal(await direct.hostname(), "w-1");
  await assert.rejects(direct.hostname({ node: first }), (error) => isTalosError(error, "denied"));
  await assert.rejects(direct.bootstrap(), (error) => isTalosError(error, "unsupported"));
  await assert.rejects(admin.hostname({ node: "127.99.99.99" }), (error) =>
    isTalosError(error, "unreachable"),
  );
  await rack.nodes[3]?.powerOff();
  await assert.rejects(admin.hostname({ node: worker }), (error) => isTalosError(error, "unreachable"));
});

test("nodes metadata fans out and reports each failure by itself", { timeout: 60_000 }, async (t) => {
  const { cluster, address } = await runningCluster(t);
  const { crt, key } = await issueAdminCertificate({ ca: cluster.bundle.certs.os, edges });
  const transport = createGrpcTransport({
    baseUrl: `https://${address}:50000`,
    nodeOptions: { ca: cluster.bundle.certs.os.crt, cert: crt, key: openSslPem(key) },
    idleConnectionTimeoutMs: 100,
  });
  const machine = createClient(MachineService, transport);
  const call = (headers: Record<string, string>) => machine.hostname({}, { headers });
  const { messages } = await call({ nodes: `${address}, 127.99.99.99` });
  assert.equal(messages[0]?.hostname, "cp-1");
  assert.equal(messages[0]?.metadata?.hostname, address);
  assert.equal(messages[1]?.metadata?.hostname, "127.99.99.99");
  assert.match(messages[1]?.metadata?.error ?? "", /Unavailable/);
  assert.equal((await call({})).messages[0]?.metadata, undefined);
  const text = async (stream: AsyncIterable<{ bytes: Uint8Array }>): Promise<string> => {
    let all = "";
    for await (const { bytes } of stream) all += Buffer.from(bytes).toString();
    return all;
  };
  const stages: number[] = [];
  const actors = new Set<string>();
  const watching = (async () => {
    for await (const { data, actorId } of machine.events({ tailEvents: -1 })) {
      if (data?.typeUrl === "talos/runtime/machine.MachineStatusEvent") {
        stages.push(fromBinary(MachineStatusEventSchema, data.value).stage);
      }
      if (data?.typeUrl === "talos/runtime/machine.SequenceEvent") actors.add(actorId);
    }
  })().catch(() => {});
  await eventually("the past", () => stages.includes(MachineStage.RUNNING));
  assert.match(await text(machine.dmesg({})), /\[talos\] machine is running/);
  assert.match(await text(machine.logs({ id: "etcd", namespace: "system" })), /Health check successful/);
  assert.match(await text(machine.read({ path: "/proc/sys/kernel/random/boot_id" })), /^[0-9a-f-]{36}\n$/);
  await assert.rejects(text(machine.read({ path: "/etc/shadow" })), /no such file/);
  await assert.rejects(
    call({ node: "a, b" }),
    (error) => ConnectError.from(error).code === Code.InvalidArgument,
  );
  await assert.rejects(
    call({ node: `${address}:50000` }),
    (error) => ConnectError.from(error).code === Code.Internal,
  );
  const { messages: reboots } = await machine.reboot({});
  await eventually("the sequence", () => actors.has(reboots[0]?.actorId ?? "none"));
  await watching;
  assert.equal(stages.at(-1), MachineStage.REBOOTING);
});

test(
  "roles come from the certificate, and one that can do more than clientAuth is refused",
  { timeout: 60_000 },
  async (t) => {
    const { cluster, address } = await runningCluster(t);
    const ca = cluster.bundle.certs.os;
    const reader = await issueAdminCertificate({ ca, edges, roles: ["os:reader"] });
    using client = connectTalos({
      address,
      edges,
      credentials: { kind: "admin", ca: ca.crt, cert: reader.crt, key: reader.key },
    });
    assert.equal(await client.hostname(), "cp-1");
    await assert.rejects(client.kubeconfig(), (error) => isTalosError(error, "denied"));
    await assert.rejects(client.reset({ graceful: false }), (error) => isTalosError(error, "denied"));
    await assert.rejects(client.applyConfiguration({ config: "x" }), (error) =>
      isTalosError(error, "denied"),
    );
    const both = await issueCertificate({ ca, edges, organizations: ["os:admin"], usage: "both" });
    using refused = connectTalos({
      address,
      edges,
      credentials: { kind: "admin", ca: ca.crt, cert: both.crt, key: both.key },
    });
    await assert.rejects(refused.hostname({ timeoutMs: 3000 }));
    const foreign = await TestCluster.create(address);
    using stranger = await foreign.admin(t, address);
    await assert.rejects(stranger.hostname({ timeoutMs: 3000 }));
  },
);

test(
  "reset: back to maintenance with wiped state; the last member can't leave gracefully",
  { timeout: 60_000 },
  async (t) => {
    const { rack, address, admin, cluster } = await runningCluster(t);
    const [node] = rack.nodes;
    assert.ok(node);
    await admin.reset({ graceful: true, partitions: ["STATE", "EPHEMERAL"] });
    await eventually("it reboots", () => node.stage === "rebooting" || node.stage === "booting");
    await eventually("it comes back as it was", () => node.stage === "running");
    assert.notEqual(node.record.config, undefined);
    const again = await cluster.admin(t, address);
    await again.reset({ graceful: false, partitions: ["STATE", "EPHEMERAL"] });
    await eventually("maintenance", () => node.stage === "maintenance");
    assert.equal(node.record.config, undefined);
    assert.equal(node.record.installed, true, "META stays: no second installation");
    assert.deepEqual(rack.clusters, [], "the last data is gone, and the cluster with it");
    await probe(address, { edges });
    // It can become a node of a new cluster.
    const next = await TestCluster.create(address);
    await next.apply(address, next.config("controlplane", "new"));
    const admin2 = await next.admin(t, address);
    await eventually("bootstrap", () => admin2.bootstrap({ timeoutMs: 2000 }));
    await eventually("running", () => node.stage === "running");
  },
);

test("a graceful reset of one of several leaves etcd", { timeout: 60_000 }, async (t) => {
  const { rack, addresses, cluster, admin } = await runningCluster(t, 2);
  const [, second = ""] = addresses;
  await cluster.apply(second, cluster.config("controlplane", "cp-2"));
  await eventually("both running", () => rack.nodes.every(({ stage }) => stage === "running"));
  await admin.reset({ graceful: true, partitions: ["STATE", "EPHEMERAL"] }, { node: second });
  await eventually("maintenance", () => rack.nodes[1]?.stage === "maintenance");
  assert.deepEqual(
    (await admin.etcdMemberList()).map(({ hostname }) => hostname),
    ["cp-1"],
  );
});

test("a node that installed and waits for its bootstrap can be shut down; its end is told", async (t) => {
  const rack = await startRack(t);
  const [node] = rack.nodes;
  assert(node);
  const cluster = await TestCluster.create(node.spec.address);
  await cluster.apply(node.spec.address, cluster.config("controlplane", "cp-1"));
  const admin = await cluster.admin(t, node.spec.address);
  await eventually("booting after the installation", () => node.record.installed && node.stage === "booting");
  const happenings = node.events.watch({ count: 0, afterId: "", seconds: 0 });
  await eventually("the call", () => admin.shutdown());
  const told: string[] = [];
  await assert.rejects(async () => {
    for await (const { happening } of happenings)
      if (happening.kind === "phase" && happening.action === "start") told.push(happening.phase);
  }, /going down/);
  assert.deepEqual(told.slice(0, 3), ["storeShutdown", "drain", "cleanup"]);
  assert.equal(told.at(-1), "stopEverything");
  await eventually("off", () => node.stage === "off");
});

test("reboot, upgrade, shutdown", { timeout: 60_000 }, async (t) => {
  const { rack, admin, cluster, address } = await runningCluster(t);
  const [node] = rack.nodes;
  assert.ok(node);
  const { ack, actorId } = await admin.upgrade({ image: "ghcr.io/siderolabs/installer:v1.13.4" });
  assert.match(ack, /installation of v1\.13\.4 to \/dev\/\w+ complete/);
  assert.notEqual(actorId, "");
  await eventually(
    "upgraded and running",
    () => node.record.talosVersion === "v1.13.4" && node.stage === "running",
  );
  const again = await cluster.admin(t, address);
  assert.equal((await again.version()).tag, "v1.13.4");
  await assert.rejects(again.upgrade({ image: "no-tag" }), (error) => isTalosError(error, "refused"));
  const { actorId: staged } = await again.upgrade({ image: "x/y:v1.13.5", stage: true });
  assert.notEqual(staged, "");
  await eventually(
    "the staged one",
    () => node.record.talosVersion === "v1.13.5" && node.stage === "running",
  );
  const third = await cluster.admin(t, address);
  await third.reboot();
  await eventually("rebooting", () => node.stage !== "running");
  await eventually("running", () => node.stage === "running");
  const last = await cluster.admin(t, address);
  await last.shutdown();
  await eventually("off", () => node.stage === "off");
  await node.powerOn();
  assert.equal(node.stage, "running");
});

test(
  "a changed configuration applies without a reboot where Talos allows it",
  { timeout: 60_000 },
  async (t) => {
    const { rack, admin, cluster } = await runningCluster(t);
    const [node] = rack.nodes;
    assert.ok(node);
    const config = cluster.config("controlplane", "cp-1");
    const labelled = config.replace("machine:\n", "machine:\n    nodeAnnotations: {a: b}\n");
    const result = await admin.applyConfiguration({ config: labelled, mode: "auto" });
    assert.equal(result.mode, "no-reboot");
    assert.equal(node.stage, "running");
    const needsReboot = config.replace("diskQuotaSupport: true", "diskQuotaSupport: false");
    await assert.rejects(admin.applyConfiguration({ config: needsReboot, mode: "no-reboot" }), (error) =>
      isTalosError(error, "refused"),
    );
    assert.equal((await admin.applyConfiguration({ config: needsReboot, mode: "staged" })).mode, "staged");
    assert.equal(
      (await admin.applyConfiguration({ config: needsReboot, mode: "auto", dryRun: true })).mode,
      "reboot",
    );
    await admin.applyConfiguration({ config: needsReboot, mode: "auto" });
    await eventually("it reboots", () => node.stage !== "running");
    await eventually("running", () => node.stage === "running");
    assert.match(node.record.config ?? "", /diskQuotaSupport: false/);
    const trial = await (
      await cluster.admin(t, node.spec.address)
    ).applyConfiguration({
      config: labelled.replace("diskQuotaSupport: true", "diskQuotaSupport: false"),
      mode: "try",
      tryTimeoutMs: 100,
    });
    assert.equal(trial.mode, "try");
    assert.match(node.config?.text ?? "", /nodeAnnotations/);
    await eventually("the trial is over", () => !node.config?.text.includes("nodeAnnotations"));
  },
);
