/**
 * An attack on the rule that anonymous access is never handed on: a zone with a public domain on a hub where everybody
 * may do everything.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findCondition, secrets, type Condition } from "@kontinuum/controller";
import { at, CodedError, systemEdges, type Network } from "@kontinuum/std";
import { systemNamespace, talosClusterKind, zoneKind, type TalosCluster } from "../../kinds/index.ts";
import { ensureNamespace } from "../ensure.ts";
import { cluster, holding, zone } from "../objects.fixture.ts";
import { eventually, startTestServer, testContext, type TestServer } from "../server.fixture.ts";
import { clusterSecretName } from "../taloscluster/cluster-secrets.ts";
import { zoneController } from "./zone.controller.ts";

let server: TestServer;
/** Hosts that somebody tried to reach. */
const reached: string[] = [];
const network: Network = {
  dial: ({ host }) => {
    reached.push(host);
    return Promise.reject(new CodedError("unavailable", "nobody is there"));
  },
  resolve: (host) => Promise.resolve([host]),
};

before(async () => {
  server = await startTestServer({ edges: { network } });
  await ensureNamespace(server.client, systemNamespace);
  const values = { KONTINUUM_SERVER_GRPC_ENDPOINT: "127.0.0.1:1" };
  const options = { version: "v1.0.0", hubAuthorities: () => "" };
  server.run(zoneController(testContext(systemEdges({ network }), values), options));
});
after(() => server.close());

/** A zone whose cluster is ready, with a kubeconfig to it. */
async function add(name: string, spec: object): Promise<void> {
  const { uid: _zone, ...metadata } = zone("eu", name).metadata;
  const { uid: _cluster, ...rest } = cluster(`eu-${name}`).metadata;
  const made: TalosCluster = await server.client.create(talosClusterKind.resource, {
    ...cluster(`eu-${name}`),
    metadata: rest,
  });
  const { status = {} } = cluster(`eu-${name}`, [], holding("Ready"));
  await server.client.updateStatus(talosClusterKind.resource, { ...made, status });
  const kubeconfig = JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://192.0.2.1:6443" } }],
    users: [{ name: "u", user: {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });
  await server.client.create(secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      namespace: systemNamespace,
      name: clusterSecretName(made),
      annotations: { "kontinuum.sh/cluster-uid": String(made.metadata.uid) },
    },
    data: { kubeconfig: Buffer.from(kubeconfig).toString("base64") },
  });
  await server.client.create(zoneKind.resource, { ...zone("eu", name, { ...spec }), metadata });
}

async function installed(name: string): Promise<Condition | undefined> {
  const one = await server.client.find(zoneKind.resource, { namespace: systemNamespace, name: `eu-${name}` });
  return findCondition(one?.status?.conditions, "Installed");
}

test("a public domain is refused before anything reaches the zone's cluster, and said to people", async () => {
  await add("open", { domain: "example.com" });
  await eventually("the refusal", async () => (await installed("open"))?.status === "False");
  const condition = await installed("open");
  assert.equal(condition?.reason, "AnonymousExposureRefused");
  assert.match(condition.message, /anonymous.*configure OIDC or remove the domain/);
  assert.deepEqual(reached, []);
  await eventually("an alarm", async () => {
    const path = `/api/v1/namespaces/${systemNamespace}/events`;
    const events = at(await server.client.request("GET", path), "items");
    assert.ok(Array.isArray(events));
    return events.some(
      (event) => at(event, "reason") === "AnonymousExposureRefused" && at(event, "type") === "Warning",
    );
  });
});

test("it is the domain that is refused: without one the same zone goes on", async () => {
  await add("closed", {});
  await eventually(
    "an attempt to reach the cluster",
    async () => (await installed("closed"))?.reason === "DownstreamNotReady",
  );
  assert.deepEqual([...new Set(reached)], ["192.0.2.1"]);
});
