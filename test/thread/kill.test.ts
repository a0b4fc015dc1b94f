/**
 * Killing the hub at random moments on the way from an empty folder to a joined zone.
 *
 * Goal: whatever moment it dies at, a restart ends in the same Ready zone, with one cluster, one set of keys and one
 * claimed machine. Method: the demo as a process of its own, killed with SIGKILL three times, each time a moment after
 * a step that a seed picks, then left alone. The seed is printed; KILL_SEED repeats a run.
 */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { Client, secrets } from "@kontinuum/controller";
import { createServer } from "@kontinuum/kapi";
import { isConditionTrue } from "@kontinuum/controller";
import { seededRandom, systemClock, systemEdges } from "@kontinuum/std";
import { EncryptedStore, openStore, readKeyFile } from "@kontinuum/storage";
import {
  crds,
  instanceKind,
  systemNamespace,
  talosClusterKind,
  zoneKind,
} from "../../packages/kontinuum/src/index.ts";
import { findHelm } from "../services/kubernetes-tools.ts";

const root = path.resolve(import.meta.dirname, "../..");
const kills = 3;
/** The demo prints about so many steps; a kill comes after one of them, and up to so many milliseconds later. */
const lastStep = 14;
const stepMs = 1500;

const helm = await findHelm();

test(
  "three kills, one zone",
  { timeout: 400_000, skip: typeof helm === "string" ? false : helm.missing },
  async (t) => {
    const seed = Number(process.env["KILL_SEED"] ?? Date.now() % 1_000_000);
    t.diagnostic(`KILL_SEED=${seed}`);
    const random = seededRandom(seed);
    const dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-kill-"));
    t.after(() => rm(dir, { recursive: true, force: true }));
    for (let kill = 0; kill < kills; kill++) {
      const demo = start(dir, []);
      await reached(demo, 1 + random.integer(lastStep));
      await systemClock.sleep(random.float() * stepMs);
      demo.child.kill("SIGKILL");
      await demo.ended;
      t.diagnostic(`killed after: ${demo.steps().at(-1)?.trim() ?? "nothing"}`);
    }
    const last = start(dir, ["--once"]);
    t.after(() => last.child.kill("SIGKILL"));
    const code = await last.ended;
    assert.equal(code, 0, last.output());
    await inspect(dir);
  },
);

interface Demo {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  output(): string;
  steps(): readonly string[];
}

/** Waits until so many steps were printed, or no more come. */
async function reached(demo: Demo, steps: number): Promise<void> {
  const until = systemClock.monotonic() + 60_000;
  while (demo.steps().length < steps && systemClock.monotonic() < until && demo.child.exitCode === null) {
    await systemClock.sleep(20);
  }
}

function start(dir: string, args: readonly string[]): Demo {
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", "scripts/demo.ts", ...args],
    {
      cwd: root,
      env: { ...process.env, KONTINUUM_DEMO_DIR: dir },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
  return {
    child,
    ended: new Promise((resolve) => child.once("close", (code) => resolve(code))),
    output: () => text,
    steps: () => text.split("\n").filter((line) => / s {2}/.test(line)),
  };
}

/** Reads what the demo left behind, through an API server of its own over the same store. */
async function inspect(dir: string): Promise<void> {
  const edges = systemEdges();
  const database = path.join(dir, "kontinuum.db");
  const store = await EncryptedStore.over(await openStore(`sqlite://${encodeURI(database)}`, edges), {
    keys: await readKeyFile(`${database}.key`),
    prefixes: ["/registry/secrets/"],
    random: edges.random,
  });
  const server = createServer({ storage: store, edges, crds, auth: { authenticators: [], authorizers: [] } });
  try {
    await server.start();
    const client = new Client(server.transport(server.loopback), { edges });
    const inSystem = { namespace: systemNamespace };
    const [zone, ...zones] = (await client.list(zoneKind.resource)).items;
    assert.equal(zones.length, 0);
    assert.ok(isConditionTrue(zone?.status?.conditions, "Ready"), JSON.stringify(zone?.status));
    assert.equal((await client.list(talosClusterKind.resource)).items.length, 1);
    const keys = (await client.list(secrets, inSystem)).items.filter(({ metadata }) =>
      metadata.name.startsWith("taloscluster-"),
    );
    assert.equal(keys.length, 1);
    const { items: instances } = await client.list(instanceKind.resource, inSystem);
    assert.equal(instances.length, 3);
    const configured = instances.filter(({ status }) => isConditionTrue(status?.conditions, "Configured"));
    assert.equal(configured.length, 1, "one machine carries the cluster's configuration");
    const claimed = instances.filter(
      ({ metadata }) => metadata.labels?.["kontinuum.sh/claimed-by"] !== undefined,
    );
    assert.deepEqual(
      claimed.map(({ metadata }) => metadata.name),
      configured.map(({ metadata }) => metadata.name),
    );
  } finally {
    await server.stop();
    await store.close();
  }
}
