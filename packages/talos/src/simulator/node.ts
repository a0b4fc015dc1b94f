/**
 * A simulated Talos node: one machine and what runs on it, from power on to reset.
 *
 * The node is a state machine over {@link NodeStage}; everything that takes time is a sequence on the
 * injected clock, of which one runs at a time. What survives a loss of power is on its disk. What a call means
 * is in `grpc/`; this module only moves the node from state to state.
 */
import { CodedError, messageOf, type Edges, type Log } from "@kontinuum/std";
import type { SimulatedCluster } from "./cluster.ts";
import type { CrashPoint, NodeFaults } from "./faults.ts";
import type { MachineRecord } from "./machine-record.ts";
import type { MachineSpec } from "./machine-spec.ts";
import { NodeAccess } from "./node-access.ts";
import { skewedClock } from "./node-certificates.ts";
import { readNodeConfig, type NodeConfig } from "./node-config.ts";
import { NodeDisk } from "./node-disk.ts";
import type { NodeEvents } from "./node-events.ts";
import { NodeBoot, type NodeParts } from "./node-boot.ts";
import { NodeEnding, type WipePlan } from "./node-ending.ts";
import type { NodeHost } from "./node-host.ts";
import type { NodeJournal } from "./node-journal.ts";
import type { ClusterMemberView, NodeStage, NodeView } from "./node-view.ts";
import { NodeState } from "./node-state.ts";
import type { ResourceStore } from "./resource-store.ts";
import { Sequences, type SequenceName } from "./sequence.ts";

/** The node lost power at a step it was told to crash at. */
class PowerLoss extends Error {}

/** See the module's comment. */
export class SimulatedNode {
  readonly spec: MachineSpec;
  readonly edges: Edges;
  readonly #host: NodeHost;
  readonly #log: Log;
  readonly #disk: NodeDisk;
  readonly #state: NodeState;
  readonly #access: NodeAccess;
  readonly #sequences: Sequences;
  readonly #boot: NodeBoot;
  readonly #ending: NodeEnding;
  #bootstrapped = Promise.withResolvers<void>();
  #faults: NodeFaults = {};

  constructor(spec: MachineSpec, record: MachineRecord, host: NodeHost) {
    this.spec = spec;
    this.#host = host;
    this.#log = host.edges.log.with({ node: spec.name });
    this.edges = nodeEdges(host.edges, spec, this.#log, () => this.#faults);
    this.#disk = new NodeDisk(record, (kept) => host.save(this, kept));
    this.#state = new NodeState({
      spec,
      disk: this.#disk,
      edges: this.edges,
      faults: () => this.#faults,
      kubernetesReady: () => this.cluster?.nodeReady(this),
    });
    const { events } = this.#state;
    this.#sequences = new Sequences({
      started: (sequence, actorId) =>
        events.publish({ kind: "sequence", sequence, action: "start" }, actorId),
      ended: (sequence, actorId) => events.publish({ kind: "sequence", sequence, action: "stop" }, actorId),
      failed: (name, actorId, error) => this.#sequenceFailed(name, actorId, error),
    });
    this.#access = new NodeAccess({
      spec,
      ports: host.ports,
      edges: this.edges,
      trustdRetryMs: host.timing.trustdRetryMs,
      hostname: () => this.hostname,
      faults: () => this.#faults,
      onRequest: (request, response, peer) => host.handle(this, request, response, peer),
      onTrustd: (request, response) => host.handleTrustd(this, request, response),
    });
    const parts: NodeParts = {
      node: this,
      host,
      log: this.#log,
      disk: this.#disk,
      state: this.#state,
      access: this.#access,
      crash: (point) => this.#crash(point),
      bootstrapped: () => this.#bootstrapped.promise,
      reboot: (signal) => this.#ending.reboot(signal),
      booting: (signal) => this.#sequences.goOnAsBoot(signal),
    };
    this.#boot = new NodeBoot(parts);
    this.#ending = new NodeEnding(parts, this.#boot, () => {
      this.#bootstrapped = Promise.withResolvers<void>();
    });
  }

  /** What is wrong with the node; may be changed at any time. */
  get faults(): NodeFaults {
    return this.#faults;
  }

  set faults(faults: NodeFaults) {
    this.#faults = faults;
    this.refresh();
  }

  get stage(): NodeStage {
    return this.#state.stage;
  }

  get record(): MachineRecord {
    return this.#disk.record;
  }

  /** The active configuration; `undefined` in maintenance mode and while off. */
  get config(): NodeConfig | undefined {
    return this.#state.config;
  }

  get cluster(): SimulatedCluster | undefined {
    return this.#state.cluster;
  }

  get hostname(): string {
    return this.#state.hostname;
  }

  /** The container runtime is up. */
  get isCriUp(): boolean {
    return this.#state.isCriUp;
  }

  /** Milliseconds since the epoch. */
  get bootTime(): number {
    return this.#state.bootTime;
  }

  /** Another one at every boot. */
  get bootId(): string {
    return this.#state.bootId;
  }

  get journal(): NodeJournal {
    return this.#state.journal;
  }

  get events(): NodeEvents {
    return this.#state.events;
  }

  /** The port of the Talos API; 0 while nobody listens. */
  get apiPort(): number {
    return this.#access.port;
  }

  get hasEtcdData(): boolean {
    return this.record.etcdMemberId !== undefined;
  }

  /** The sequence that runs, if any. */
  get sequence(): SequenceName | undefined {
    return this.#sequences.current;
  }

  view(): NodeView {
    return this.#state.view();
  }

  /** As others of its cluster see it; `undefined` without a configuration. */
  memberView(): ClusterMemberView | undefined {
    if (!this.config) return undefined;
    return {
      id: this.spec.uuid,
      hostname: this.hostname,
      address: this.spec.address,
      role: this.config.role,
      talosVersion: this.record.talosVersion,
    };
  }

  /** The resources, brought up to date. */
  currentResources(): ResourceStore {
    return this.#state.currentResources();
  }

  /** Something that resources show may have changed. */
  refresh(): void {
    this.#state.refresh();
  }

  /** Starts simulating: a machine that was on boots, or goes on with what it was doing. */
  async start(): Promise<void> {
    const { powered, unbootable, pendingConfig } = this.record;
    if (!powered || unbootable) return;
    const config = pendingConfig === undefined ? undefined : readNodeConfig(pendingConfig);
    await this.#sequences.run("boot", (signal) =>
      config ? this.#boot.takeConfig(config, signal) : this.#boot.boot(signal),
    );
  }

  /** Presses the power button of a machine that is off. */
  async powerOn(): Promise<void> {
    await this.#disk.save({ powered: true });
    if (!this.record.unbootable) await this.#sequences.run("boot", (signal) => this.#boot.boot(signal));
  }

  /** Pulls the plug. */
  async powerOff(): Promise<void> {
    await this.#disk.save({ powered: false });
    await this.#access.cut();
    await this.#sequences.stop();
    await this.#disk.loseMemory();
    await this.#ending.goDark("off");
  }

  /** Puts a bootable medium in, after a reset that wiped the whole disk. */
  async insertMedium(): Promise<void> {
    await this.#disk.save({ unbootable: false, installed: false, talosVersion: this.spec.talosVersion });
  }

  /** The process that simulates the machine ends; the machine does not notice. */
  async close(): Promise<void> {
    await this.#sequences.close();
    await this.#access.cut();
    await this.#ending.goDark("off");
  }

  /** Takes a configuration in maintenance mode: installs if need be, and boots with it. */
  async configure(text: string): Promise<void> {
    const config = readNodeConfig(text);
    if (!config) return;
    await this.#disk.save({ pendingConfig: text });
    this.#crashInCall("apply");
    void this.#sequences.run("install", async (signal) => {
      await this.#sleep(this.#host.timing.apidSwitchMs, signal);
      await this.#boot.takeConfig(config, signal);
    });
  }

  /** Makes a configuration of a running node the active one, without a reboot. Kept on disk unless it is a trial. */
  async activate(text: string, options: { readonly keep: boolean }): Promise<void> {
    const config = readNodeConfig(text);
    if (!config) return;
    if (options.keep) await this.#disk.save({ config: text });
    this.#state.config = config;
    await this.#access.reopen(config);
    this.refresh();
  }

  /** Keeps a configuration for the next boot. */
  async keepForNextBoot(text: string): Promise<void> {
    await this.#disk.save({ stagedConfig: text });
  }

  /** Starts etcd on an empty data directory. The caller has checked that it may. */
  async bootstrapEtcd(): Promise<void> {
    await this.#boot.becomeEtcdMember();
    this.#bootstrapped.resolve();
    this.#crashInCall("bootstrap");
  }

  /** Reboots. */
  reboot(actorId = ""): void {
    void this.#sequences.run("reboot", (signal) => this.#ending.reboot(signal, actorId), actorId);
  }

  /** Shuts down; only power on brings it back. */
  shutDown(actorId = ""): void {
    void this.#sequences.run("shutdown", (signal) => this.#ending.shutDown(signal, actorId), actorId);
  }

  /** Writes another release to the disk and boots it. */
  upgrade(talosVersion: string, actorId = ""): void {
    void this.#sequences.run(
      "upgrade",
      (signal) => this.#ending.upgrade(talosVersion, signal, actorId),
      actorId,
    );
  }

  /** Writes another release to the disk while the node runs; the next boot takes it. */
  async writeSystem(talosVersion: string): Promise<void> {
    await this.#host.edges.clock.sleep(this.#host.timing.upgradeMs);
    this.#crashInCall("upgrade");
    await this.#disk.save({ installed: true, nextVersion: talosVersion });
  }

  /** Boots the release before the last upgrade. The caller has checked that there is one. */
  rollBack(): void {
    const { previousVersion } = this.record;
    void this.#sequences.run("reboot", async (signal) => {
      if (previousVersion !== undefined) await this.#disk.save({ nextVersion: previousVersion });
      await this.#ending.reboot(signal);
    });
  }

  /** Writes a key of the META partition; `undefined` deletes it. */
  async writeMeta(key: string, value: string | undefined): Promise<void> {
    const { [key]: _, ...rest } = this.record.meta ?? {};
    await this.#disk.save({ meta: value === undefined ? rest : { ...rest, [key]: value } });
    this.refresh();
  }

  /** Wipes. */
  reset(plan: WipePlan, actorId = ""): void {
    void this.#sequences.run("reset", (signal) => this.#ending.reset(plan, signal, actorId), actorId);
  }

  /** Changes the state of a service on request; `false` when there is no such service. */
  setService(id: string, state: "Running" | "Finished", message: string): boolean {
    if (!this.#state.hasService(id)) return false;
    this.#state.service(id, state, message, state === "Running" ? true : undefined);
    return true;
  }

  /** Talos' answer to a sequence that fails is a reboot; to a loss of power, so is ours. */
  #sequenceFailed(sequence: SequenceName, actorId: string, error: unknown): void {
    this.events.publish({ kind: "sequence", sequence, action: "stop", error: messageOf(error) }, actorId);
    const isPowerLoss = error instanceof PowerLoss;
    if (isPowerLoss) this.#log.warn("power lost, as asked; booting again");
    else this.#log.error("a sequence failed; rebooting", { sequence, reason: messageOf(error) });
    void this.#sequences.run("boot", async (signal) => {
      if (isPowerLoss) {
        await this.#access.cut();
        await this.#disk.loseMemory();
      }
      await this.#ending.goDark("rebooting");
      await this.#sleep(this.#host.timing.rebootMs, signal);
      await this.#boot.boot(signal);
    });
  }

  /** Throws when the node was told to crash here; once. */
  #crash(point: CrashPoint): void {
    if (this.#faults.crashAt !== point) return;
    const { crashAt: _, ...rest } = this.#faults;
    this.faults = rest;
    throw new PowerLoss();
  }

  /** The same in the middle of a call: the caller loses the connection. */
  #crashInCall(point: CrashPoint): void {
    try {
      this.#crash(point);
    } catch (error) {
      this.#sequenceFailed("boot", "", error);
      throw new CodedError("unavailable", "the node lost power");
    }
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#host.edges.clock.sleep(ms, signal);
  }
}

/** What a node sees of the world: its own clock, and a network it enters from its own address. */
function nodeEdges(edges: Edges, spec: MachineSpec, log: Log, faults: () => NodeFaults): Edges {
  const { clock, network } = edges;
  return {
    ...edges,
    log,
    clock: skewedClock(clock, () => faults().clockSkewMs ?? 0),
    network: {
      dial: (target) => network.dial({ ...target, localAddress: spec.address }),
      resolve: (name) => network.resolve(name),
    },
  };
}
