/**
 * The virtual rack: simulated machines with Talos on them, in this process.
 *
 * Every machine listens on an address of its own in 127/8, speaks the Talos API at the wire, and in a cluster serves
 * that cluster's Kubernetes API. With a state folder the rack survives the process: machines go on with what
 * they were doing, clusters keep their objects, pods are started again. Nothing reaches beyond the loopback network.
 */
import { rm } from "node:fs/promises";
import { at, CodedError, stringAt, type Edges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import { createHash } from "node:crypto";
import { SimulatedCluster, type ClusterRecord } from "./cluster.ts";
import type { NodeFaults } from "./faults.ts";
import { RackApi } from "./grpc/rack-api.ts";
import { ClusterKubernetes } from "./kubernetes/cluster-kubernetes.ts";
import { PodAddresses } from "./kubernetes/pod-address.ts";
import type { PodRunner } from "./kubernetes/pod-runner.ts";
import { newRecord, parseRecord } from "./machine-record.ts";
import { addressNumber, addressText, describeMachines, type MachineSpec } from "./machine-spec.ts";
import { readNodeConfig, type NodeConfig } from "./node-config.ts";
import type { NodeHost, NodePorts } from "./node-host.ts";
import { SimulatedNode } from "./node.ts";
import { RackFiles } from "./rack-files.ts";
import { demoTiming, type NodeTiming } from "./timing.ts";

/** Options of {@link SimulatedRack.create}. */
export interface RackOptions {
  /** How many machines, or which. */
  readonly machines: number | readonly MachineSpec[];
  readonly edges: Edges;
  /** First machine's address when `machines` is a number. Default `127.77.0.10`. */
  readonly addressBase?: string;
  /** First pod's address. Default: 128 × 256 addresses above `addressBase`. */
  readonly podAddressBase?: string;
  readonly runners?: readonly PodRunner[];
  /** Folder that keeps the rack; absent: memory only. */
  readonly statePath?: string;
  /** Faults by machine name; `*` for all. */
  readonly faults?: Readonly<Record<string, NodeFaults>>;
  /** Default {@link demoTiming}. */
  readonly timing?: Partial<NodeTiming>;
  /** Default: Talos' and Kubernetes' own. */
  readonly ports?: Partial<NodePorts>;
}

const defaultAddress = "127.77.0.10";
const defaultPorts: NodePorts = { api: 50_000, trustd: 50_001, kubernetes: 6_443 };

/** See the module's comment. */
export class SimulatedRack {
  readonly #options: RackOptions;
  readonly #host: NodeHost;
  readonly #files: RackFiles;
  readonly #timing: NodeTiming;
  readonly #ports: NodePorts;
  readonly #addresses: PodAddresses;
  readonly #api: RackApi;
  readonly #nodes = new Map<string, SimulatedNode>();
  readonly #byAddress = new Map<string, SimulatedNode>();
  readonly #clusters = new Map<string, SimulatedCluster>();
  readonly #clusterRecords = new Map<string, ClusterRecord>();
  readonly #stores = new Map<string, Promise<Store>>();
  #isClosed = false;

  /** Makes a rack and powers its machines on. Resolves when those without a configuration answer. */
  static async create(options: RackOptions): Promise<SimulatedRack> {
    const rack = new SimulatedRack(options);
    const { machines, addressBase = defaultAddress } = options;
    const specs =
      typeof machines === "number" ? describeMachines({ count: machines, addressBase }) : machines;
    try {
      await rack.#open();
      await Promise.all(specs.map((spec) => rack.add(spec)));
    } catch (error) {
      await rack.close();
      throw error;
    }
    return rack;
  }

  private constructor(options: RackOptions) {
    this.#options = options;
    this.#files = new RackFiles(options.statePath);
    this.#timing = { ...demoTiming, ...options.timing };
    this.#ports = { ...defaultPorts, ...options.ports };
    const base = options.addressBase ?? defaultAddress;
    this.#addresses = new PodAddresses(
      options.podAddressBase ?? addressText(addressNumber(base) + 128 * 256),
      126 * 256,
    );
    this.#host = this.#makeHost();
    this.#api = new RackApi({
      nodeAt: (target) => this.#nodeAt(target),
      healthIntervalMs: this.#timing.healthIntervalMs,
    });
  }

  /** All machines, in the order they were added. */
  get nodes(): readonly SimulatedNode[] {
    return [...this.#nodes.values()];
  }

  /** Clusters that nodes of this rack belong to. */
  get clusters(): readonly SimulatedCluster[] {
    return [...this.#clusters.values()];
  }

  /** A machine by name. Fails with `not_found`. */
  node(name: string): SimulatedNode {
    const node = this.#nodes.get(name);
    if (!node) throw new CodedError("not_found", `there is no simulated machine ${JSON.stringify(name)}`);
    return node;
  }

  /** Puts a machine into the rack and powers it on. Fails with `already_exists` for a name or address in use. */
  async add(spec: MachineSpec): Promise<SimulatedNode> {
    if (this.#nodes.has(spec.name) || this.#byAddress.has(spec.address)) {
      throw new CodedError(
        "already_exists",
        `a simulated machine named ${spec.name} or at ${spec.address} is there already`,
      );
    }
    const { faults } = this.#options;
    const kept = await this.#files.read("machines", spec.name);
    const record =
      kept === undefined
        ? newRecord(spec.talosVersion)
        : parseRecord(kept, `the state of machine ${spec.name}`);
    const node = new SimulatedNode(spec, record, this.#host);
    node.faults = { ...faults?.["*"], ...faults?.[spec.name] };
    this.#nodes.set(spec.name, node);
    this.#byAddress.set(spec.address, node);
    const started = node.start();
    // A configured node comes up in its own time: it may be waiting for others, or for a bootstrap.
    if (record.config === undefined && record.pendingConfig === undefined) await started;
    return node;
  }

  /** Takes a machine out of the rack for good, with all it keeps. */
  async remove(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    if (!node) return;
    await node.close();
    const cluster = this.#clusters.get(this.#clusterIdOf(node) ?? "");
    this.#nodes.delete(name);
    this.#byAddress.delete(node.spec.address);
    await this.#files.remove("machines", name);
    if (node.hasEtcdData) await this.#host.lostData(cluster);
  }

  /** Ends the simulation; with a state folder the next rack over it goes on from here. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all(this.clusters.map((cluster) => cluster.close()));
    await Promise.all(this.nodes.map((node) => node.close()));
    const stores = await Promise.allSettled(this.#stores.values());
    await Promise.all(
      stores.map((store) => (store.status === "fulfilled" ? store.value.close() : undefined)),
    );
    await this.#files.settled();
  }

  #makeHost(): NodeHost {
    return {
      edges: this.#options.edges,
      timing: this.#timing,
      ports: this.#ports,
      save: (node, record) => this.#files.write("machines", node.spec.name, JSON.stringify(record)),
      clusterOf: (config) => this.#clusterOf(config),
      lostData: async (cluster) => {
        const others = this.nodes.some((node) => node.hasEtcdData && this.#clusterIdOf(node) === cluster?.id);
        await cluster?.lostData(others);
      },
      handle: (node, request, response, peer) => this.#api.handle(node, request, response, peer),
      handleTrustd: (node, request, response) => this.#api.handleTrustd(node, request, response),
    };
  }

  async #open(): Promise<void> {
    await this.#files.open();
    for (const name of await this.#files.names("clusters")) {
      const record = parseClusterRecord((await this.#files.read("clusters", name)) ?? "");
      this.#clusterRecords.set(record.id, record);
    }
  }

  #nodeAt(target: string): SimulatedNode | undefined {
    return this.#byAddress.get(target) ?? this.nodes.find((node) => node.config && node.hostname === target);
  }

  #clusterIdOf(node: SimulatedNode): string | undefined {
    const text = node.record.config ?? node.record.pendingConfig;
    return text === undefined ? undefined : clusterId(readNodeConfig(text));
  }

  #clusterOf(config: NodeConfig): SimulatedCluster {
    const id = clusterId(config);
    const present = this.#clusters.get(id);
    if (present) return present;
    const cluster = new SimulatedCluster({
      record: this.#clusterRecords.get(id) ?? { id, name: config.facts.clusterName, etcdMembers: [] },
      edges: this.#options.edges,
      save: (record) => this.#files.write("clusters", fileName(id), JSON.stringify(record)),
      kubernetes: async (owner) =>
        new ClusterKubernetes({
          cluster: owner,
          store: await this.#storeOf(id),
          edges: this.#options.edges,
          port: this.#ports.kubernetes,
          runners: this.#options.runners ?? [],
          addresses: this.#addresses,
          podFolder: this.#files.location("pods", fileName(id)),
        }),
      wipe: () => this.#wipe(id),
    });
    this.#clusters.set(id, cluster);
    return cluster;
  }

  /** The cluster's data: outlives reboots of its nodes, and the process when there is a folder. */
  #storeOf(id: string): Promise<Store> {
    const present = this.#stores.get(id);
    if (present) return present;
    const file = this.#files.location(`${fileName(id)}.db`);
    const store = openStore(
      file === undefined ? "memory://" : `sqlite://${encodeURI(file)}`,
      this.#options.edges,
    );
    this.#stores.set(id, store);
    return store;
  }

  async #wipe(id: string): Promise<void> {
    const store = this.#stores.get(id);
    this.#stores.delete(id);
    this.#clusters.delete(id);
    this.#clusterRecords.delete(id);
    await (await store)?.close();
    await this.#files.remove("clusters", fileName(id));
    const file = this.#files.location(`${fileName(id)}.db`);
    const pods = this.#files.location("pods", fileName(id));
    if (file === undefined || pods === undefined) return;
    await rm(pods, { recursive: true, force: true });
    for (const suffix of ["", "-wal", "-shm"]) await rm(`${file}${suffix}`, { force: true });
  }
}

/** The id in the configuration; without discovery there is none, and the cluster's CA tells clusters apart. */
function clusterId(config: NodeConfig | undefined): string {
  if (!config) return "";
  return config.facts.clusterId || createHash("sha256").update(config.osCa.crt).digest("hex");
}

/** Ids are base64: as the name of a file they are hashed. */
function fileName(id: string): string {
  return createHash("sha256").update(id).digest("hex").slice(0, 32);
}

function parseClusterRecord(text: string): ClusterRecord {
  const value: unknown = parseJson(text);
  const [id, name] = [stringAt(value, "id"), stringAt(value, "name")];
  const members = at(value, "etcdMembers");
  if (id === undefined || name === undefined || !Array.isArray(members)) {
    throw new CodedError(
      "data_loss",
      "a cluster's file in the rack's folder can't be read: remove the folder to start anew",
    );
  }
  const etcdMembers = members.map((member) => ({
    id: stringAt(member, "id") ?? "",
    hostname: stringAt(member, "hostname") ?? "",
    address: stringAt(member, "address") ?? "",
  }));
  return { id, name, etcdMembers };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
