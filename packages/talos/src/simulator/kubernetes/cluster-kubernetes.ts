/**
 * The Kubernetes of a simulated cluster: real API servers over one store, and what runs beside them.
 *
 * Each control-plane node serves the API on its own address, with certificates of the cluster's own CA, to clients
 * that its CA has signed. Controllers, scheduler and kubelets run once per cluster, as clients of whichever
 * server is up; they stand in for the programs of a real control plane, and what they write is ordinary.
 */
import { mkdtemp, mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Manager, type Transport } from "@kontinuum/controller";
import { createServer, type ApiServer } from "@kontinuum/kapi";
import { CodedError, isCoded, messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import { issueServerCertificate } from "../../pki/certificates.ts";
import { openSslPem } from "../../pki/pem.ts";
import type { SimulatedCluster } from "../cluster.ts";
import { nodeNames } from "../node-certificates.ts";
import { endpointHost, nodeNameOf, type NodeConfig } from "../node-config.ts";
import type { SimulatedNode } from "../node.ts";
import { daemonSetController } from "./daemon-set.controller.ts";
import { deploymentController } from "./deployment.controller.ts";
import { endpointSliceController } from "./endpoint-slice.controller.ts";
import { jobController } from "./job.controller.ts";
import { nodes, pods } from "./kinds.ts";
import { Kubelet } from "./kubelet.ts";
import type { Kubernetes, RunningPod } from "./kubernetes.ts";
import { conditions, nodeRegistration, nodeStatus } from "./node-object.ts";
import type { PodAddresses } from "./pod-address.ts";
import type { PodRunner } from "./pod-runner.ts";
import { replicaSetController } from "./replica-set.controller.ts";
import { podGarbageController } from "./pod-gc.controller.ts";
import { schedulerController } from "./scheduler.controller.ts";
import { loadBalancerStandIn, standInStarter } from "./stand-ins.ts";
import { statefulSetController } from "./stateful-set.controller.ts";

/** Options of {@link ClusterKubernetes}. */
export interface ClusterKubernetesOptions {
  readonly cluster: SimulatedCluster;
  readonly store: Store;
  readonly edges: Edges;
  readonly port: number;
  readonly runners: readonly PodRunner[];
  readonly addresses: PodAddresses;
  /** Private folders of pods; a temporary one when absent. */
  readonly podFolder: string | undefined;
}

/** How often a write to the API is repeated after a conflict. */
const conflictRetries = 5;
const stopMs = 5_000;

/** See the module's comment. */
export class ClusterKubernetes implements Kubernetes {
  readonly #options: ClusterKubernetesOptions;
  readonly #edges: Edges;
  readonly #servers = new Map<SimulatedNode, ApiServer>();
  readonly #kubelets = new Map<string, SimulatedNode>();
  readonly #kubelet: Kubelet;
  readonly #manager: Manager;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #podFolder: Promise<string> | undefined;

  constructor(options: ClusterKubernetesOptions) {
    this.#options = options;
    this.#edges = { ...options.edges, log: options.edges.log.with({ cluster: options.cluster.name }) };
    this.#kubelet = new Kubelet({
      clock: options.edges.clock,
      log: this.#edges.log,
      runners: options.runners,
      addresses: options.addresses,
      podFolder: () => (this.#podFolder ??= this.#makePodFolder()),
      nodeOf: (name) => this.#kubelets.get(name),
    });
    this.#manager = new Manager({
      name: "simulated-control-plane",
      edges: this.#edges,
      transport: this.#transport,
      stopDeadlineMs: stopMs,
      controllers: [
        deploymentController(),
        replicaSetController(),
        statefulSetController(),
        daemonSetController(),
        jobController(),
        schedulerController(),
        podGarbageController(),
        endpointSliceController(),
        loadBalancerStandIn(() => this.#address()),
        this.#kubelet.controller(),
      ].map(({ definition }) => definition),
    });
    this.#manager.add(standInStarter(this.#manager, this.#edges, () => this.#address()).definition);
  }

  async startServer(node: SimulatedNode, config: NodeConfig): Promise<void> {
    if (this.#servers.has(node)) return;
    const server = createServer({
      storage: this.#options.store,
      edges: this.#edges,
      systemNamespace: "kube-system",
      auth: { authenticators: [], authorizers: [] },
      listen: { host: node.spec.address, port: this.#options.port, tls: await this.#serverTls(node, config) },
    });
    await server.start();
    this.#servers.set(node, server);
    this.#running ??= this.#manager.run(this.#stop.signal);
  }

  async stopServer(node: SimulatedNode): Promise<void> {
    const server = this.#servers.get(node);
    this.#servers.delete(node);
    await server?.stop(stopMs);
  }

  async addKubelet(node: SimulatedNode, config: NodeConfig): Promise<void> {
    const registration = nodeRegistration(node, config);
    const { name } = registration.metadata;
    const { clock } = this.#edges;
    const client = this.#manager.client;
    await this.#retrying(async () => {
      const present = (await client.live.find(nodes, { name })) ?? (await client.create(nodes, registration));
      const labels = { ...present.metadata.labels, ...registration.metadata.labels };
      const metadata = { ...present.metadata, labels };
      const spec = { ...present.spec, taints: registration.spec?.taints ?? [] };
      const updated = await client.update(nodes, { ...present, metadata, spec });
      await client.updateStatus(nodes, {
        ...updated,
        status: nodeStatus(node, config, updated.status, clock),
      });
    });
    this.#kubelets.set(name, node);
    this.#options.cluster.setNodeReady(node, true);
    await this.#kubelet.wake(client, name);
  }

  async removeKubelet(node: SimulatedNode): Promise<void> {
    const entry = [...this.#kubelets].find(([, candidate]) => candidate === node);
    if (!entry) return;
    const [name] = entry;
    this.#kubelets.delete(name);
    this.#options.cluster.setNodeReady(node, undefined);
    await this.#kubelet.stopNode(name);
    try {
      await this.#retrying(async () => {
        const present = await this.#manager.client.live.find(nodes, { name });
        if (!present) return;
        const status = {
          ...present.status,
          conditions: conditions(present.status?.conditions ?? [], this.#edges.clock, false),
        };
        await this.#manager.client.updateStatus(nodes, { ...present, status });
      });
    } catch (error) {
      // Nobody is left to be told; the node reports itself when it comes back.
      this.#edges.log.debug("a node that went down could not be marked", {
        node: name,
        reason: messageOf(error),
      });
    }
  }

  async podsOn(node: SimulatedNode): Promise<readonly RunningPod[]> {
    const name = [...this.#kubelets].find(([, candidate]) => candidate === node)?.[0];
    if (name === undefined) return [];
    const { items } = await this.#manager.client.list(pods);
    return items
      .filter(({ spec }) => spec.nodeName === name)
      .map(({ metadata, spec }) => ({
        namespace: metadata.namespace ?? "",
        name: metadata.name,
        uid: metadata.uid ?? "",
        containers: spec.containers.map(({ name: container, image }) => ({
          name: container,
          image: image ?? "",
        })),
      }))
      .sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#kubelet.close();
    await this.#running;
    await Promise.all([...this.#servers.keys()].map((node) => this.stopServer(node)));
    if (this.#options.podFolder === undefined && this.#podFolder) {
      await rm(await this.#podFolder, { recursive: true, force: true });
    }
  }

  readonly #transport: Transport = (request) => {
    const [server] = this.#servers.values();
    if (!server) return Promise.reject(new CodedError("unavailable", "no API server of the cluster is up"));
    return server.transport(server.loopback)(request);
  };

  /** An address of the cluster that is up. */
  #address(): string {
    const [server] = this.#servers.keys();
    return (server ?? this.#options.cluster.nodes[0])?.spec.address ?? "127.0.0.1";
  }

  async #serverTls(node: SimulatedNode, config: NodeConfig) {
    const { facts, kubernetesCa } = config;
    const names = [
      ...nodeNames(node.spec, nodeNameOf(node.hostname)),
      endpointHost(facts.endpoint),
      ...facts.apiServerCertSans,
      "localhost",
      "kubernetes",
      "kubernetes.default",
      "kubernetes.default.svc",
      `kubernetes.default.svc.${facts.dnsDomain}`,
    ];
    const { crt, key } = await issueServerCertificate({
      ca: kubernetesCa,
      edges: node.edges,
      commonName: "kube-apiserver",
      names: [...new Set(names.filter((name) => name !== ""))],
      validityMs: 365 * 24 * 3_600_000,
      keyEncipherment: true,
    });
    return { cert: crt, key: openSslPem(key), clientCa: kubernetesCa.crt };
  }

  async #retrying(write: () => Promise<void>): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await write();
      } catch (error) {
        if (!isCoded(error, "conflict") || attempt >= conflictRetries) throw error;
      }
    }
  }

  async #makePodFolder(): Promise<string> {
    const { podFolder } = this.#options;
    if (podFolder === undefined) return mkdtemp(path.join(tmpdir(), "simulated-pods-"));
    await mkdir(podFolder, { recursive: true, mode: 0o700 });
    return podFolder;
  }
}
