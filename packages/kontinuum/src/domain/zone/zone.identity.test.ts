/**
 * A zone's identity over its life: issued, repaired from the zone's side, rotated, never half.
 */
import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { secrets, secretText, type Secret } from "@kontinuum/controller";
import { SimulatedClock, systemRandom } from "@kontinuum/std";
import { acceptedCertificates, parseAuthSecret } from "../../identity/auth-secret.ts";
import { isPair } from "../../identity/zone-identity.ts";
import { identitySecretName, systemNamespace, zoneKind, type Zone } from "../../kinds/index.ts";
import { ensureNamespace } from "../ensure.ts";
import { zone } from "../objects.fixture.ts";
import { startTestServer, type TestServer } from "../server.fixture.ts";
import { ensureIdentity } from "./zone.identity.ts";

let hub: TestServer;
let downstream: TestServer;
let owner: Zone;
const clock = new SimulatedClock();
const sixHours = 6 * 3_600_000;
let count = 0;

before(async () => {
  [hub, downstream] = await Promise.all([startTestServer(), startTestServer({ kinds: "builtin" })]);
  await ensureNamespace(hub.client, systemNamespace);
  await ensureNamespace(downstream.client, systemNamespace);
});
after(() => Promise.all([hub.close(), downstream.close()]));
beforeEach(async () => {
  await downstream.client.deleteIfExists(secrets, { namespace: systemNamespace, name: identitySecretName });
  const { uid: _uid, ...metadata } = zone("eu", `z${count++}`).metadata;
  owner = await hub.client.create(zoneKind.resource, { ...zone("eu", "z"), metadata });
});

const ensure = (hubAuthorities = ""): Promise<boolean> =>
  ensureIdentity(
    {
      client: hub.cached,
      downstream: { client: downstream.client, kubeconfig: "" },
      edges: { ...hub.edges, clock, random: systemRandom },
      hubAuthorities,
    },
    owner,
  );
const hubSecret = (): Promise<Secret> =>
  hub.client.get(secrets, { namespace: systemNamespace, name: `${owner.metadata.name}-etcd-auth` });
const zoneSecret = (): Promise<Secret> =>
  downstream.client.get(secrets, { namespace: systemNamespace, name: identitySecretName });

test("issued once: a pair, the public half on the hub, owned by the zone", async () => {
  assert.equal(await ensure("authorities"), false);
  const [there, here] = [await zoneSecret(), await hubSecret()];
  assert.equal(there.type, "kubernetes.io/tls");
  assert.equal(secretText(there, "ca.crt"), "authorities");
  const certificate = secretText(there, "tls.crt") ?? "";
  assert.ok(isPair(createPrivateKey(secretText(there, "tls.key") ?? ""), certificate));
  assert.equal(parseAuthSecret(here).current.certificatePem, certificate);
  assert.equal(here.metadata.ownerReferences?.[0]?.uid, owner.metadata.uid);
  assert.doesNotMatch(JSON.stringify(here.data), new RegExp((there.data?.["tls.key"] ?? "x").slice(0, 40)));
  await ensure("authorities");
  assert.equal((await zoneSecret()).metadata.resourceVersion, there.metadata.resourceVersion);
  assert.equal((await hubSecret()).metadata.resourceVersion, here.metadata.resourceVersion);
});

test("the hub follows the zone when its half is lost or behind", async () => {
  await ensure();
  await hub.client.delete(secrets, { namespace: systemNamespace, name: `${owner.metadata.name}-etcd-auth` });
  assert.equal(await ensure(), false);
  const certificate = secretText(await zoneSecret(), "tls.crt");
  assert.equal(parseAuthSecret(await hubSecret()).current.certificatePem, certificate);
  const broken = await hubSecret();
  await hub.client.update(secrets, { ...broken, data: { "current-tls.crt": "AAAA" } });
  await ensure();
  assert.equal(parseAuthSecret(await hubSecret()).current.certificatePem, certificate);
});

test("rotated when due; the former key stays good for a while", async () => {
  await ensure();
  const before = secretText(await zoneSecret(), "tls.crt") ?? "";
  await clock.advance(sixHours - 1000);
  assert.equal(await ensure(), false);
  await clock.advance(2000);
  assert.equal(await ensure(), true);
  const auth = parseAuthSecret(await hubSecret());
  assert.equal(auth.current.certificatePem, secretText(await zoneSecret(), "tls.crt"));
  assert.equal(auth.previous.certificatePem, before);
  assert.equal(acceptedCertificates(auth, clock.now()).length, 2);
});

test("authorities that changed reach the zone without a new key", async () => {
  await ensure("old");
  const certificate = secretText(await zoneSecret(), "tls.crt");
  await ensure("new");
  assert.deepEqual(
    [secretText(await zoneSecret(), "ca.crt"), secretText(await zoneSecret(), "tls.crt")],
    ["new", certificate],
  );
});

const ownedBy = async (owner: {
  kind: string;
  name: string;
  uid: string;
  apiVersion?: string;
}): Promise<Secret> => {
  const present = await hubSecret();
  return hub.client.update(secrets, {
    ...present,
    metadata: {
      ...present.metadata,
      ownerReferences: [{ apiVersion: "kontinuum.sh/v1alpha2", ...owner }],
    },
  });
};

test("what a removed zone of the same name left behind is replaced, and its key with it", async () => {
  await ensure();
  const old = secretText(await zoneSecret(), "tls.crt");
  const left = await ownedBy({
    kind: "Zone",
    name: owner.metadata.name,
    uid: "11111111-1111-4111-8111-111111111111",
  });
  await ensure();
  const now = await hubSecret();
  assert.notEqual(now.metadata.uid, left.metadata.uid);
  assert.equal(now.metadata.ownerReferences?.[0]?.uid, owner.metadata.uid);
  const certificate = secretText(await zoneSecret(), "tls.crt") ?? "";
  assert.notEqual(certificate, old);
  assert.deepEqual(acceptedCertificates(parseAuthSecret(now), clock.now()), [certificate]);
});

test("a Secret of something that is there is left alone, and the remedy is named", async () => {
  await ensure();
  const other = await hub.client.create(zoneKind.resource, {
    ...zone("eu", "z"),
    metadata: { namespace: systemNamespace, name: `other-${owner.metadata.name}` },
  });
  const left = await ownedBy({ kind: "Zone", name: other.metadata.name, uid: other.metadata.uid ?? "" });
  await assert.rejects(
    ensure(),
    /belongs to Zone other-.*kubectl delete secret .*-etcd-auth -n kontinuum-system/,
  );
  const foreign = await ownedBy({ apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "u" });
  await assert.rejects(ensure(), /belongs to ConfigMap x/);
  assert.equal((await hubSecret()).metadata.uid, left.metadata.uid);
  assert.equal((await hubSecret()).metadata.resourceVersion, foreign.metadata.resourceVersion);
});
