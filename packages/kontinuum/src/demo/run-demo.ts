/**
 * The demo: from an empty folder to a joined zone, on loopback, with nothing but this program.
 *
 * It is the product with a virtual rack behind it: the same server, controllers, machine API and command line
 * operations, shorter intervals, and chart fixtures instead of charts from the network. All it keeps is in one
 * folder; run again it goes on from there.
 */
import { open, writeFile, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { Client } from "@kontinuum/controller";
import {
  CodedError,
  createLog,
  ensureFolder,
  isCoded,
  messageOf,
  systemEdges,
  type Edges,
} from "@kontinuum/std";
import { stringify } from "yaml";
import { parseConfig } from "../config/config.ts";
import { readValues } from "../config/variables.ts";
import { addInstance } from "../domain/instance/instance.add.ts";
import type { Timings } from "../domain/timings.ts";
import { addZone } from "../domain/zone/zone.add.ts";
import { systemNamespace } from "../kinds/index.ts";
import { talosImage, VirtualRack } from "../machines/virtual-rack.ts";
import { kontinuumZoneRunner } from "../machines/zone-runner.ts";
import { startProcess, type RunningProcess } from "../serve/serve.ts";
import { beforeDeadline } from "./deadline.ts";
import { ensureDemoMachines } from "./demo-machines.ts";
import { lockFolder } from "./demo-lock.ts";
import { demoPorts, rackAddress } from "./demo-ports.ts";
import { judge, readDemoWorld } from "./milestones.ts";

/** How the demo is run. */
export interface DemoOptions {
  /** Folder that keeps everything. */
  readonly dir: string;
  /** End as soon as the zone is ready. */
  readonly once: boolean;
  /** Path of helm; empty: helm on PATH. */
  readonly helm: string;
  /** Folder with kubectl, to be shown with what to try next; absent: it is on PATH. */
  readonly tools?: string | undefined;
  /** Aborts to stop. */
  readonly signal: AbortSignal;
  readonly write: (text: string) => unknown;
}

/** Longest time of a demo that does not get ready, from its start to its last line, milliseconds. */
const demoMs = 120_000;
/** The part of it that is kept for stopping. */
const stopMs = 15_000;
/** Time the zone has to become ready, from the start. */
const readyMs = demoMs - stopMs;
const pollMs = 250;
const region = "local";
const zone = "a";
const machineNames = ["node-1", "node-2", "node-3"];

/** Intervals short enough to watch. */
const demoTimings: Partial<Timings> = {
  zoneLeaseMs: 15_000,
  probeMs: 3_000,
  probeRetryMs: 1_000,
  poolRetryMs: 1_000,
  retryMs: 500,
  healthMs: 5_000,
  healthRecheckMs: 15_000,
  teardownMs: 60_000,
  installMs: 30_000,
  addonResyncMs: 30_000,
};

/**
 * Runs the demo. Resolves with the exit code: 0; 1 with the reason on the last line; 2 when its folder cannot be
 * used, 5 when another demo has it.
 */
export async function runDemo(options: DemoOptions): Promise<number> {
  const dir = path.resolve(options.dir);
  let unlock: (() => Promise<void>) | undefined;
  let logFile: FileHandle;
  try {
    await ensureFolder(dir, { setting: "KONTINUUM_DEMO_DIR" });
    unlock = await lockFolder(dir);
    logFile = await open(path.join(dir, "kontinuum.log"), "a", 0o600);
  } catch (error) {
    await unlock?.();
    // What no check foresaw is still about the folder: nothing else was touched yet.
    const coded = isCoded(error)
      ? error
      : new CodedError(
          "invalid_argument",
          `KONTINUUM_DEMO_DIR: ${dir} cannot be used (${messageOf(error)}); name a folder that can be written`,
        );
    options.write(`demo: ${coded.message}\n`);
    return coded.meaning.exit;
  }
  const log = createLog({
    level: "info",
    format: "text",
    destination: { write: (line) => void logFile.appendFile(line).catch(() => {}) },
  });
  const edges = systemEdges({ log });
  const started = edges.clock.monotonic();
  const step = (text: string): void => {
    const seconds = ((edges.clock.monotonic() - started) / 1000).toFixed(1);
    options.write(`${seconds.padStart(6)} s  ${text}\n`);
  };
  let process: RunningProcess | undefined;
  let isOver = false;
  let waitsFor = "waits for the hub to start";
  const kubeconfig = path.join(dir, "kontinuum.yaml");
  const work = async (signal: AbortSignal): Promise<RunningProcess> => {
    const hub = await startHub(dir, options.helm, edges);
    // A start that took too long: nobody waits for it any more.
    if (isOver) {
      await hub.stop();
      return hub;
    }
    process = hub;
    await writeFile(kubeconfig, kubeconfigText(hub.server.url), { mode: 0o600 });
    step(`hub serves at ${hub.server.url}`);
    const leftMs = (): number => started + readyMs - edges.clock.monotonic();
    await bringUp(hub, { edges, step, signal, leftMs, waiting: (text) => (waitsFor = text) });
    return hub;
  };
  try {
    const hub = await beforeDeadline(work, {
      clock: edges.clock,
      leftMs: started + readyMs - edges.clock.monotonic(),
      signal: options.signal,
      reason: () => lateText(waitsFor),
    });
    options.write(whatNext(hub, kubeconfig, dir, options.tools));
    if (!options.once) await untilAborted(options.signal);
    return 0;
  } catch (error) {
    if (isCoded(error, "cancelled") && !options.once) return 0;
    options.write(
      `demo: ${isCoded(error) ? error.message : messageOf(error)}; the log is ${path.join(dir, "kontinuum.log")}\n`,
    );
    return 1;
  } finally {
    isOver = true;
    await stopInTime(process, edges);
    await logFile.close();
    await unlock();
  }
}

function lateText(waitsFor: string): string {
  return `the zone is not ready after ${readyMs / 1000} s; it ${waitsFor}`;
}

/** Stops the hub; what has not ended by then ends with this program. */
async function stopInTime(process: RunningProcess | undefined, edges: Edges): Promise<void> {
  if (!process) return;
  const stopped = process.stop();
  await beforeDeadline(() => stopped, {
    clock: edges.clock,
    leftMs: stopMs,
    reason: () => `the hub did not stop within ${stopMs / 1000} s`,
  }).catch((error: unknown) => edges.log.warn("the demo ends anyway", { problem: messageOf(error) }));
}

async function startHub(dir: string, helm: string, edges: Edges): Promise<RunningProcess> {
  const ports = await demoPorts(dir);
  const rackBase = rackAddress(dir);
  const config = parseConfig(
    readValues({
      KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
      KONTINUUM_SERVER_NAME: "hub",
      KONTINUUM_SERVER_ADDR: `127.0.0.1:${ports.api}`,
      KONTINUUM_SERVER_STORAGE: `sqlite://${encodeURI(path.join(dir, "kontinuum.db"))}`,
      KONTINUUM_SERVER_GRPC_ENDPOINT: `127.0.0.1:${ports.api}`,
      KONTINUUM_DISCOVERY_ALLOWED_RANGES: `${rackBase}/16`,
      KONTINUUM_HELM: helm,
      KONTINUUM_CHART_DIR: path.resolve(import.meta.dirname, "../../charts"),
      KONTINUUM_LOG_LEVEL: "info",
    }),
  );
  const rack = await VirtualRack.open({
    edges,
    statePath: path.join(dir, "rack"),
    addressBase: rackBase,
    runners: [kontinuumZoneRunner(edges)],
  });
  try {
    return await startProcess(config, {
      edges,
      timings: demoTimings,
      environment: {
        KRYTON_PROVIDER: "demo",
        KRYTON_ADDR: `127.0.0.1:${ports.machines}`,
        KRYTON_STORAGE: `sqlite://${encodeURI(path.join(dir, "kryton.db"))}`,
      },
      machines: { onMachine: rack, extraImages: [talosImage] },
    });
  } catch (error) {
    await rack.close();
    throw error;
  }
}

/** How the way from machines to a zone is watched and bounded. */
interface Watching {
  readonly edges: Edges;
  readonly step: (text: string) => void;
  readonly signal: AbortSignal;
  /** Time left, milliseconds. */
  readonly leftMs: () => number;
  /** Told what is waited for, for whoever ends the wait. */
  readonly waiting: (text: string) => void;
}

/** Machines, their registration, the zone; then waits until the zone is ready. */
async function bringUp(
  { server, machineApi }: RunningProcess,
  { edges, step, signal, leftMs, waiting }: Watching,
): Promise<void> {
  if (machineApi === undefined) throw new CodedError("internal", "the machine API did not start");
  step(`machine API serves at ${machineApi}`);
  waiting("waits for its machines");
  const machines = await ensureDemoMachines(machineApi, machineNames, {
    edges,
    timeoutMs: leftMs(),
    signal,
  });
  step(`${machines.length} machines run simulated Talos in maintenance mode`);
  waiting("waits for the API server to take the zone's objects");
  const client = new Client(server.transport(server.loopback), { edges, userAgent: "kontinuum-demo" });
  for (const { address } of machines)
    await addInstance(client, edges.network, { namespace: systemNamespace, address });
  step("machines registered as Instances");
  const [first] = machines;
  const added = await addZone(client, edges.network, { region, zone, talosAddress: first?.address ?? "" });
  step(`zone ${region}/${zone} added`);
  let passed = 0;
  for (;;) {
    const world = await readDemoWorld(client, added.metadata.name);
    const { reached, verdict, waitsFor } = judge(world, passed, leftMs());
    for (const milestone of reached) step(milestone.text);
    passed += reached.length;
    if (verdict === "ready") return;
    if (verdict === "late") throw new CodedError("deadline_exceeded", lateText(waitsFor));
    waiting(waitsFor);
    await edges.clock.sleep(pollMs, signal);
  }
}

/** In clear text, which never leaves this machine: over TLS kubectl asks whoever has no credentials for a password. */
function kubeconfigText(server: string): string {
  const name = "kontinuum-demo";
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: {} }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: systemNamespace } }],
    "current-context": name,
  });
}

function whatNext(
  { server, machineApi }: RunningProcess,
  kubeconfig: string,
  dir: string,
  tools: string | undefined,
): string {
  const shown = path.relative(process.cwd(), kubeconfig) || kubeconfig;
  const found = tools === undefined ? "" : `    export PATH=${quoted(path.resolve(tools))}:$PATH\n`;
  return `
  Kubernetes-style API  ${server.url}
  Web page              ${server.url}/app
  Machine API           ${machineApi ?? "-"}
  Kubeconfig            ${shown}
  Everything it keeps   ${path.relative(process.cwd(), dir) || dir}

  Try next:
${found}    export KUBECONFIG=${quoted(path.resolve(kubeconfig))}
    kubectl get zones,talosclusters,instances,kontinuums
    kubectl explain zone.spec
    bin/kontinuum zone list
    bin/kontinuum instance list
    KRYTON_URL=${machineApi ?? ""} bin/krytonctl list -o table
    curl ${machineApi ?? ""}/api/v1/machines
`;
}

/** A path as a shell reads it: as it is, or in quotes. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
