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

/** A phase of a sequence and its task, by Talos' names. */
type Phase = readonly [phase: string, task: string];

const drain: Phase = ["drain", "cordonAndDrainNode"];
const stopPods: Phase = ["cleanup", "stopAllPods"];
/** What every ending does before its last services stop. */
const unmounting: readonly Phase[] = [
  ["dbus", "stopDBus"],
  ["stopServices", "stopServicesForUpgrade"],
  ["umount", "unmountPodMounts"],
  ["unmountBind", "unmountSystemDiskBindMounts"],
  ["unmountSystem", "unmountEphemeralPartition"],
  ["volumeFinalize", "teardownLifecycle"],
];
/** The task that clients wait for: after it nothing of the node answers for long. */
const stopEverything: Phase = ["stopEverything", "stopAllServices"];

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
  async reboot(signal: AbortSignal, actorId = ""): Promise<void> {
    this.#parts.state.setStage("rebooting");
    const phases: readonly Phase[] = [stopPods, ...unmounting, ["kexec", "kexecPrepare"], stopEverything];
    for (const phase of phases) this.#tell(phase, actorId);
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
        return this.reboot(signal, actorId);
      }
    }
    const pods: readonly Phase[] = plan.graceful ? [drain, ["cleanup", "removeAllPods"]] : [stopPods];
    await this.#stop([...pods, ["preReset", "sendResetSignal"], ...unmounting], signal, actorId);
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
    const first: readonly Phase[] = [["storeShutdown", "storeShutdownEmergency"], drain, stopPods];
    await this.#stop([...first, ...unmounting], signal, actorId);
    await this.#parts.disk.save({ powered: false });
    await this.goDark("off");
  }

  /** Writes another release to the disk and boots it. */
  async upgrade(talosVersion: string, signal: AbortSignal, actorId: string): Promise<void> {
    this.#parts.state.setStage("upgrading");
    await this.#sleep(this.#parts.host.timing.upgradeMs, signal);
    this.#parts.crash("upgrade");
    await this.#parts.disk.save({ nextVersion: talosVersion });
    await this.reboot(signal, actorId);
  }

  /**
   * Goes through these phases in the time a reset takes, then stops everything. The last comes last: who begins to
   * watch for it together with the call that leads to it is there in time.
   */
  async #stop(phases: readonly Phase[], signal: AbortSignal, actorId: string): Promise<void> {
    for (const phase of phases) this.#tell(phase, actorId);
    await this.#sleep(this.#parts.host.timing.resetMs, signal);
    this.#tell(stopEverything, actorId);
  }

  #tell([phase, task]: Phase, actorId: string): void {
    const { events } = this.#parts.state;
    events.publish({ kind: "phase", phase, action: "start" }, actorId);
    for (const action of ["start", "stop"] as const) events.publish({ kind: "task", task, action }, actorId);
    events.publish({ kind: "phase", phase, action: "stop" }, actorId);
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#parts.host.edges.clock.sleep(ms, signal);
  }
}
