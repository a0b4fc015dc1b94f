/**
 * Pools at work on a real API server: claims, races, giving back.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findCondition } from "@kontinuum/controller";
import { instanceKind, instancePoolKind, systemNamespace, type Instance } from "../../kinds/index.ts";
import { holding, instance, pool } from "../objects.fixture.ts";
import { eventually, startTestServer, testContext, type TestServer } from "../server.fixture.ts";
import { claim } from "./instancepool.claim.ts";
import { instancePoolController } from "./instancepool.controller.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer();
  server.run(instancePoolController(testContext(server.edges)));
});
after(() => server.close());

const plain = <T extends { metadata: { uid?: string } }>(object: T): T => {
  const { uid: _uid, ...metadata } = object.metadata;
  return { ...object, metadata };
};

async function register(name: string, group: string): Promise<Instance> {
  const made = await server.client.create(
    instanceKind.resource,
    plain(instance(name, { metadata: { labels: { group } } })),
  );
  return server.client.updateStatus(instanceKind.resource, { ...made, ...holding("Discovered") });
}

const owner = async (name: string): Promise<string | undefined> =>
  (await server.client.get(instanceKind.resource, { namespace: systemNamespace, name })).metadata.labels?.[
    "kontinuum.sh/claimed-by"
  ];

const makePool = (name: string, replicas: number, group: string) =>
  server.client.create(instancePoolKind.resource, plain(pool(name, replicas, { matchLabels: { group } })));

test("claims what it wants, reports it, and lets go on deletion", async () => {
  await register("a1", "a");
  await register("a2", "a");
  await makePool("pa", 1, "a");
  await eventually("one is claimed", async () => (await owner("a1")) === "pa");
  assert.equal(await owner("a2"), undefined);
  await eventually("it says so", async () => {
    const status = (
      await server.client.get(instancePoolKind.resource, { namespace: systemNamespace, name: "pa" })
    ).status;
    return findCondition(status?.conditions, "Ready")?.reason === "Claimed" && status?.readyReplicas === 1;
  });
  await server.client.delete(instancePoolKind.resource, { namespace: systemNamespace, name: "pa" });
  await eventually("it is free and the pool gone", async () => {
    const left = await server.client.find(instancePoolKind.resource, {
      namespace: systemNamespace,
      name: "pa",
    });
    return left === undefined && (await owner("a1")) === undefined;
  });
});

test("a pool that is short takes a machine as soon as it is discovered", async () => {
  await makePool("pb", 1, "b");
  await eventually("it is short", async () => {
    const { status } = await server.client.get(instancePoolKind.resource, {
      namespace: systemNamespace,
      name: "pb",
    });
    return findCondition(status?.conditions, "InsufficientCapacity")?.status === "True";
  });
  await register("b1", "b");
  await eventually("it is claimed", async () => (await owner("b1")) === "pb");
});

test("of two that claim one machine, one loses", async () => {
  const machine = await register("c1", "c");
  const results = await Promise.all([claim(server.cached, machine, "x"), claim(server.cached, machine, "y")]);
  assert.equal(results.filter(Boolean).length, 1);
});

test("pools that compete never share a machine", async () => {
  for (let i = 0; i < 6; i++) await register(`d${i}`, "d");
  await Promise.all([makePool("pd1", 4, "d"), makePool("pd2", 4, "d")]);
  await eventually("all are claimed", async () => {
    const owners = await Promise.all([0, 1, 2, 3, 4, 5].map((i) => owner(`d${i}`)));
    return owners.every((one) => one !== undefined);
  });
  const pools = await Promise.all(
    ["pd1", "pd2"].map((name) =>
      server.client.get(instancePoolKind.resource, { namespace: systemNamespace, name }),
    ),
  );
  await eventually("the numbers add up", async () => {
    const counts = await Promise.all(
      pools.map(async ({ metadata: { name } }) => {
        const { status } = await server.client.get(instancePoolKind.resource, {
          namespace: systemNamespace,
          name,
        });
        return status?.readyReplicas ?? 0;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0) === 6;
  });
});

test("a machine that may carry a configuration is marked, not freed", async () => {
  const made = await register("e1", "e");
  await makePool("pe", 1, "e");
  await eventually("it is claimed", async () => (await owner("e1")) === "pe");
  const now = await server.client.get(instanceKind.resource, {
    namespace: systemNamespace,
    name: made.metadata.name,
  });
  await server.client.updateStatus(instanceKind.resource, { ...now, ...holding("Discovered", "Configured") });
  await server.client.patch(
    instancePoolKind.resource,
    { namespace: systemNamespace, name: "pe" },
    { type: "merge", patch: { spec: { replicas: 0 } } },
  );
  await eventually("it is marked", async () => {
    const { metadata } = await server.client.get(instanceKind.resource, {
      namespace: systemNamespace,
      name: "e1",
    });
    return metadata.annotations?.["kontinuum.sh/release"] !== undefined;
  });
  assert.equal(await owner("e1"), "pe");
});
