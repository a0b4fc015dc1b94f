/**
 * A cluster of simulated nodes: who belongs to it, its etcd members, and its Kubernetes.
 *
 * Nodes find their cluster by the id in their configuration. etcd is its membership and nothing else: the
 * data is one store that every control-plane node of the cluster serves. It lives as long as a member
 * that has data does; when the last one is wiped, everything in it is gone.
 */
import { CodedError, type Edges } from "@kontinuum/std";
import type { Kubernetes, RunningPod } from "./kubernetes/kubernetes.ts";
import type { NodeConfig } from "./node-config.ts";
import type { ClusterMemberView } from "./node-view.ts";
import type { SimulatedNode } from "./node.ts";

/** An etcd member. Members of nodes that were wiped without leaving stay, dead. */
export interface EtcdMember {
  /** Hexadecimal, as Talos shows it. */
  readonly id: string;
  readonly hostname: string;
  readonly address: string;
}

/** What survives of a cluster beside its nodes' disks. */
export interface ClusterRecord {
  readonly id: string;
  readonly name: string;
  readonly etcdMembers: readonly EtcdMember[];
}

/** Options of a {@link SimulatedCluster}. */
export interface ClusterOptions {
  readonly record: ClusterRecord;
  readonly edges: Edges;
  readonly save: (record: ClusterRecord) => Promise<void>;
  /** Opens the cluster's Kubernetes over its kept data. */
  readonly kubernetes: (cluster: SimulatedCluster) => Promise<Kubernetes>;
  /** Throws the kept data away. */
  readonly wipe: (cluster: SimulatedCluster) => Promise<void>;
}

/** See the module's comment. */
export class SimulatedCluster {
  readonly #options: ClusterOptions;
  readonly #nodes = new Set<SimulatedNode>();
  readonly #serving = new Set<SimulatedNode>();
  readonly #waiting = new Set<() => void>();
  #record: ClusterRecord;
  #leader: string | undefined;
  #kubernetes: Promise<Kubernetes> | undefined;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#record = options.record;
  }

  get id(): string {
    return this.#record.id;
  }

  get name(): string {
    return this.#record.name;
  }

  get etcdMembers(): readonly EtcdMember[] {
    return this.#record.etcdMembers;
  }

  /** Nodes that are up with a configuration of this cluster. */
  get nodes(): readonly SimulatedNode[] {
    return [...this.#nodes];
  }

  /** Whether an API server answers. */
  get isServing(): boolean {
    return this.#serving.size > 0;
  }

  /** Members as discovery shows them, sorted by host name. */
  members(): ClusterMemberView[] {
    return this.nodes
      .map((node) => node.memberView())
      .filter((member) => member !== undefined)
      .sort((a, b) => (a.hostname < b.hostname ? -1 : 1));
  }

  /** A node has come up with a configuration of this cluster. */
  enter(node: SimulatedNode): void {
    this.#nodes.add(node);
    this.#changed();
  }

  /** A node has gone down, or to another configuration. */
  async leave(node: SimulatedNode): Promise<void> {
    this.#nodes.delete(node);
    await this.stopServing(node);
    const kubernetes = await this.#kubernetes;
    await kubernetes?.removeKubelet(node);
    if (this.#nodes.size === 0) {
      this.#kubernetes = undefined;
      await kubernetes?.close();
    }
    this.#changed();
  }

  /** Makes a node an etcd member: the first one of a new cluster, or one more. */
  async addEtcdMember(member: EtcdMember): Promise<void> {
    await this.#save([...this.etcdMembers.filter(({ id }) => id !== member.id), member]);
  }

  /**
   * Takes a member out in an orderly way. Fails with `failed_precondition` for the last one: etcd refuses
   * to lose its only member.
   */
  async leaveEtcd(id: string): Promise<void> {
    if (this.etcdMembers.length <= 1) {
      throw new CodedError(
        "failed_precondition",
        "etcd cluster: re-configuring the cluster would leave it without members",
      );
    }
    await this.removeEtcdMember(id);
  }

  /** Takes a member out by its id. */
  async removeEtcdMember(id: string): Promise<void> {
    await this.#save(this.etcdMembers.filter((member) => member.id !== id));
  }

  /** The member that leads: the oldest one, unless it gave that up. */
  get etcdLeaderId(): string | undefined {
    const ids = this.etcdMembers.map(({ id }) => id);
    return this.#leader !== undefined && ids.includes(this.#leader) ? this.#leader : ids[0];
  }

  /** Makes another member the leader; returns its id, or nothing when `id` does not lead or is alone. */
  forfeitLeadership(id: string): string {
    const other = this.etcdMembers.find((member) => member.id !== id);
    if (this.etcdLeaderId !== id || !other) return "";
    this.#leader = other.id;
    return other.id;
  }

  /** A member's data is wiped. With the last data goes the whole of the cluster's state. */
  async lostData(hasData: boolean): Promise<void> {
    if (hasData) return;
    const kubernetes = await this.#kubernetes;
    this.#kubernetes = undefined;
    await kubernetes?.close();
    await this.#save([]);
    await this.#options.wipe(this);
  }

  /** Starts the API server on a control-plane node whose etcd is up. */
  async startServing(node: SimulatedNode, config: NodeConfig): Promise<void> {
    const kubernetes = await this.#open();
    await kubernetes.startServer(node, config);
    this.#serving.add(node);
    this.#changed();
  }

  /** Stops the API server of a node. */
  async stopServing(node: SimulatedNode): Promise<void> {
    if (!this.#serving.delete(node)) return;
    await (await this.#kubernetes)?.stopServer(node);
    this.#changed();
  }

  /** Registers a node in Kubernetes and brings up the pods it is to run. Waits for an API server. */
  async startKubelet(node: SimulatedNode, config: NodeConfig, signal: AbortSignal): Promise<void> {
    while (!this.isServing) await this.changed(signal);
    await (await this.#open()).addKubelet(node, config);
    this.#changed();
  }

  /** Pods that are bound to a node. */
  async podsOn(node: SimulatedNode): Promise<readonly RunningPod[]> {
    return (await (await this.#kubernetes)?.podsOn(node)) ?? [];
  }

  /** Whether a node is registered and ready; `undefined`: not registered. */
  nodeReady(node: SimulatedNode): boolean | undefined {
    return this.#readiness.get(node);
  }

  /** Told by Kubernetes. */
  setNodeReady(node: SimulatedNode, ready: boolean | undefined): void {
    if (ready === undefined) this.#readiness.delete(node);
    else this.#readiness.set(node, ready);
    node.refresh();
    this.#changed();
  }

  readonly #readiness = new Map<SimulatedNode, boolean>();

  /** Resolves at the next change of anything here; rejects with `cancelled` when `signal` aborts. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(done);
        reject(new CodedError("cancelled", "the node is going down"));
      };
      const done = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(done);
    });
  }

  /** Stops Kubernetes; the process is ending. */
  async close(): Promise<void> {
    const kubernetes = await this.#kubernetes;
    this.#kubernetes = undefined;
    await kubernetes?.close();
  }

  #open(): Promise<Kubernetes> {
    return (this.#kubernetes ??= this.#options.kubernetes(this));
  }

  async #save(etcdMembers: readonly EtcdMember[]): Promise<void> {
    this.#record = { ...this.#record, etcdMembers };
    await this.#options.save(this.#record);
    this.#changed();
  }

  #changed(): void {
    for (const node of this.#nodes) node.refresh();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const done of waiting) done();
  }
}
