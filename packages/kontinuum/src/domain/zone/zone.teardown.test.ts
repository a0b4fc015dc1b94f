/**
 * What the hub forgets of a zone that is removed.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { secrets } from "@kontinuum/controller";
import { kontinuumKind, systemNamespace, zoneKind, type Zone } from "../../kinds/index.ts";
import { ensureNamespace } from "../ensure.ts";
import { kontinuum, zone } from "../objects.fixture.ts";
import { startTestServer, testContext, type TestServer } from "../server.fixture.ts";
import { tearDownZone } from "./zone.teardown.ts";

let hub: TestServer;
before(async () => {
  hub = await startTestServer();
  await ensureNamespace(hub.client, systemNamespace);
});
after(() => hub.close());

test("the keys and processes of a removed zone go with it, and nobody else's", async () => {
  const { uid: _uid, ...metadata } = zone("eu", "a").metadata;
  const removed: Zone = await hub.client.create(zoneKind.resource, { ...zone("eu", "a"), metadata });
  for (const [name, spec] of [
    ["old", { region: "eu", zone: "a" }],
    ["other", { region: "eu", zone: "b" }],
    ["hub", {}],
  ] as const)
    await hub.client.create(kontinuumKind.resource, {
      ...kontinuum(name, spec),
      metadata: { namespace: systemNamespace, name },
    });
  const auth = { namespace: systemNamespace, name: "eu-a-etcd-auth" };
  await hub.client.create(secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      ...auth,
      ownerReferences: [
        { apiVersion: "kontinuum.sh/v1alpha2", kind: "Zone", name: "eu-a", uid: removed.metadata.uid ?? "" },
      ],
    },
  });
  const { edges, cached: client } = hub;
  const context = {
    domain: testContext(edges),
    client,
    edges,
    log: edges.log,
    signal: AbortSignal.timeout(10_000),
  };
  assert.equal(await tearDownZone(context, removed), true);
  const left = (await hub.client.list(kontinuumKind.resource)).items.map(({ metadata: { name } }) => name);
  assert.deepEqual(left.sort(), ["hub", "other"]);
  assert.equal(await hub.client.find(secrets, auth), undefined);
});
