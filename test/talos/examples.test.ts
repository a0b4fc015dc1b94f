/**
 * The examples of the Talos package, each as its README says to run it.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { systemEdges } from "@kontinuum/std";
import { SimulatedRack } from "@kontinuum/talos";

const root = path.resolve(import.meta.dirname, "../..");

async function example(name: string, ...args: string[]): Promise<string> {
  const file = path.join("packages/talos/examples", name);
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...args], {
    cwd: root,
    timeout: 60_000,
  });
  return stdout;
}

test("a cluster from an empty machine", { timeout: 90_000 }, async () => {
  assert.match(await example("cluster.ts"), /running|ready/i);
});

test("keys are sealed and unsealed", { timeout: 90_000 }, async () => {
  assert.match(await example("kms.ts"), /\S/);
});

test("files of a new cluster", { timeout: 90_000 }, async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "talos-example-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await example("machine-config.ts", folder, "192.0.2.10");
  assert.deepEqual((await readdir(folder)).sort(), [
    "controlplane.yaml",
    "kubeconfig",
    "secrets.yaml",
    "talosconfig",
    "worker.yaml",
  ]);
});

test("what a waiting machine says of itself", { timeout: 90_000 }, async (t) => {
  const rack = await SimulatedRack.create({
    machines: 1,
    edges: systemEdges(),
    addressBase: `127.${150 + (process.pid % 90)}.9.10`,
  });
  t.after(() => rack.close());
  const [node] = rack.nodes;
  assert.ok(node);
  assert.ok((await example("probe.ts", node.spec.address)).includes(node.spec.uuid));
});
