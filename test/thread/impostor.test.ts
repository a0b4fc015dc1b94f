/**
 * An attack on discovery: between discovery and configuration another machine takes the address. It must get nothing, and
 * people must be told.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { Client, findCondition, isConditionTrue } from "@kontinuum/controller";
import { systemClock, systemEdges } from "@kontinuum/std";
import { describeMachine, SimulatedRack } from "@kontinuum/talos";
import {
  addInstance,
  addZone,
  instanceKind,
  parseConfig,
  readValues,
  startProcess,
  systemNamespace,
  talosClusterKind,
  type Instance,
} from "../../packages/kontinuum/src/index.ts";

test("rule 12: a machine that took another's address gets nothing", { timeout: 120_000 }, async (t) => {
  const edges = systemEdges();
  const dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-impostor-"));
  const range = `127.${64 + (process.pid % 60)}`;
  const address = `${range}.103.10`;
  const rack = await SimulatedRack.create({ machines: [], edges, addressBase: address, statePath: dir });
  await rack.add(describeMachine({ name: "honest", address }));
  const hub = await startProcess(
    parseConfig(
      readValues({
        KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
        KONTINUUM_SERVER_NAME: "hub",
        KONTINUUM_SERVER_ADDR: "127.0.0.1:0",
        KONTINUUM_SERVER_STORAGE: "memory://",
        KONTINUUM_DISCOVERY_ALLOWED_RANGES: `${range}.0.0/16`,
      }),
    ),
    // Nobody looks again by itself: what was discovered is what the cluster goes by.
    { edges, timings: { retryMs: 200, poolRetryMs: 200, probeRetryMs: 200, probeRecheckMs: 3_600_000 } },
  );
  t.after(async () => {
    await hub.stop();
    await rack.close();
    await rm(dir, { recursive: true, force: true });
  });
  const client = new Client(hub.server.transport(hub.server.loopback), { edges });
  const only = async (): Promise<Instance> => {
    const [one] = (await client.list(instanceKind.resource, { namespace: systemNamespace })).items;
    assert.ok(one);
    return one;
  };
  const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    const until = systemClock.monotonic() + 60_000;
    while (!(await holds())) {
      assert.ok(systemClock.monotonic() < until, `${what}: ${JSON.stringify((await only()).status)}`);
      await systemClock.sleep(50);
    }
  };
  await addInstance(client, edges.network, { namespace: systemNamespace, address });
  await eventually("discovery", async () => isConditionTrue((await only()).status?.conditions, "Discovered"));

  await rack.remove("honest");
  const impostor = await rack.add(describeMachine({ name: "impostor", address }));
  await addZone(client, edges.network, { region: "eu", zone: "a", talosAddress: address });
  await eventually("the alarm", async () => {
    const conditions = (await only()).status?.conditions;
    return findCondition(conditions, "Discovered")?.reason === "IdentityChanged";
  });
  await eventually(
    "that nobody holds it",
    async () => (await only()).metadata.labels?.["kontinuum.sh/claimed-by"] === undefined,
  );
  assert.equal(impostor.stage, "maintenance");
  assert.deepEqual([impostor.record.config, impostor.record.pendingConfig], [undefined, undefined]);
  const [cluster] = (await client.list(talosClusterKind.resource, { namespace: systemNamespace })).items;
  assert.ok(!isConditionTrue(cluster?.status?.conditions, "ControlPlaneReady"));
});
