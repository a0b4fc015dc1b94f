/**
 * The real helm against our own API server: one revision per change, none without, and a way out of a release that a
 * killed helm left in the middle.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { Client, deployments, namespaces, secrets, secretText, type Secret } from "@kontinuum/controller";
import { createServer, type ApiServer } from "@kontinuum/kapi";
import { isCoded, isObject, systemEdges, type Clock } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import {
  helmInstall,
  releaseDescription,
} from "../../packages/kontinuum/src/domain/addon/addon.helm-install.ts";
import { localChart } from "../../packages/kontinuum/src/domain/addon/chart-source.ts";
import { openHelm, type Helm, type ReleaseTarget } from "../../packages/kontinuum/src/domain/addon/helm.ts";
import { findHelm } from "../services/kubernetes-tools.ts";

const program = await findHelm();
const skip = typeof program === "string" ? false : program.missing;
const charts = path.resolve(import.meta.dirname, "../../packages/kontinuum/charts");
const edges = systemEdges();
const call = { timeoutMs: 60_000, signal: new AbortController().signal };
let server: ApiServer;
let store: Store;
let client: Client;
let helm: Helm;
let target: ReleaseTarget;

before(async () => {
  if (typeof program !== "string") return;
  store = await openStore("memory://", edges);
  server = createServer({
    storage: store,
    edges,
    listen: { port: 0 },
    auth: { authenticators: [], authorizers: [] },
  });
  await server.start();
  client = new Client(server.transport(server.loopback), { edges });
  helm = await openHelm(program, "");
  target = { kubeconfig: kubeconfig(server.url), release: "cert-manager", namespace: "apps" };
});
after(async () => {
  if (typeof program !== "string") return;
  await helm.close();
  await server.stop();
  await store.close();
});

const kubeconfig = (url: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: url } }],
    users: [{ name: "u", user: {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });

async function install(values: Record<string, unknown>, clock: Clock = edges.clock): Promise<boolean> {
  const chart = await localChart({ name: "cert-manager", version: "v1.21.1" }, "cert-manager", charts);
  assert.ok(chart);
  return helmInstall(helm, target, chart, values, {
    description: releaseDescription(chart, values),
    call,
    clock,
  });
}

test("installs, makes its namespace, and leaves an unchanged release alone", { skip }, async () => {
  assert.equal(await install({ crds: { enabled: true } }), true);
  assert.ok(await client.find(namespaces, { name: "apps" }));
  assert.ok(await client.find(deployments, { namespace: "apps", name: "cert-manager-webhook" }));
  assert.equal(await install({ crds: { enabled: true } }), false);
  assert.equal((await helm.status(target, call))?.revision, 1);
});

test("changed values make one new revision", { skip }, async () => {
  assert.equal(await install({ crds: { enabled: true }, config: { a: 1 } }), true);
  assert.equal(await install({ config: { a: 1 }, crds: { enabled: true } }), false);
  const release = await helm.status(target, call);
  assert.deepEqual([release?.status, release?.revision], ["deployed", 2]);
});

test(
  "a release left pending is waited for while its helm may live, then taken back to what worked",
  { skip },
  async () => {
    await leavePending();
    const wanted = { crds: { enabled: true }, config: { a: 2 } };
    await assert.rejects(install(wanted), (error) => isCoded(error, "unavailable"));
    const later: Clock = { ...edges.clock, now: () => edges.clock.now() + 120_000 };
    assert.equal(await install(wanted, later), true);
    assert.equal((await helm.status(target, call))?.status, "deployed");
    assert.equal(await install(wanted), false);
  },
);

test("a first installation left pending is removed and made anew", { skip }, async () => {
  target = { ...target, namespace: "fresh" };
  await install({ crds: { enabled: false } });
  await leavePending("pending-install");
  const later: Clock = { ...edges.clock, now: () => edges.clock.now() + 120_000 };
  await install({ crds: { enabled: false } }, later);
  const release = await helm.status(target, call);
  assert.deepEqual([release?.status, release?.revision], ["deployed", 1]);
});

test("helm's failures are told without paths or credentials", { skip }, async () => {
  const unreachable = { ...target, kubeconfig: kubeconfig("http://user:hunter2@127.0.0.1:1") };
  await assert.rejects(helm.status(unreachable, call), (error) => {
    assert.ok(error instanceof Error);
    assert.match(error.message, /^helm status: /);
    assert.doesNotMatch(error.message, /hunter2|kubeconfig\.yaml|\n/);
    return true;
  });
});

/** Makes the newest revision look as a killed helm leaves it. */
async function leavePending(status = "pending-upgrade"): Promise<void> {
  const { items } = await client.list(secrets, {
    namespace: target.namespace,
    labels: { matchLabels: { owner: "helm" } },
  });
  const newest = items.sort((a, b) => revisionOf(a) - revisionOf(b)).at(-1);
  assert.ok(newest);
  const release: unknown = JSON.parse(
    gunzipSync(Buffer.from(secretText(newest, "release") ?? "", "base64")).toString(),
  );
  assert.ok(isObject(release) && isObject(release["info"]));
  release["info"]["status"] = status;
  const packed = gzipSync(JSON.stringify(release)).toString("base64");
  await client.update(secrets, {
    ...newest,
    metadata: { ...newest.metadata, labels: { ...newest.metadata.labels, status } },
    data: { release: Buffer.from(packed).toString("base64") },
  });
}

const revisionOf = ({ metadata }: Secret): number => Number(metadata.labels?.["version"]);
