/**
 * A cluster that grows, shrinks and goes: workers join, a machine that is scaled away is reset before anybody else
 * may have it, and removing the zone frees every machine.
 *
 * Everything is real but the hardware: API server, controllers, helm, and machines that speak the Talos API.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { Client, findCondition, isConditionTrue } from "@kontinuum/controller";
import { systemClock, systemEdges } from "@kontinuum/std";
import { SimulatedRack } from "@kontinuum/talos";
import {
  instanceKind,
  instancePoolKind,
  main,
  parseConfig,
  readValues,
  startProcess,
  systemNamespace,
  talosClusterKind,
  zoneKind,
  type Instance,
} from "../../packages/kontinuum/src/index.ts";
import { findHelm } from "../services/kubernetes-tools.ts";

const helm = await findHelm();
const charts = path.resolve(import.meta.dirname, "../../packages/kontinuum/charts");

async function cli(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await main(args, {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    stdin: Readable.from([]),
    environment: {},
    edges: systemEdges(),
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

const kubeconfigOf = (server: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "hub", cluster: { server } }],
    users: [{ name: "me", user: {} }],
    contexts: [{ name: "hub", context: { cluster: "hub", user: "me" } }],
    "current-context": "hub",
  });

const claim = (instance: Instance): string | undefined =>
  instance.metadata.labels?.["kontinuum.sh/claimed-by"];

test(
  "grow, shrink, remove",
  { timeout: 180_000, skip: typeof helm === "string" ? false : helm.missing },
  async (t) => {
    const edges = systemEdges();
    const dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-scale-"));
    const octet = 64 + (process.pid % 60);
    const rack = await SimulatedRack.create({
      machines: 4,
      edges,
      addressBase: `127.${octet}.101.10`,
      statePath: dir,
    });
    const hub = await startProcess(
      parseConfig(
        readValues({
          KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
          KONTINUUM_SERVER_NAME: "hub",
          KONTINUUM_SERVER_ADDR: "127.0.0.1:0",
          KONTINUUM_SERVER_STORAGE: "memory://",
          KONTINUUM_SERVER_GRPC_ENDPOINT: "127.0.0.1:1",
          KONTINUUM_DISCOVERY_ALLOWED_RANGES: `127.${octet}.0.0/16`,
          KONTINUUM_HELM: typeof helm === "string" ? helm : "",
          KONTINUUM_CHART_DIR: charts,
        }),
      ),
      {
        edges,
        timings: { retryMs: 300, probeRetryMs: 500, poolRetryMs: 500, healthMs: 5000, healthRecheckMs: 2000 },
      },
    );
    t.after(async () => {
      await hub.stop();
      await rack.close();
      await rm(dir, { recursive: true, force: true });
    });
    const client = new Client(hub.server.transport(hub.server.loopback), { edges });
    const namespace = systemNamespace;
    const instances = async (): Promise<Instance[]> =>
      (await client.list(instanceKind.resource, { namespace })).items;
    const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
      const until = systemClock.monotonic() + 60_000;
      while (!(await holds())) {
        assert.ok(systemClock.monotonic() < until, `${what}: ${JSON.stringify(await states())}`);
        await systemClock.sleep(100);
      }
    };
    const states = async () =>
      (await instances()).map((one) => [
        one.metadata.name,
        claim(one),
        ...(one.status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`),
      ]);

    const addresses = rack.nodes.map(({ spec }) => spec.address);
    // Registered and added as a person does, with the command line.
    const kubeconfig = path.join(dir, "kubeconfig.yaml");
    await writeFile(kubeconfig, kubeconfigOf(hub.server.url));
    for (const address of addresses.slice(1)) {
      const added = await cli("instance", "add", address, "-l", "role=worker", "--kubeconfig", kubeconfig);
      assert.deepEqual([added.code, added.err], [0, ""]);
    }
    const zoneFlags = [
      "--region",
      "eu",
      "--zone",
      "a",
      "--talos-address",
      addresses[0] ?? "",
      "--kubeconfig",
      kubeconfig,
    ];
    const waited = await cli("zone", "add", ...zoneFlags, "--wait", "--timeout", "60s");
    assert.equal(waited.code, 0, waited.err);
    assert.match(waited.out, /zone "eu-a" created \(region=eu zone=a\)/);
    const again = await cli("zone", "add", ...zoneFlags, "--wait", "--for", "Ready", "--timeout", "100ms");
    assert.equal(again.code, 6, "nobody runs the zone's server here");
    assert.match(again.err, /zone eu-a is not Ready after 0 s; last seen: /);
    assert.match((await cli("zone", "list", "-o", "name", "--kubeconfig", kubeconfig)).out, /^eu-a$/m);
    const ref = { namespace, name: "eu-a" };
    await client.create(instancePoolKind.resource, {
      apiVersion: "kontinuum.sh/v1alpha2",
      kind: "InstancePool",
      metadata: { namespace, name: "workers" },
      spec: { selector: { matchLabels: { role: "worker" } }, replicas: 2 },
    });
    await client.patch(talosClusterKind.resource, ref, {
      type: "merge",
      patch: { spec: { workers: [{ name: "w", poolRef: { name: "workers" } }] } },
    });

    const ready = async (pool: string): Promise<number> =>
      (await instances()).filter(
        (one) => claim(one) === pool && isConditionTrue(one.status?.conditions, "Ready"),
      ).length;
    await eventually(
      "control plane and two workers are ready",
      async () => (await ready("eu-a")) === 1 && (await ready("workers")) === 2,
    );
    await eventually("the cluster is ready", async () =>
      isConditionTrue((await client.get(talosClusterKind.resource, ref)).status?.conditions, "Ready"),
    );

    // Shrink: nobody may see a free machine that still carries the cluster's configuration.
    await client.patch(
      instancePoolKind.resource,
      { namespace, name: "workers" },
      { type: "merge", patch: { spec: { replicas: 1 } } },
    );
    await eventually("one worker is left, the other is free and discovered again", async () => {
      const all = await instances();
      for (const one of all) {
        if (claim(one) !== undefined) continue;
        const isClean =
          findCondition(one.status?.conditions, "Configured") === undefined ||
          !isConditionTrue(one.status?.conditions, "Discovered");
        assert.ok(isClean, `${one.metadata.name} is free but configured`);
      }
      const free = all.filter(
        (one) => claim(one) === undefined && isConditionTrue(one.status?.conditions, "Discovered"),
      );
      return free.length === 2 && (await ready("workers")) === 1;
    });

    // The workers' pool was made by hand: it would stay, and claim again what its former cluster gave back.
    await client.delete(instancePoolKind.resource, { namespace, name: "workers" });
    await client.delete(zoneKind.resource, ref);
    await eventually("the zone, its cluster and its pool are gone", async () => {
      const left = await Promise.all([
        client.find(zoneKind.resource, ref),
        client.find(talosClusterKind.resource, ref),
        client.find(instancePoolKind.resource, ref),
      ]);
      return left.every((one) => one === undefined);
    });
    await eventually("every machine is free and discovered", async () =>
      (await instances()).every(
        (one) =>
          claim(one) === undefined &&
          isConditionTrue(one.status?.conditions, "Discovered") &&
          findCondition(one.status?.conditions, "Configured") === undefined,
      ),
    );
    assert.ok(
      rack.nodes.every(({ config }) => config === undefined),
      "no machine has a configuration",
    );
  },
);
