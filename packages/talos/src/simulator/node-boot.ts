/**
 * How a node comes up: boot, maintenance mode, installation, etcd, Kubernetes.
 */
import { messageOf, type Log } from "@kontinuum/std";
import type { SimulatedCluster } from "./cluster.ts";
import { sealVolumeKeys, unsealVolumeKeys, type SealedKey } from "./disk-encryption.ts";
import type { CrashPoint } from "./faults.ts";
import type { NodeAccess } from "./node-access.ts";
import { readNodeConfig, type NodeConfig } from "./node-config.ts";
import type { NodeDisk } from "./node-disk.ts";
import type { NodeHost } from "./node-host.ts";
import type { NodeState } from "./node-state.ts";
import type { SimulatedNode } from "./node.ts";

/** What a node is made of, for those who move it. */
export interface NodeParts {
  readonly node: SimulatedNode;
  readonly host: NodeHost;
  readonly log: Log;
  readonly disk: NodeDisk;
  readonly state: NodeState;
  readonly access: NodeAccess;
  /** Throws when the node was told to lose power at this step; once. */
  crash(point: CrashPoint): void;
  /** Resolves when etcd was bootstrapped on this node since it came up. */
  bootstrapped(): Promise<void>;
  reboot(signal: AbortSignal): Promise<void>;
  /** The sequence with this signal is a boot from now on. */
  booting(signal: AbortSignal): void;
}

/** See the module's comment. */
export class NodeBoot {
  readonly #parts: NodeParts;

  constructor(parts: NodeParts) {
    this.#parts = parts;
  }

  /** Boots from the disk: with a configuration into a cluster, without one into maintenance mode. */
  async boot(signal: AbortSignal): Promise<void> {
    await this.#parts.disk.bootNext();
    this.#parts.booting(signal);
    this.#parts.state.boot();
    await this.#sleep(this.#parts.host.timing.bootMs, signal);
    this.#parts.crash("boot");
    await this.#parts.disk.applyStaged();
    const { config: text } = this.#parts.disk.record;
    const config = text === undefined ? undefined : readNodeConfig(text);
    if (!config) return this.#enterMaintenance();
    await this.#openVolumes(config, signal);
    await this.#runConfigured(config, signal);
  }

  async #enterMaintenance(): Promise<void> {
    await this.#parts.access.openMaintenance();
    this.#parts.state.running("apid");
    this.#parts.state.setStage("maintenance");
  }

  /** Takes a configuration that is on its way to the disk: installs if need be, and boots with it. */
  async takeConfig(config: NodeConfig, signal: AbortSignal): Promise<void> {
    this.#parts.state.config = config;
    this.#parts.state.cluster = this.#parts.host.clusterOf(config);
    this.#parts.state.runBaseServices();
    const untilReboot = new AbortController();
    const access = this.#grantAccess(config, AbortSignal.any([signal, untilReboot.signal]));
    if (this.#parts.disk.record.installed) {
      await this.#parts.disk.keepPending();
      this.#parts.booting(signal);
      return this.#runConfigured(config, signal, access);
    }
    try {
      await this.#install(config, signal);
    } finally {
      // A worker may still be asking for its certificate.
      untilReboot.abort();
      await access.catch(() => {});
    }
    await this.#parts.disk.keepPending();
    await this.#parts.reboot(signal);
  }

  /** Until the disk takes it: a failing disk means reboot and try again. */
  async #install(config: NodeConfig, signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#parts.state.setStage("installing");
      await this.#sleep(this.#parts.host.timing.installMs, signal);
      this.#parts.crash("install");
      const keys = await this.#sealKeys(config);
      if (keys) return this.#parts.disk.installed(keys);
      this.#parts.log.warn("installation failed; rebooting to try again");
      this.#parts.state.setStage("rebooting");
      this.#parts.access.pause();
      await this.#sleep(this.#parts.host.timing.rebootMs, signal);
      await this.#grantAccess(config, signal);
    }
  }

  /** Keys of encrypted volumes, sealed; `undefined` when the disk or the service fails. */
  async #sealKeys(config: NodeConfig): Promise<SealedKey[] | undefined> {
    if (this.#parts.node.faults.diskFailure === true) return undefined;
    try {
      return await sealVolumeKeys(config, this.#parts.node.spec.uuid, this.#parts.node.edges);
    } catch (error) {
      this.#parts.log.warn("a volume's key could not be sealed", { reason: messageOf(error) });
      return undefined;
    }
  }

  /** Waits until every encrypted volume is open. */
  async #openVolumes(config: NodeConfig, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await unsealVolumeKeys(
          this.#parts.disk.record.sealedKeys ?? [],
          config,
          this.#parts.node.spec.uuid,
          this.#parts.node.edges,
        );
      } catch (error) {
        this.#parts.log.warn("an encrypted volume stays closed; trying again", { reason: messageOf(error) });
        await this.#sleep(this.#parts.host.timing.trustdRetryMs, signal);
      }
    }
  }

  /** Lets the cluster's clients in. */
  async #grantAccess(config: NodeConfig, signal: AbortSignal): Promise<void> {
    if (config.role === "worker")
      this.#parts.state.service("apid", "Waiting", "Waiting for api certificates");
    this.#parts.node.refresh();
    await this.#parts.access.open(config, signal);
    this.#parts.state.running("apid");
    this.#parts.node.refresh();
  }

  async #runConfigured(
    config: NodeConfig,
    signal: AbortSignal,
    access = this.#grantAccess(config, signal),
  ): Promise<void> {
    const cluster = this.#parts.host.clusterOf(config);
    this.#parts.state.config = config;
    this.#parts.state.cluster = cluster;
    this.#parts.state.setStage("booting");
    await access;
    cluster.enter(this.#parts.node);
    this.#parts.state.isCriUp = true;
    this.#parts.state.running("cri");
    this.#parts.state.running("kubelet");
    if (config.role === "controlplane") {
      await this.#parts.access.openTrustd(config);
      this.#parts.state.running("trustd");
      await this.#startEtcd(cluster, signal);
      await cluster.startServing(this.#parts.node, config);
    }
    await cluster.startKubelet(this.#parts.node, config, signal);
    this.#parts.state.setStage("running");
  }

  async #startEtcd(cluster: SimulatedCluster, signal: AbortSignal): Promise<void> {
    this.#parts.state.service("etcd", "Preparing", "Running pre state");
    while (!this.#parts.node.hasEtcdData && !cluster.isServing) {
      await Promise.race([this.#parts.bootstrapped(), cluster.changed(signal)]);
    }
    if (!this.#parts.node.hasEtcdData) await this.becomeEtcdMember();
    await this.#enterEtcd(cluster);
    await this.#sleep(this.#parts.host.timing.etcdMs, signal);
    this.#parts.state.service("etcd", "Running", "Health check successful", true);
  }

  /** Writes the first data of etcd. */
  async becomeEtcdMember(): Promise<void> {
    const id = Buffer.from(this.#parts.node.edges.random.bytes(8)).toString("hex");
    await this.#parts.disk.save({ etcdMemberId: id });
    if (this.#parts.node.cluster) await this.#enterEtcd(this.#parts.node.cluster);
  }

  /** The disk says that it is a member; the cluster may not have heard it when the process ended in between. */
  async #enterEtcd(cluster: SimulatedCluster): Promise<void> {
    const { etcdMemberId: id } = this.#parts.disk.record;
    if (id === undefined || cluster.etcdMembers.some((member) => member.id === id)) return;
    await cluster.addEtcdMember({
      id,
      hostname: this.#parts.node.hostname,
      address: this.#parts.node.spec.address,
    });
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#parts.host.edges.clock.sleep(ms, signal);
  }
}
