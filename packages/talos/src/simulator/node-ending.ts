/**
 * How a node goes down: reboot, shutdown, upgrade, reset.
 */
import { messageOf } from "@kontinuum/std";
import type { NodeBoot, NodeParts } from "./node-boot.ts";
import type { NodeStage } from "./node-view.ts";

/** How a reset wipes. */
export interface WipePlan {
  /** Leave etcd and drain first. */
  readonly graceful: boolean;
  readonly reboot: boolean;
  /** Labels of partitions; `undefined`: the whole system disk. */
  readonly partitions: readonly string[] | undefined;
}

/** See the module's comment. */
export class NodeEnding {
  readonly #parts: NodeParts;
  readonly #boot: NodeBoot;
  readonly #forgetBootstrap: () => void;

  /** `forgetBootstrap`: that etcd was bootstrapped is nothing a node remembers. */
  constructor(parts: NodeParts, boot: NodeBoot, forgetBootstrap: () => void) {
    this.#parts = parts;
    this.#boot = boot;
    this.#forgetBootstrap = forgetBootstrap;
  }

  /** Goes down and boots again. */
  async reboot(signal: AbortSignal): Promise<void> {
    this.#parts.state.setStage("rebooting");
    await this.goDark("rebooting");
    await this.#sleep(this.#parts.host.timing.rebootMs, signal);
    await this.#boot.boot(signal);
  }

  /** Wipes. A control plane that cannot leave etcd comes back as it was. */
  async reset(plan: WipePlan, signal: AbortSignal, actorId: string): Promise<void> {
    this.#parts.state.setStage("resetting");
    const { cluster } = this.#parts.node;
    const memberId = this.#parts.disk.record.etcdMemberId;
    if (plan.graceful && cluster && memberId !== undefined) {
      try {
        await cluster.leaveEtcd(memberId);
      } catch (error) {
        // Talos gives the sequence up: nothing is wiped and the node comes back as it was.
        this.#parts.log.warn("reset failed; rebooting", { reason: messageOf(error) });
        return this.reboot(signal);
      }
    }
    this.#stopServices(actorId);
    await this.#sleep(this.#parts.host.timing.resetMs, signal);
    this.#parts.crash("reset");
    await this.goDark("resetting");
    if (await this.#parts.disk.wipe(plan.partitions)) await this.#parts.host.lostData(cluster);
    if (!plan.reboot) await this.#parts.disk.save({ powered: false });
    if (!plan.reboot || this.#parts.disk.record.unbootable) return this.#parts.state.setStage("off");
    this.#parts.state.setStage("rebooting");
    await this.#sleep(this.#parts.host.timing.rebootMs, signal);
    await this.#boot.boot(signal);
  }

  /** Nothing answers any more. */
  async goDark(stage: NodeStage): Promise<void> {
    const { cluster } = this.#parts.node;
    this.#parts.state.isCriUp = false;
    // Streams end in an orderly way first: who waits for an event of this end still hears it.
    this.#parts.state.endStreams();
    await this.#parts.access.close();
    await cluster?.leave(this.#parts.node);
    this.#forgetBootstrap();
    this.#parts.state.goDark(stage);
  }

  /** Switches the machine off. */
  async shutDown(signal: AbortSignal, actorId: string): Promise<void> {
    this.#parts.state.setStage("shutting down");
    this.#stopServices(actorId);
    await this.#sleep(this.#parts.host.timing.resetMs, signal);
    await this.#parts.disk.save({ powered: false });
    await this.goDark("off");
  }

  /** Writes another release to the disk and boots it. */
  async upgrade(talosVersion: string, signal: AbortSignal): Promise<void> {
    this.#parts.state.setStage("upgrading");
    await this.#sleep(this.#parts.host.timing.upgradeMs, signal);
    this.#parts.crash("upgrade");
    await this.#parts.disk.save({ nextVersion: talosVersion });
    await this.reboot(signal);
  }

  /** The task that clients wait for: after it nothing of the node answers for long. */
  #stopServices(actorId: string): void {
    for (const action of ["start", "stop"] as const)
      this.#parts.state.events.publish({ kind: "task", task: "stopAllServices", action }, actorId);
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#parts.host.edges.clock.sleep(ms, signal);
  }
}
