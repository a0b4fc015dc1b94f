/**
 * Racks for tests: on addresses of their own, with every port at its default, gone when the test ends.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import type { TestContext } from "node:test";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { systemEdges, type Edges } from "@kontinuum/std";
import { connectTalos, type TalosClient } from "../client/client.ts";
import { generateMachineConfig } from "../config/generate-machine-config.ts";
import { adminCredentials } from "../config/talosconfig.ts";
import { issueAdminCertificate } from "../pki/certificates.ts";
import { openSslPem } from "../pki/pem.ts";
import { generateSecretsBundle, type SecretsBundle } from "../pki/secrets-bundle.ts";
import type { SimulatedNode } from "./node.ts";
import { SimulatedRack, type RackOptions } from "./rack.ts";
import type { NodeTiming } from "./timing.ts";

/** As fast as it goes. */
export const instantTiming: NodeTiming = {
  apidSwitchMs: 20,
  installMs: 20,
  rebootMs: 20,
  bootMs: 5,
  etcdMs: 5,
  trustdRetryMs: 20,
  resetMs: 20,
  upgradeMs: 20,
  healthIntervalMs: 20,
};

/** Test files run at the same time: each rack takes a /16 of its own. */
export function freshAddressBase(): string {
  return `127.${randomInt(100, 250)}.${randomInt(0, 100)}.10`;
}

/** A rack that closes with the test. */
export async function startRack(t: TestContext, options: Partial<RackOptions> = {}): Promise<SimulatedRack> {
  const rack = await SimulatedRack.create({
    machines: 1,
    edges: systemEdges(),
    addressBase: freshAddressBase(),
    timing: instantTiming,
    ...options,
  });
  t.after(() => rack.close());
  return rack;
}

/** A cluster as its administrator knows it. */
export class TestCluster {
  readonly edges: Edges;
  readonly bundle: SecretsBundle;
  readonly endpoint: string;

  constructor(edges: Edges, bundle: SecretsBundle, endpoint: string) {
    this.edges = edges;
    this.bundle = bundle;
    this.endpoint = endpoint;
  }

  static async create(address: string, edges: Edges = systemEdges()): Promise<TestCluster> {
    const bundle = await generateSecretsBundle({ talosVersion: "v1.13.0", edges });
    return new TestCluster(edges, bundle, `https://${address}:6443`);
  }

  config(type: "controlplane" | "worker", hostname: string): string {
    return generateMachineConfig({
      type,
      hostname,
      bundle: this.bundle,
      clusterName: "test",
      endpoint: this.endpoint,
      talosVersion: "v1.13.0",
      kubernetesVersion: "1.32.0",
      allowSchedulingOnControlPlanes: true,
      install: { diskSelector: {} },
      network: { cni: "none" },
    });
  }

  async admin(t: TestContext, address: string): Promise<TalosClient> {
    const credentials = await adminCredentials({ bundle: this.bundle, edges: this.edges });
    const client = connectTalos({ address, credentials, edges: this.edges });
    t.after(() => client.close());
    return client;
  }

  /** Applies a configuration through maintenance mode. */
  async apply(address: string, config: string): Promise<void> {
    using client = connectTalos({ address, credentials: { kind: "maintenance" }, edges: this.edges });
    await client.applyConfiguration({ config });
  }
}

/** Waits for a state, at most 20 s. */
export async function eventually<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const until = performance.now() + 20_000;
  let last: unknown;
  while (performance.now() < until) {
    try {
      const found = await look();
      if (found !== undefined && found !== null && found !== false) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${what} did not happen in time`, { cause: last });
}

/** One node, bootstrapped and running, and an admin's connection to it for calls that our own client does not make. */
export async function startRunningNode(
  t: TestContext,
): Promise<{ readonly node: SimulatedNode; readonly transport: Transport }> {
  const rack = await startRack(t);
  const [node] = rack.nodes;
  assert.ok(node);
  const { address } = node.spec;
  const cluster = await TestCluster.create(address);
  await cluster.apply(address, cluster.config("controlplane", "cp-1"));
  const admin = await cluster.admin(t, address);
  await eventually("bootstrap", () => admin.bootstrap().then(() => true));
  await eventually("running", () => node.stage === "running");
  const ca = cluster.bundle.certs.os;
  const { crt, key } = await issueAdminCertificate({ ca, edges: systemEdges() });
  const transport = createGrpcTransport({
    baseUrl: `https://${address}:50000`,
    nodeOptions: { ca: ca.crt, cert: crt, key: openSslPem(key) },
    idleConnectionTimeoutMs: 100,
  });
  return { node, transport };
}
