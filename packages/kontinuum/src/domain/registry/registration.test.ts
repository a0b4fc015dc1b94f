/**
 * A process's own entry: made, restored, taken over, left, and given up to another of the same name.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { secrets, secretText } from "@kontinuum/controller";
import { kontinuumKind, systemNamespace } from "../../kinds/index.ts";
import { startTestServer, testConfig, testContext, eventually, type TestServer } from "../server.fixture.ts";
import { Registration } from "./registration.ts";
import { registryController } from "./registry.controller.ts";

let server: TestServer;
before(async () => (server = await startTestServer()));
after(() => server.close());

const storage = { KONTINUUM_SERVER_STORAGE: "postgres://user:hunter2@db/k" };
const make = (name: string, id = `id-${name}`) =>
  new Registration({ name, id, version: "v1" }, testConfig(storage), server.edges);
const find = (name: string) =>
  server.client.find(kontinuumKind.resource, { namespace: systemNamespace, name });

test("a beat makes object, status and Secret, and the Secret holds no credential", async () => {
  const registration = make("first");
  await registration.beat(server.client);
  const entry = await find("first");
  assert.equal(entry?.status?.role, "ControlPlane");
  assert.equal(entry?.status?.version, "v1");
  assert.deepEqual(entry?.status?.secretRef, { name: "kontinuum-first", namespace: systemNamespace });
  const secret = await server.client.get(secrets, { namespace: systemNamespace, name: "kontinuum-first" });
  assert.equal(secretText(secret, "KONTINUUM_SERVER_STORAGE"), "postgres://db/k");
  assert.equal(secret.metadata.ownerReferences?.[0]?.uid, entry?.metadata.uid);
});

test("a deleted entry comes back with the next beat, and a foreign one is adopted", async () => {
  const registration = make("second");
  await registration.beat(server.client);
  await server.client.delete(kontinuumKind.resource, { namespace: systemNamespace, name: "second" });
  await registration.beat(server.client);
  const restored = await find("second");
  assert.ok(restored);
  // Restarted under the same name: another id, the same entry.
  await make("second", "id-later").beat(server.client);
  const adopted = await find("second");
  assert.equal(adopted?.metadata.uid, restored.metadata.uid);
  assert.equal(adopted?.metadata.annotations?.["kontinuum.sh/process-id"], "id-later");
});

test("two hosts of one name do not write over each other for ever", async () => {
  const [a, b] = [make("twin", "id-a"), make("twin", "id-b")];
  await a.beat(server.client);
  await b.beat(server.client);
  await a.beat(server.client);
  assert.match(a.name, /^twin-[a-z0-9]{5}$/);
  assert.equal(b.name, "twin");
  await b.beat(server.client);
  assert.equal(b.name, "twin");
  assert.ok(await find(a.name));
});

test("who left does not come back", async () => {
  const registration = make("leaving");
  await registration.deregister(server.client);
  await registration.beat(server.client);
  assert.equal(await find("leaving"), undefined);
  await registration.deregister(server.client);
});

test("the controller removes silent processes with their Secrets and restores its own entry", async () => {
  const context = testContext(server.edges);
  const own = make("own");
  await own.beat(server.client);
  await server.client.create(kontinuumKind.resource, {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "Kontinuum",
    metadata: { namespace: systemNamespace, name: "silent" },
    spec: {},
  });
  const silent = await server.client.get(kontinuumKind.resource, {
    namespace: systemNamespace,
    name: "silent",
  });
  await server.client.updateStatus(kontinuumKind.resource, {
    ...silent,
    status: { lastHeartbeatTime: "2020-01-01T00:00:00Z" },
  });
  server.run(registryController(context, own));
  await eventually("the silent one is removed", async () => (await find("silent")) === undefined);
  assert.ok(await find("own"));
  await server.client.delete(kontinuumKind.resource, { namespace: systemNamespace, name: "own" });
  await eventually("the own entry is back", async () => (await find("own"))?.status?.version === "v1");
});
