/**
 * The cluster's keys: made once, found again, never shared.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { secrets } from "@kontinuum/controller";
import { systemNamespace, talosClusterKind, type TalosCluster } from "../../kinds/index.ts";
import { ensureNamespace } from "../ensure.ts";
import { cluster } from "../objects.fixture.ts";
import { startTestServer, type TestServer } from "../server.fixture.ts";
import {
  bundleText,
  clusterSecretName,
  ensureClusterSecret,
  findClusterSecret,
  kubeconfigText,
  storeKubeconfig,
} from "./cluster-secrets.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer();
  await ensureNamespace(server.client, systemNamespace);
  await ensureNamespace(server.client, "tenant");
});
after(() => server.close());

function make(name: string, namespace: string): Promise<TalosCluster> {
  const { uid: _uid, ...metadata } = cluster(name).metadata;
  return server.client.create(talosClusterKind.resource, {
    ...cluster(name),
    metadata: { ...metadata, namespace },
  });
}
const bundle = (text: string) => (): Promise<string> => Promise.resolve(text);

test("losing the answer to its creation is harmless", async () => {
  const one = await make("a", systemNamespace);
  const first = await ensureClusterSecret(server.cached, one, bundle("first"));
  const second = await ensureClusterSecret(server.cached, one, bundle("second"));
  assert.equal(bundleText(second), "first");
  assert.equal(first.metadata.uid, second.metadata.uid);
});

test("two passes at once end with one set of keys", async () => {
  const one = await make("b", systemNamespace);
  const made = await Promise.all(
    ["x", "y", "z"].map((text) => ensureClusterSecret(server.cached, one, bundle(text))),
  );
  assert.equal(new Set(made.map(bundleText)).size, 1);
});

test("clusters of one name in two namespaces have their own keys, all in the system namespace", async () => {
  const [system, tenant] = [await make("c", systemNamespace), await make("c", "tenant")];
  assert.deepEqual(
    [clusterSecretName(system), clusterSecretName(tenant)],
    ["taloscluster-c", "taloscluster-tenant.c"],
  );
  await ensureClusterSecret(server.cached, system, bundle("system"));
  const secret = await ensureClusterSecret(server.cached, tenant, bundle("tenant"));
  assert.equal(secret.metadata.namespace, systemNamespace);
  assert.equal(bundleText(secret), "tenant");
  assert.equal(secret.metadata.ownerReferences, undefined);
});

test("a new cluster of an old name does not get the old one's keys", async () => {
  const one = await make("d", systemNamespace);
  await ensureClusterSecret(server.cached, one, bundle("old"));
  const reborn = { ...one, metadata: { ...one.metadata, uid: "22222222-2222-4222-8222-222222222222" } };
  await assert.rejects(ensureClusterSecret(server.cached, reborn, bundle("new")), /keys of another cluster/);
  assert.equal(await findClusterSecret(server.cached, reborn), undefined);
});

test("the kubeconfig is written when it differs, and keys are not touched by it", async () => {
  const one = await make("e", systemNamespace);
  const secret = await ensureClusterSecret(server.cached, one, bundle("keys"));
  const stored = await storeKubeconfig(server.cached, secret, "config");
  assert.equal(kubeconfigText(stored), "config");
  assert.equal(
    (await storeKubeconfig(server.cached, stored, "config")).metadata.resourceVersion,
    stored.metadata.resourceVersion,
  );
  const { data } = await server.client.get(secrets, { namespace: systemNamespace, name: "taloscluster-e" });
  assert.equal(Object.keys(data ?? {}).length, 2);
});
