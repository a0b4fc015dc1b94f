import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, configMaps, kubeconfigTransport } from "@kontinuum/controller";
import { systemEdges } from "@kontinuum/std";
import { probe } from "../client/probe.ts";
import { nodes, pods, deployments } from "./kubernetes/kinds.ts";
import { isReady } from "./kubernetes/pod-set.ts";
import { eventually, startRack, TestCluster } from "./rack.fixture.ts";

test("from an empty machine to a cluster that runs pods", { timeout: 60_000 }, async (t) => {
  const edges = systemEdges();
  const rack = await startRack(t);
  const [node] = rack.nodes;
  assert.ok(node);
  const address = node.spec.address;

  const seen = await probe(address, { edges });
  assert.equal(seen.uuid, node.spec.uuid);
  assert.equal(seen.version, "v1.13.0");
  assert.deepEqual(
    seen.interfaces.map(({ name }) => name),
    ["eth0", "eth1", "lo"],
  );
  assert.equal(seen.disks.length, 2);

  const cluster = await TestCluster.create(address);
  await cluster.apply(address, cluster.config("controlplane", "cp-1"));
  const admin = await cluster.admin(t, address);
  await eventually("bootstrap", () => admin.bootstrap({ timeoutMs: 2000 }));
  assert.equal(await admin.bootstrap(), "already");
  const kubeconfig = await admin.kubeconfig();
  await admin.healthCheck({ controlPlane: [address], timeoutMs: 20_000 });
  assert.equal((await admin.machineStatus())?.stage, "running");

  const transport = kubeconfigTransport(kubeconfig, { edges });
  t.after(() => transport.close());
  const client = new Client(transport, { edges });
  assert.equal((await client.get(nodes, { name: "cp-1" })).metadata.name, "cp-1");
  await client.create(configMaps, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "a", namespace: "default" },
  });
  await client.create(deployments, {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default" },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "web", image: "web:1" }] },
      },
    },
  });
  await eventually("ready pods", async () => {
    const { items } = await client.list(pods, { namespace: "default" });
    return items.length === 2 && items.every(isReady);
  });
});
