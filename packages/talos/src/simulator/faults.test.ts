import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { probe } from "../client/probe.ts";
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
