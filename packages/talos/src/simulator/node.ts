/**
 * A simulated Talos node: one machine and what runs on it, from power on to reset.
 *
 * The node is a state machine over {@link NodeStage}; everything that takes time is a sequence on the
 * injected clock, of which one runs at a time. What survives a loss of power is its record; it is saved
 * before an effect of it can be seen. What a call means is in `apply.ts` and `grpc/`; this module only
 * moves the node from state to state.
 */
import { CodedError, isCoded, messageOf, type Edges, type Log } from "@kontinuum/std";
import { installDisk } from "../config/validate-for-node.ts";
import type { CertificateAndKey } from "../pki/certificates.ts";
import type { SimulatedCluster } from "./cluster.ts";
import { sealVolumeKeys, unsealVolumeKeys, type SealedKey } from "./disk-encryption.ts";
import type { CrashPoint, NodeFaults } from "./faults.ts";
import { hardwareResources } from "./hardware-resources.ts";
import { candidateDisks } from "./install-target.ts";
import type { MachineRecord } from "./machine-record.ts";
import type { MachineSpec } from "./machine-spec.ts";
import {
  controlPlaneCertificate,
  foreignCertificate,
  maintenanceCertificate,
  skewedClock,
} from "./node-certificates.ts";
import { nodeNameOf, readNodeConfig, stableHostname, type NodeConfig } from "./node-config.ts";
import type { NodeHost } from "./node-host.ts";
import { NodeListener } from "./node-listener.ts";
import { baseServices, NodeServices } from "./node-services.ts";
import type { ClusterMemberView, NodeStage, NodeView } from "./node-view.ts";
import { ResourceStore, type ResourceDescription } from "./resource-store.ts";
import { stateResources } from "./state-resources.ts";
import { TrustdListener } from "./trustd-listener.ts";
import { requestCertificate, type TrustdAnswer } from "./trustd-client.ts";

/** What moves a node. Talos drops a request while one of the first four runs. */
export type SequenceName = "install" | "reboot" | "upgrade" | "reset" | "boot" | "shutdown";

/** How a reset wipes. */
export interface WipePlan {
  /** Leave etcd and drain first. */
  readonly graceful: boolean;
  readonly reboot: boolean;
  /** Labels of partitions; `undefined`: the whole system disk. */
  readonly partitions: readonly string[] | undefined;
}

/** The node lost power at a step it was told to crash at. */
class PowerLoss extends Error {}

/** See the module's comment. */
export class SimulatedNode {
  readonly spec: MachineSpec;
  readonly edges: Edges;
  readonly resources: ResourceStore;
  readonly #host: NodeHost;
  readonly #log: Log;
  readonly #listener: NodeListener;
  readonly #trustd: TrustdListener;
  readonly #services: NodeServices;
  #record: MachineRecord;
  #stage: NodeStage = "off";
  #config: NodeConfig | undefined;
  #cluster: SimulatedCluster | undefined;
  #isCriUp = false;
  #isClosed = false;
  #bootTime = 0;
  #sequence:
    | { readonly name: SequenceName; readonly abort: AbortController; readonly done: Promise<void> }
    | undefined;
  #bootstrapped = Promise.withResolvers<void>();
  #hasReaders = false;
  #faults: NodeFaults = {};
  #hardware: readonly ResourceDescription[] | undefined;

  constructor(spec: MachineSpec, record: MachineRecord, host: NodeHost) {
    this.spec = spec;
    this.#record = record;
    this.#host = host;
    const clock = skewedClock(host.edges.clock, () => this.faults.clockSkewMs ?? 0);
    this.#log = host.edges.log.with({ node: spec.name });
    const { network } = host.edges;
    this.edges = {
      ...host.edges,
      clock,
      log: this.#log,
      network: {
        dial: (target) => network.dial({ ...target, localAddress: spec.address }),
        resolve: (name) => network.resolve(name),
      },
    };
    this.resources = new ResourceStore(clock);
    this.#services = new NodeServices(clock);
    this.#listener = new NodeListener({
      address: spec.address,
      port: host.ports.api,
      edges: this.edges,
      faults: () => this.faults,
      onRequest: (request, response, peer) => host.handle(this, request, response, peer),
    });
    this.#trustd = new TrustdListener({
      address: spec.address,
      port: host.ports.trustd,
      onRequest: (request, response) => host.handleTrustd(this, request, response),
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
    return this.#stage;
  }

  get record(): MachineRecord {
    return this.#record;
  }

  /** The active configuration; `undefined` in maintenance mode and while off. */
  get config(): NodeConfig | undefined {
    return this.#config;
  }

  get cluster(): SimulatedCluster | undefined {
    return this.#cluster;
  }

  get hostname(): string {
    return this.#config?.facts.hostname ?? stableHostname(this.spec.uuid);
  }

  /** The container runtime is up. */
  get isCriUp(): boolean {
    return this.#isCriUp;
  }

  /** Milliseconds since the epoch. */
  get bootTime(): number {
    return this.#bootTime;
  }

  /** The port of the Talos API; 0 while nobody listens. */
  get apiPort(): number {
    return this.#listener.port;
  }

  get hasEtcdData(): boolean {
    return this.#record.etcdMemberId !== undefined;
  }

  /** The sequence that runs, if any. */
  get sequence(): SequenceName | undefined {
    return this.#sequence?.name;
  }

  // -- What can be seen ---------------------------------------------------------------------------------

  view(): NodeView {
    const cluster = this.#cluster;
    return {
      spec: this.spec,
      stage: this.#stage,
      hostname: this.hostname,
      talosVersion: this.#record.talosVersion,
      config: this.#config,
      installed: this.#record.installed,
      systemDisk: this.#record.installed ? this.#systemDisk() : undefined,
      services: this.#services.list(),
      unmetConditions: this.#unmetConditions(),
      members: cluster?.members() ?? [],
      etcdMemberId: this.#services.stateOf("etcd") === "Running" ? this.#record.etcdMemberId : undefined,
      kubernetesReady: cluster?.nodeReady(this),
    };
  }

  /** As others of its cluster see it; `undefined` without a configuration. */
  memberView(): ClusterMemberView | undefined {
    if (!this.#config) return undefined;
    return {
      id: this.spec.uuid,
      hostname: this.hostname,
      address: this.spec.address,
      role: this.#config.role,
      talosVersion: this.#record.talosVersion,
    };
  }

  /** The resources. Nobody pays for them before the first use; from then on they follow every change. */
  currentResources(): ResourceStore {
    if (!this.#hasReaders) {
      this.#hasReaders = true;
      this.refresh();
    }
    return this.resources;
  }

  /** Something that resources show may have changed. */
  refresh(): void {
    if (!this.#hasReaders || this.#stage === "off") return;
    this.#hardware ??= hardwareResources(this.spec);
    this.resources.replace([...this.#hardware, ...stateResources(this.view())]);
  }

  // -- Power --------------------------------------------------------------------------------------------

  /** Starts simulating: a machine that was on boots, or goes on with what it was doing. */
  async start(): Promise<void> {
    if (!this.#record.powered || this.#record.unbootable) return;
    await this.#run("boot", (signal) => this.#boot(signal, { isResumed: true }));
  }

  /** Presses the power button of a machine that is off. */
  async powerOn(): Promise<void> {
    await this.#save({ powered: true });
    if (!this.#record.unbootable) await this.#run("boot", (signal) => this.#boot(signal));
  }

  /** Pulls the plug. */
  async powerOff(): Promise<void> {
    await this.#save({ powered: false });
    await this.#loseMemory();
    await this.#goDark();
  }

  /** Puts a bootable medium in, after a reset that wiped the whole disk. */
  async insertMedium(): Promise<void> {
    await this.#save({ unbootable: false, installed: false, talosVersion: this.spec.talosVersion });
  }

  /** The process that simulates the machine ends; the machine does not notice. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#stopSequence();
    await this.#goDark();
  }

  // -- What calls do ------------------------------------------------------------------------------------

  /** Takes a configuration in maintenance mode: installs if need be, and boots with it. */
  async configure(text: string): Promise<void> {
    const config = readNodeConfig(text);
    if (!config) return;
    await this.#save({ pendingConfig: text });
    this.#crash("apply");
    void this.#run("install", (signal) => this.#takeConfig(config, signal));
  }

  /** Makes a configuration of a running node the active one, without a reboot. Kept on disk unless it is a trial. */
  async activate(text: string, options: { readonly keep: boolean }): Promise<void> {
    const config = readNodeConfig(text);
    if (!config) return;
    if (options.keep) await this.#save({ config: text });
    this.#config = config;
    await this.#openApi(config);
    this.refresh();
  }

  /** Keeps a configuration for the next boot. */
  async keepForNextBoot(text: string): Promise<void> {
    await this.#save({ stagedConfig: text });
  }

  /** Starts etcd on an empty data directory. The caller has checked that it may. */
  async bootstrapEtcd(): Promise<void> {
    await this.#becomeEtcdMember();
    this.#bootstrapped.resolve();
    this.#crash("bootstrap");
  }

  /** Reboots. */
  reboot(): void {
    void this.#run("reboot", (signal) => this.#rebootNow(signal));
  }

  /** Shuts down; only power on brings it back. */
  shutDown(): void {
    void this.#run("shutdown", async (signal) => {
      this.#setStage("shutting down");
      await this.#sleep(this.#host.timing.resetMs, signal);
      await this.#save({ powered: false });
      await this.#goDark();
    });
  }

  /** Writes another release to the disk and boots it. */
  upgrade(talosVersion: string): void {
    void this.#run("upgrade", async (signal) => {
      this.#setStage("upgrading");
      await this.#sleep(this.#host.timing.upgradeMs, signal);
      this.#crash("upgrade");
      await this.#save({ talosVersion });
      await this.#rebootNow(signal);
    });
  }

  /** Wipes. */
  reset(plan: WipePlan): void {
    void this.#run("reset", (signal) => this.#resetNow(plan, signal));
  }

  /** Changes the state of a service on request. */
  setService(id: string, state: "Running" | "Finished", message: string): boolean {
    if (this.#services.stateOf(id) === undefined) return false;
    this.#services.set(id, state, message, state === "Running" ? true : undefined);
    this.refresh();
    return true;
  }

  // -- Sequences ----------------------------------------------------------------------------------------

  async #boot(signal: AbortSignal, options: { readonly isResumed?: boolean } = {}): Promise<void> {
    this.#bootTime = this.edges.clock.now();
    this.#config = undefined;
    this.#services.clear();
    this.#setStage("booting");
    for (const id of baseServices) this.#services.set(id, "Running", "Started task", true);
    const { stagedConfig, pendingConfig } = this.#record;
    if (options.isResumed === true && pendingConfig !== undefined) {
      const config = readNodeConfig(pendingConfig);
      if (config) return this.#takeConfig(config, signal);
    }
    await this.#sleep(this.#host.timing.bootMs, signal);
    this.#crash("boot");
    if (stagedConfig !== undefined) {
      const { stagedConfig: _, ...rest } = this.#record;
      await this.#replaceRecord({ ...rest, config: stagedConfig });
    }
    const config = this.#record.config === undefined ? undefined : readNodeConfig(this.#record.config);
    if (!config) return this.#enterMaintenance();
    await this.#openVolumes(config, signal);
    await this.#runConfigured(config, signal);
  }

  async #enterMaintenance(): Promise<void> {
    let certificate: Promise<CertificateAndKey> | undefined;
    const make = (): Promise<CertificateAndKey> =>
      maintenanceCertificate(this.spec, this.hostname, this.edges);
    await this.#listener.open({ kind: "maintenance", certificate: () => (certificate ??= make()) });
    this.#services.set("apid", "Running", "Started task", true);
    this.#setStage("maintenance");
  }

  async #takeConfig(config: NodeConfig, signal: AbortSignal): Promise<void> {
    await this.#sleep(this.#host.timing.apidSwitchMs, signal);
    this.#config = config;
    this.#cluster = this.#host.clusterOf(config);
    const untilReboot = new AbortController();
    const access = this.#grantAccess(config, AbortSignal.any([signal, untilReboot.signal]));
    if (this.#record.installed) {
      await this.#keepPending();
      return this.#runConfigured(config, signal, access);
    }
    try {
      await this.#install(signal);
    } finally {
      // A worker may still be asking for its certificate.
      untilReboot.abort();
      await access.catch(() => {});
    }
    await this.#keepPending();
    await this.#rebootNow(signal);
  }

  /** Until the disk takes it: a failing disk means reboot and try again. */
  async #install(signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#setStage("installing");
      await this.#sleep(this.#host.timing.installMs, signal);
      this.#crash("install");
      const keys = await this.#sealKeys();
      if (keys) return this.#save({ installed: true, ...(keys.length === 0 ? {} : { sealedKeys: keys }) });
      this.#log.warn("installation failed; rebooting to try again");
      this.#setStage("rebooting");
      this.#listener.pause();
      await this.#sleep(this.#host.timing.rebootMs, signal);
      if (this.#config) await this.#grantAccess(this.#config, signal);
    }
  }

  /** Keys of encrypted volumes, sealed; `undefined` when the disk or the service fails. */
  async #sealKeys(): Promise<SealedKey[] | undefined> {
    if (this.faults.diskFailure === true || !this.#config) return undefined;
    try {
      return await sealVolumeKeys(this.#config, this.spec.uuid, this.edges);
    } catch (error) {
      this.#log.warn("a volume's key could not be sealed", { reason: messageOf(error) });
      return undefined;
    }
  }

  /** Waits until every encrypted volume is open. */
  async #openVolumes(config: NodeConfig, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await unsealVolumeKeys(this.#record.sealedKeys ?? [], config, this.spec.uuid, this.edges);
      } catch (error) {
        this.#log.warn("an encrypted volume stays closed; trying again", { reason: messageOf(error) });
        await this.#sleep(this.#host.timing.trustdRetryMs, signal);
      }
    }
  }

  async #keepPending(): Promise<void> {
    const { pendingConfig, ...rest } = this.#record;
    if (pendingConfig !== undefined) await this.#replaceRecord({ ...rest, config: pendingConfig });
  }

  async #rebootNow(signal: AbortSignal): Promise<void> {
    this.#setStage("rebooting");
    // Whoever asked for it still hears the answer.
    await this.#sleep(this.#host.timing.apidSwitchMs, signal);
    await this.#goDark({ stage: "rebooting" });
    await this.#sleep(this.#host.timing.rebootMs, signal);
    await this.#boot(signal);
  }

  async #runConfigured(
    config: NodeConfig,
    signal: AbortSignal,
    access = this.#grantAccess(config, signal),
  ): Promise<void> {
    const cluster = this.#host.clusterOf(config);
    this.#config = config;
    this.#cluster = cluster;
    this.#setStage("booting");
    await access;
    cluster.enter(this);
    this.#isCriUp = true;
    this.#services.set("cri", "Running", "Started task", true);
    this.#services.set("kubelet", "Running", "Started task", true);
    if (config.role === "controlplane") {
      await this.#trustd.open(() => this.#serverCertificate(config));
      this.#services.set("trustd", "Running", "Started task", true);
      await this.#startEtcd(cluster, signal);
      await cluster.startServing(this, config);
    }
    await cluster.startKubelet(this, config, signal);
    this.#setStage("running");
  }

  async #startEtcd(cluster: SimulatedCluster, signal: AbortSignal): Promise<void> {
    this.#services.set("etcd", "Preparing", "Running pre state");
    this.refresh();
    if (!this.hasEtcdData) {
      while (!this.hasEtcdData && !cluster.isServing) {
        await Promise.race([this.#bootstrapped.promise, cluster.changed(signal)]);
      }
      if (!this.hasEtcdData) await this.#becomeEtcdMember();
    }
    await this.#sleep(this.#host.timing.etcdMs, signal);
    this.#services.set("etcd", "Running", "Health check successful", true);
    this.refresh();
  }

  async #becomeEtcdMember(): Promise<void> {
    const id = Buffer.from(this.edges.random.bytes(8)).toString("hex");
    await this.#save({ etcdMemberId: id });
    await this.#cluster?.addEtcdMember({ id, hostname: this.hostname, address: this.spec.address });
  }

  async #resetNow(plan: WipePlan, signal: AbortSignal): Promise<void> {
    this.#setStage("resetting");
    const cluster = this.#cluster;
    const memberId = this.#record.etcdMemberId;
    if (plan.graceful && cluster && memberId !== undefined) {
      try {
        await cluster.leaveEtcd(memberId);
      } catch (error) {
        // Talos gives the sequence up: nothing is wiped and the node comes back as it was.
        this.#log.warn("reset failed; rebooting", { reason: messageOf(error) });
        return this.#rebootNow(signal);
      }
    }
    await this.#sleep(this.#host.timing.resetMs, signal);
    this.#crash("reset");
    await this.#goDark({ stage: "resetting" });
    await this.#wipe(plan.partitions, cluster);
    if (!plan.reboot) return this.#save({ powered: false }).then(() => this.#setStage("off"));
    if (this.#record.unbootable) return this.#setStage("off");
    this.#setStage("rebooting");
    await this.#sleep(this.#host.timing.rebootMs, signal);
    await this.#boot(signal);
  }

  async #wipe(
    partitions: readonly string[] | undefined,
    cluster: SimulatedCluster | undefined,
  ): Promise<void> {
    const { config, stagedConfig, pendingConfig: _, etcdMemberId, sealedKeys = [], ...disk } = this.#record;
    const wipesState = partitions === undefined || partitions.includes("STATE");
    const wipesData = partitions === undefined || partitions.includes("EPHEMERAL");
    const hadData = etcdMemberId !== undefined;
    await this.#replaceRecord({
      ...disk,
      ...(partitions === undefined ? { installed: false, unbootable: true } : {}),
      ...(wipesState || config === undefined ? {} : { config }),
      ...(wipesState || stagedConfig === undefined ? {} : { stagedConfig }),
      ...(wipesData || etcdMemberId === undefined ? {} : { etcdMemberId }),
      sealedKeys: sealedKeys.filter(({ volume }) => partitions !== undefined && !partitions.includes(volume)),
    });
    if (wipesData && hadData) await this.#host.lostData(cluster);
  }

  // -- Access -------------------------------------------------------------------------------------------

  /** Lets clients of the cluster in: at once on a control plane, after trustd's answer on a worker. */
  async #grantAccess(config: NodeConfig, signal: AbortSignal): Promise<void> {
    if (config.role === "controlplane") return this.#openApi(config);
    this.#listener.pause();
    this.#services.set("apid", "Waiting", "Waiting for api certificates");
    this.refresh();
    await this.#openApi(config, await this.#askTrustd(config, signal));
  }

  async #openApi(config: NodeConfig, answer?: TrustdAnswer): Promise<void> {
    if (config.role === "worker" && !answer) return;
    const make = async (): Promise<CertificateAndKey> =>
      this.faults.wrongCertificate === true
        ? foreignCertificate(this.spec, this.hostname, this.edges)
        : (answer ?? this.#serverCertificate(config));
    let certificate: Promise<CertificateAndKey> | undefined;
    await this.#listener.open({
      kind: "normal",
      certificate: () => (certificate ??= make()),
      clientCas: answer ? [answer.ca] : [config.osCa.crt, ...config.facts.acceptedOsCas],
    });
    this.#services.set("apid", "Running", "Started task", true);
    this.refresh();
  }

  #serverCertificate(config: NodeConfig): Promise<CertificateAndKey> {
    return controlPlaneCertificate(this.spec, this.hostname, config, this.edges);
  }

  async #askTrustd(config: NodeConfig, signal: AbortSignal): Promise<TrustdAnswer> {
    for (;;) {
      try {
        return await requestCertificate({
          config,
          hostname: this.hostname,
          spec: this.spec,
          port: this.#host.ports.trustd,
          edges: this.edges,
          signal,
        });
      } catch (error) {
        if (signal.aborted) throw error;
        this.#log.debug("trustd does not answer yet", { reason: messageOf(error) });
        await this.#sleep(this.#host.timing.trustdRetryMs, signal);
      }
    }
  }

  // -- Means --------------------------------------------------------------------------------------------

  /** Ends what runs, then runs this; a failure other than being ended reboots the node, as in Talos. */
  async #run(name: SequenceName, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#isClosed) return;
    const before = this.#sequence;
    before?.abort.abort();
    const abort = new AbortController();
    const attempt = async (): Promise<void> => {
      await before?.done;
      try {
        await work(abort.signal);
      } catch (error) {
        if (abort.signal.aborted || isCoded(error, "cancelled")) return;
        if (error instanceof PowerLoss) return this.#afterPowerLoss();
        this.#log.error("a sequence failed", { sequence: name, reason: messageOf(error) });
      } finally {
        if (this.#sequence?.abort === abort) this.#sequence = undefined;
      }
    };
    const done = attempt();
    this.#sequence = { name, abort, done };
    await done;
  }

  async #stopSequence(): Promise<void> {
    const running = this.#sequence;
    running?.abort.abort();
    await running?.done;
  }

  async #afterPowerLoss(): Promise<void> {
    this.#log.warn("power lost, as asked; booting again");
    await this.#loseMemory();
    await this.#goDark();
    this.#sequence = undefined;
    void this.#run("boot", async (signal) => {
      await this.#sleep(this.#host.timing.rebootMs, signal);
      await this.#boot(signal);
    });
  }

  /** A configuration that was not on disk yet is gone with the power. */
  async #loseMemory(): Promise<void> {
    if (this.#sequence) this.#sequence.abort.abort();
    const { pendingConfig, ...rest } = this.#record;
    if (pendingConfig !== undefined) await this.#replaceRecord(rest);
  }

  /** Throws when the node was told to crash here; once. */
  #crash(point: CrashPoint): void {
    if (this.faults.crashAt !== point) return;
    const { crashAt: _, ...rest } = this.faults;
    this.faults = rest;
    if (!this.#sequence || point === "apply" || point === "bootstrap") {
      void this.#run("boot", () => Promise.reject(new PowerLoss()));
      throw new CodedError("unavailable", "the node lost power");
    }
    throw new PowerLoss();
  }

  /** Nothing answers any more. */
  async #goDark(options: { readonly stage?: NodeStage } = {}): Promise<void> {
    const cluster = this.#cluster;
    this.#isCriUp = false;
    this.#listener.close();
    await this.#trustd.close();
    await cluster?.leave(this);
    this.#cluster = undefined;
    this.#config = undefined;
    this.#bootstrapped = Promise.withResolvers<void>();
    this.#services.clear();
    this.resources.close();
    this.#setStage(options.stage ?? "off");
  }

  #setStage(stage: NodeStage): void {
    if (this.#stage !== stage) this.#log.debug("stage", { stage });
    this.#stage = stage;
    this.refresh();
  }

  #unmetConditions(): { name: string; reason: string }[] {
    const unmet: { name: string; reason: string }[] = [];
    if (this.faults.timeNotSynced === true) unmet.push({ name: "time", reason: "time is not in sync" });
    const pending = this.#services
      .list()
      .filter(({ state, healthy }) => state !== "Running" || healthy === false);
    if (pending.length > 0) {
      unmet.push({ name: "services", reason: `${pending.map(({ id }) => id).join(", ")} not running` });
    }
    if (this.#config && this.#cluster?.nodeReady(this) !== true) {
      unmet.push({
        name: "nodeReady",
        reason: `node ${JSON.stringify(nodeNameOf(this.hostname))} status is not available yet`,
      });
    }
    return unmet;
  }

  #systemDisk(): string | undefined {
    const disks = candidateDisks(this.spec);
    const facts = this.#config?.facts;
    return (
      (facts ? installDisk(facts, disks) : undefined)?.name ??
      disks.find(({ transport }) => transport !== "")?.name
    );
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#host.edges.clock.sleep(ms, signal);
  }

  #save(change: Partial<MachineRecord>): Promise<void> {
    return this.#replaceRecord({ ...this.#record, ...change });
  }

  async #replaceRecord(record: MachineRecord): Promise<void> {
    this.#record = record;
    await this.#host.save(this, record);
  }
}
