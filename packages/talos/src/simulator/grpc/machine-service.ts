/**
 * `machine.MachineService`: the calls of a simulated node. What is not here answers UNIMPLEMENTED.
 */
import { timestampFromMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  ResetRequest_WipeMode as WipeMode,
  type MachineService,
  type ResetRequest,
} from "../../gen/machine/machine_pb.ts";
import { parseVersionContract } from "../../config/version-contract.ts";
import { generateTalosconfigFor, packKubeconfig } from "../client-files.ts";
import {
  alreadyExists,
  failedPrecondition,
  invalidArgument,
  permissionDenied,
  unimplemented,
  unknownError,
} from "../call-error.ts";
import type { SimulatedNode, WipePlan } from "../node.ts";
import { applyConfiguration } from "./apply-configuration.ts";
import type { SequenceName } from "../sequence.ts";
import { callerOf } from "./call-context.ts";
import { eventMessage } from "./events.ts";
import {
  cpuInfo,
  diskStats,
  loadAverage,
  memory,
  mounts,
  networkStats,
  systemStat,
} from "./machine-stats.ts";

/** See the module's comment. */
export const machineService: Partial<ServiceImpl<typeof MachineService>> = {
  async applyConfiguration(request, context) {
    return { messages: [await applyConfiguration(request, callerOf(context))] };
  },

  async bootstrap(request, context) {
    const { node } = callerOf(context);
    if (!node.isCriUp) throw failedPrecondition("bootstrap is not available yet");
    controlPlaneOnly(node, "bootstrap");
    if (node.faults.timeNotSynced === true) throw failedPrecondition("time is not in sync yet");
    if (request.recoverEtcd) throw unimplemented("recovery from a snapshot is not simulated");
    if (node.hasEtcdData) throw alreadyExists("etcd data directory is not empty");
    await node.bootstrapEtcd();
    return { messages: [{}] };
  },

  version(_request, context) {
    const { node } = callerOf(context);
    if (!node.config) refuseInOldMaintenance(node);
    const version = {
      tag: node.record.talosVersion,
      sha: "simulated",
      built: "",
      goVersion: "go1.25",
      os: "linux",
      arch: "amd64",
    };
    const features = node.config ? { features: { rbac: true } } : {};
    return { messages: [{ version, platform: { name: "metal", mode: "metal" }, ...features }] };
  },

  hostname(_request, context) {
    return { messages: [{ hostname: readable(context).hostname }] };
  },

  memory: (_request, context) => ({ messages: [memory(readable(context).spec)] }),
  cPUInfo: (_request, context) => ({ messages: [cpuInfo(readable(context).spec)] }),
  systemStat: (_request, context) => ({ messages: [systemStat(readable(context))] }),
  loadAvg: (_request, context) => ({ messages: [loadAverage(readable(context))] }),
  mounts: (_request, context) => ({ messages: [mounts(readable(context))] }),
  diskStats: (_request, context) => ({ messages: [diskStats(readable(context).spec)] }),
  networkDeviceStats: (_request, context) => ({ messages: [networkStats(readable(context).spec)] }),

  serviceList(_request, context) {
    const services = readable(context)
      .view()
      .services.map(({ id, state, healthy, events }) => ({
        id,
        state,
        events: {
          events: events.map((event) => ({
            msg: event.message,
            state: event.state,
            ts: timestamp(event.at),
          })),
        },
        health: {
          unknown: healthy === undefined,
          healthy: healthy ?? false,
          lastMessage: "",
          ...lastChange(events.at(-1)?.at),
        },
      }));
    return { messages: [{ services }] };
  },

  serviceStart: (request, context) => ({
    messages: [{ resp: changeService(context, request.id, "Running") }],
  }),
  serviceStop: (request, context) => ({
    messages: [{ resp: changeService(context, request.id, "Finished") }],
  }),
  serviceRestart: (request, context) => ({
    messages: [{ resp: changeService(context, request.id, "Running") }],
  }),

  async *kubeconfig(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "kubeconfig");
    yield { bytes: await packKubeconfig(node) };
  },

  async generateClientConfiguration(request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "client configuration");
    const lifetime = request.crtTtl ? { validityMs: durationMs(request.crtTtl) } : {};
    return { messages: [await generateTalosconfigFor(node, request.roles, lifetime)] };
  },

  reset(request, context) {
    const { node } = callerOf(context);
    const plan = wipePlan(request, node);
    return { messages: [{ actorId: actOn(node, (actorId) => node.reset(plan, actorId)) }] };
  },

  reboot(_request, context) {
    const { node } = callerOf(context);
    return { messages: [{ actorId: actOn(node, (actorId) => node.reboot(actorId)) }] };
  },

  shutdown(_request, context) {
    const { node } = callerOf(context);
    return { messages: [{ actorId: actOn(node, (actorId) => node.shutDown(actorId)) }] };
  },

  upgrade(request, context) {
    const { node } = callerOf(context);
    const tag = /^[^\s@]+:(v1\.\d{1,3}\.\d{1,3}(?:-[0-9A-Za-z.-]+)?)(?:@sha256:[0-9a-f]{64})?$/.exec(
      request.image,
    )?.[1];
    if (tag === undefined)
      throw invalidArgument(
        `error validating installer image ${JSON.stringify(request.image.slice(0, 200))}: it has no Talos version as its tag`,
      );
    parseVersionContract(tag);
    if (node.cluster?.etcdMembers.length === 2 && !request.force && node.hasEtcdData) {
      throw failedPrecondition("etcd cluster of two members would lose its quorum during the upgrade");
    }
    const actorId = actOn(node, (id) => node.upgrade(tag, id));
    return { messages: [{ ack: "Upgrade request received", actorId }] };
  },

  etcdMemberList(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "member list");
    const members = etcdCluster(node).etcdMembers.map(({ id, hostname, address }) => ({
      id: BigInt(`0x${id}`),
      hostname,
      peerUrls: [`https://${address}:2380`],
      clientUrls: [`https://${address}:2379`],
      isLearner: false,
    }));
    return { messages: [{ legacyMembers: members.map(({ hostname }) => hostname), members }] };
  },

  etcdStatus(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd status");
    const { etcdMembers } = etcdCluster(node);
    const memberId = BigInt(`0x${node.record.etcdMemberId ?? "0"}`);
    const leader = BigInt(`0x${etcdMembers[0]?.id ?? "0"}`);
    const status = {
      memberId,
      leader,
      protocolVersion: "3.6.0",
      storageVersion: "3.6.0",
      raftTerm: 2n,
      dbSize: 1_048_576n,
      dbSizeInUse: 524_288n,
    };
    return { messages: [{ memberStatus: status }] };
  },

  async etcdRemoveMemberByID(request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd member removal");
    await etcdCluster(node).removeEtcdMember(request.memberId.toString(16).padStart(16, "0"));
    return { messages: [{}] };
  },

  async etcdLeaveCluster(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd leave cluster");
    await etcdCluster(node).leaveEtcd(node.record.etcdMemberId ?? "");
    return { messages: [{}] };
  },

  etcdForfeitLeadership(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd forfeit leadership");
    etcdCluster(node);
    return { messages: [{ member: node.hostname }] };
  },

  /** A greeting, the asked-for past, then what happens. */
  async *events({ tailEvents, tailId, tailSeconds, withActorId }, context) {
    const { node } = callerOf(context);
    yield {};
    const happenings = node.events.watch({ count: tailEvents, afterId: tailId, seconds: tailSeconds });
    const end = (): void => node.events.unwatch(happenings);
    context.signal.addEventListener("abort", end, { once: true });
    try {
      for await (const event of happenings) {
        if (withActorId === "" || event.actorId === withActorId) yield eventMessage(event);
      }
    } finally {
      context.signal.removeEventListener("abort", end);
      end();
    }
  },

  async *dmesg({ follow }, context) {
    const { journal } = readable(context);
    yield { bytes: Buffer.from(journal.lines().join("")) };
    if (follow) await untilCancelled(context);
  },

  /** The history of a Talos service; pods have no logs, because they run nothing here. */
  async *logs({ id, follow, tailLines }, context) {
    const service = readable(context)
      .view()
      .services.find((candidate) => candidate.id === id);
    if (!service) throw unknownError(`log ${JSON.stringify(id)} was not registered`);
    const lines = service.events.map(
      ({ at, state, message }) => `${new Date(at).toISOString()} ${id} (${state}): ${message}\n`,
    );
    yield { bytes: Buffer.from((tailLines > 0 ? lines.slice(-tailLines) : lines).join("")) };
    if (follow) await untilCancelled(context);
  },

  async *read({ path }, context) {
    const { node } = callerOf(context);
    const text = virtualFile(path, node);
    if (text === undefined) throw unknownError(`open ${path.slice(0, 200)}: no such file or directory`);
    yield { bytes: Buffer.from(text) };
  },

  metaWrite: () => ({ messages: [{}] }),
  metaDelete: () => ({ messages: [{}] }),
};

/** The files of a node that clients look at. */
function virtualFile(path: string, node: SimulatedNode): string | undefined {
  switch (path) {
    case "/proc/sys/kernel/random/boot_id":
      return `${node.bootId}\n`;
    case "/proc/uptime":
      return `${node.journal.uptimeSeconds.toFixed(2)} ${node.journal.uptimeSeconds.toFixed(2)}\n`;
    case "/etc/hostname":
      return `${node.hostname}\n`;
    case "/etc/os-release":
      return `NAME="Talos"\nID=talos\nVERSION_ID=${node.record.talosVersion}\nPRETTY_NAME="Talos (${node.record.talosVersion}, simulated)"\n`;
    default:
      return undefined;
  }
}

/** Nothing more comes: the call stays open until its caller leaves. */
function untilCancelled(context: HandlerContext): Promise<void> {
  return new Promise((resolve) => {
    if (context.signal.aborted) resolve();
    else context.signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** The node, where its maintenance mode answers this kind of call at all (since Talos 1.13). */
function readable(context: HandlerContext): SimulatedNode {
  const { node } = callerOf(context);
  if (!node.config) refuseInOldMaintenance(node);
  return node;
}

function refuseInOldMaintenance(node: SimulatedNode): void {
  if (parseVersionContract(node.record.talosVersion).minor < 13) {
    throw unimplemented("API is not implemented in maintenance mode");
  }
}

function controlPlaneOnly(node: SimulatedNode, what: string): void {
  if (node.config?.role !== "controlplane")
    throw unimplemented(`${what} is only available on control plane nodes`);
}

function etcdCluster(node: SimulatedNode): NonNullable<SimulatedNode["cluster"]> {
  const isUp = node.view().services.some(({ id, state }) => id === "etcd" && state === "Running");
  if (!node.cluster || !isUp) throw unknownError("failed to create etcd client: context deadline exceeded");
  return node.cluster;
}

/** Sequences during which Talos drops a request, although it says yes. */
const exclusive: readonly SequenceName[] = ["install", "reboot", "upgrade", "reset"];

/** Does it, unless it is dropped; returns the id under which its events are told. */
function actOn(node: SimulatedNode, act: (actorId: string) => void): string {
  const actorId = node.edges.random.uuid();
  if (node.sequence === undefined || !exclusive.includes(node.sequence)) act(actorId);
  return actorId;
}

function wipePlan(request: ResetRequest, node: SimulatedNode): WipePlan {
  const { mode, systemPartitionsToWipe, userDisksToWipe } = request;
  if (mode === WipeMode.SYSTEM_DISK && userDisksToWipe.length > 0) {
    throw unknownError(
      "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter",
    );
  }
  if (mode === WipeMode.USER_DISKS && systemPartitionsToWipe.length > 0) {
    throw unknownError(
      "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter",
    );
  }
  for (const path of userDisksToWipe) {
    const disk = node.spec.disks.find(({ name }) => `/dev/${name}` === path);
    if (!disk || disk.readonly === true)
      throw unknownError(`reset failed: disk ${JSON.stringify(path)} can't be wiped`);
    if (node.view().systemDisk === disk.name)
      throw unknownError(`reset failed: disk ${JSON.stringify(path)} is the system disk`);
  }
  for (const { label } of systemPartitionsToWipe) {
    if (!["STATE", "EPHEMERAL", "META", "BOOT", "EFI"].includes(label)) {
      throw unknownError(
        `failed to get volume status with label ${JSON.stringify(label)}: resource doesn't exist`,
      );
    }
  }
  const labels = systemPartitionsToWipe.filter(({ wipe }) => wipe).map(({ label }) => label);
  const isPartial = systemPartitionsToWipe.length > 0 || mode === WipeMode.USER_DISKS;
  return { graceful: request.graceful, reboot: request.reboot, partitions: isPartial ? labels : undefined };
}

function changeService(context: HandlerContext, id: string, state: "Running" | "Finished"): string {
  const { node } = callerOf(context);
  if (!["kubelet", "cri", "etcd", "trustd", "udevd", "syslogd"].includes(id)) {
    throw permissionDenied(`service ${JSON.stringify(id)} doesn't support this operation via API`);
  }
  const verb = state === "Running" ? "started" : "stopped";
  if (!node.setService(id, state, `Service ${verb} via API`))
    throw unknownError(`service ${JSON.stringify(id)} not found`);
  return `Service ${JSON.stringify(id)} ${verb}`;
}

function timestamp(ms: number): Timestamp {
  return timestampFromMs(ms);
}

function lastChange(at: number | undefined): { lastChange?: Timestamp } {
  return at === undefined ? {} : { lastChange: timestamp(at) };
}
