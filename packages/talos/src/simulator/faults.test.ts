import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { connectTalos } from "../client/client.ts";
import { probe } from "../client/probe.ts";
import { resourceKinds } from "../client/resource-kind.ts";
import { isTalosError } from "../client/talos-error.ts";
import { eventually, startRack, TestCluster } from "./rack.fixture.ts";

const edges = systemEdges();

test("connections can be refused, swallowed, cut and slow", async (t) => {
  const rack = await startRack(t);
  const [node] = rack.nodes;
  assert.ok(node);
  const { address } = node.spec;
  const reason = async (timeoutMs: number): Promise<string> => {
    try {
      await probe(address, { edges, timeoutMs });
      return "ok";
    } catch (error) {
      return isTalosError(error) ? error.reason : String(error);
    }
  };
  node.faults = { connections: "refuse" };
  assert.equal(await reason(2000), "unreachable");
  node.faults = { connections: "blackhole" };
  assert.equal(await reason(300), "timeout");
  node.faults = { connections: "cut" };
  assert.equal(await reason(2000), "unreachable");
  node.faults = { handshakeDelayMs: 500 };
  assert.equal(await reason(200), "timeout");
  assert.equal(await reason(5000), "ok");
  node.faults = { callDelayMs: 400 };
  assert.equal(await reason(300), "timeout");
  node.faults = {};
  assert.equal(await reason(5000), "ok");
});

test(
  "a lost reply: the configuration is taken although the caller heard nothing",
  { timeout: 30_000 },
  async (t) => {
    const rack = await startRack(t, { faults: { "*": { loseReply: ["ApplyConfiguration"] } } });
    const [node] = rack.nodes;
    assert.ok(node);
    const cluster = await TestCluster.create(node.spec.address);
    await assert.rejects(cluster.apply(node.spec.address, cluster.config("controlplane", "cp")));
    await eventually("installed", () => node.record.installed && node.stage === "booting");
  },
);

test("power lost while installing: back in maintenance, unconfigured", { timeout: 30_000 }, async (t) => {
  const rack = await startRack(t);
  const [node] = rack.nodes;
  assert.ok(node);
  const cluster = await TestCluster.create(node.spec.address);
  node.faults = { crashAt: "install" };
  await cluster.apply(node.spec.address, cluster.config("controlplane", "cp"));
  await eventually("the crash", () => node.faults.crashAt === undefined);
  await eventually("maintenance", () => node.stage === "maintenance");
  assert.equal(node.record.installed, false);
  assert.equal(node.record.pendingConfig, undefined);
  await cluster.apply(node.spec.address, cluster.config("controlplane", "cp"));
  await eventually("installed", () => node.record.installed);
});

test(
  "a failing disk keeps the node in its installation until it is repaired",
  { timeout: 30_000 },
  async (t) => {
    const rack = await startRack(t, { faults: { "*": { diskFailure: true } } });
    const [node] = rack.nodes;
    assert.ok(node);
    const cluster = await TestCluster.create(node.spec.address);
    await cluster.apply(node.spec.address, cluster.config("controlplane", "cp"));
    await eventually("a reboot", () => node.stage === "rebooting");
    assert.equal(node.record.installed, false);
    node.faults = {};
    await eventually("installed", () => node.record.installed);
  },
);

test(
  "a node with a foreign certificate, an unsynced clock, a skewed clock",
  { timeout: 30_000 },
  async (t) => {
    const rack = await startRack(t);
    const [node] = rack.nodes;
    assert.ok(node);
    const cluster = await TestCluster.create(node.spec.address);
    node.faults = { wrongCertificate: true };
    await cluster.apply(node.spec.address, cluster.config("controlplane", "cp"));
    await eventually("booting", () => node.isCriUp);
    const admin = await cluster.admin(t, node.spec.address);
    await assert.rejects(admin.version(), (error) => isTalosError(error, "untrusted_certificate"));
    node.faults = { timeNotSynced: true };
    await node.powerOff();
    await Promise.race([node.powerOn(), eventually("booting", () => node.isCriUp)]);
    const again = await cluster.admin(t, node.spec.address);
    await assert.rejects(again.bootstrap(), (error) => isTalosError(error, "not_ready"));
    const status = await again.machineStatus();
    assert.ok(status?.unmetConditions.some(({ name }) => name === "time"));
    node.faults = {};
    assert.equal(await again.bootstrap(), "started");
    await eventually("running", () => node.stage === "running");
  },
);

test(
  "power can be lost at every step, once, and the node goes on from its disk",
  { timeout: 60_000 },
  async (t) => {
    const rack = await startRack(t);
    const [node] = rack.nodes;
    assert.ok(node);
    const { address } = node.spec;
    const cluster = await TestCluster.create(address);
    const config = cluster.config("controlplane", "cp");
    let boot = node.bootId;
    /** Power was lost, and the node has begun to boot again. */
    const crashed = async (what: string): Promise<void> => {
      await eventually(what, () => node.faults.crashAt === undefined && node.bootId !== boot);
      boot = node.bootId;
    };

    node.faults = { crashAt: "apply" };
    await assert.rejects(cluster.apply(address, config), "the caller loses the connection");
    await crashed("power lost in the call");
    await eventually("maintenance again", () => node.stage === "maintenance");
    assert.equal(node.record.pendingConfig, undefined);

    await cluster.apply(address, config);
    await eventually("ready for bootstrap", () => node.isCriUp && node.record.installed);
    boot = node.bootId;
    node.faults = { crashAt: "bootstrap" };
    const admin = await cluster.admin(t, address);
    await assert.rejects(admin.bootstrap());
    await crashed("power lost in bootstrap");
    await eventually("etcd goes on with what it wrote", () => node.stage === "running");

    node.faults = { crashAt: "boot" };
    await (await cluster.admin(t, address)).reboot();
    await crashed("power lost in boot");
    await eventually("running after a second boot", () => node.stage === "running");
    boot = node.bootId;

    node.faults = { crashAt: "upgrade" };
    await assert.rejects((await cluster.admin(t, address)).upgrade({ image: "x/y:v1.13.9" }));
    await crashed("power lost in the upgrade");
    await eventually("the old release runs", () => node.stage === "running");
    assert.equal(node.record.talosVersion, "v1.13.0");

    node.faults = { crashAt: "reset" };
    const wiping = (await cluster.admin(t, address)).reset({
      graceful: false,
      reboot: true,
      partitions: ["STATE", "EPHEMERAL"],
    });
    // The power may go before the reply does.
    await wiping.catch((error: unknown) => assert.ok(isTalosError(error)));
    await crashed("power lost in the reset");
    await eventually("nothing was wiped", () => node.stage === "running");
    assert.notEqual(node.record.config, undefined);
  },
);

test("calls can be made to fail, to wait, and clocks to be wrong", { timeout: 30_000 }, async (t) => {
  const rack = await startRack(t, { faults: { "*": { failCalls: ["Version"], callDelayMs: 300 } } });
  const [node] = rack.nodes;
  assert.ok(node);
  const { address } = node.spec;
  using client = connectTalos({ address, credentials: { kind: "maintenance" }, edges });
  await assert.rejects(client.version(), (error) => isTalosError(error, "failed"));
  await assert.rejects(client.links({ timeoutMs: 100 }), (error) => isTalosError(error, "timeout"));
  assert.ok((await client.links()).length > 0);
  node.faults = { clockSkewMs: -7_200_000 };
  const [status] = await client.state.list(resourceKinds.machineStatus);
  assert.ok(status);
  const behind = edges.clock.now() - node.edges.clock.now();
  assert.ok(Math.abs(behind - 7_200_000) < 60_000, "the node is two hours behind");
});
