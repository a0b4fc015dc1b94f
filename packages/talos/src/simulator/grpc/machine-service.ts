/**
 * `machine.MachineService`: the calls of a simulated node. What is not here answers UNIMPLEMENTED.
 */
import { durationMs, timestampFromMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MachineService } from "../../gen/machine/machine_pb.ts";
import { generateTalosconfigFor, packKubeconfig } from "../client-files.ts";
import {
  alreadyExists,
  failedPrecondition,
  invalidArgument,
  notFound,
  permissionDenied,
  unimplemented,
  unknownError,
} from "../call-error.ts";
import { applyConfiguration } from "./apply-configuration.ts";
import { callerOf } from "./call-context.ts";
import { etcdCalls } from "./etcd-calls.ts";
import { eventMessage } from "./events.ts";
import { fileCalls } from "./file-calls.ts";
import {
  cpuInfo,
  diskStats,
  frequencies,
  loadAverage,
  memory,
  mounts,
  networkStats,
  systemStat,
} from "./machine-stats.ts";
import { controlPlaneOnly, minorOf, readable, refuseInOldMaintenance } from "./preconditions.ts";
import { programCalls } from "./program-calls.ts";
import { sequenceCalls } from "./sequence-calls.ts";

/** See the module's comment. */
export const machineService: Partial<ServiceImpl<typeof MachineService>> = {
  ...sequenceCalls,
  ...etcdCalls,
  ...fileCalls,
  ...programCalls,

  async applyConfiguration(request, context) {
    return { messages: [await applyConfiguration(request, callerOf(context))] };
  },

  async bootstrap(request, context) {
    const { node } = callerOf(context);
    if (!node.isCriUp) throw failedPrecondition("bootstrap is not available yet");
    controlPlaneOnly(node, "bootstrap");
    if (minorOf(node) >= 14 && node.config?.facts.etcdCa === undefined)
      throw invalidArgument("etcd is not configured, bootstrap is not possible");
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
  cPUFreqStats: (_request, context) => ({ messages: [frequencies(readable(context).spec)] }),
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

  serviceStart: ({ id }, context) => ({ messages: [{ resp: changeService(context, id, "start") }] }),
  serviceStop: ({ id }, context) => ({ messages: [{ resp: changeService(context, id, "stop") }] }),
  serviceRestart: ({ id }, context) => ({ messages: [{ resp: changeService(context, id, "restart") }] }),

  async *kubeconfig(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "kubeconfig");
    yield { bytes: await packKubeconfig(node) };
  },

  async generateClientConfiguration(request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "client configuration");
    if (request.crtTtl && durationMs(request.crtTtl) <= 0)
      throw invalidArgument("crt_ttl should be positive");
    const lifetime = request.crtTtl ? { validityMs: durationMs(request.crtTtl) } : {};
    return { messages: [await generateTalosconfigFor(node, request.roles, lifetime)] };
  },

  /** A greeting, the asked-for past, then what happens. */
  async *events({ tailEvents, tailId, tailSeconds, withActorId }, context) {
    const { node } = callerOf(context);
    // Before the greeting: who has it hears everything from now on.
    const happenings = node.events.watch({ count: tailEvents, afterId: tailId, seconds: tailSeconds });
    const end = (): void => node.events.unwatch(happenings);
    context.signal.addEventListener("abort", end, { once: true });
    try {
      yield {};
      for await (const event of happenings) {
        if (withActorId === "" || event.actorId === withActorId) yield eventMessage(event);
      }
    } finally {
      context.signal.removeEventListener("abort", end);
      end();
    }
  },

  async *dmesg({ follow, tail }, context) {
    const { journal } = readable(context);
    if (!tail) for (const line of journal.lines()) yield { bytes: Buffer.from(line) };
    if (!follow) return;
    const lines = journal.follow();
    const end = (): void => journal.unfollow(lines);
    context.signal.addEventListener("abort", end, { once: true });
    try {
      for await (const line of lines) yield { bytes: Buffer.from(line) };
    } finally {
      context.signal.removeEventListener("abort", end);
      end();
    }
  },

  async metaWrite({ key, value }, context) {
    const { node } = callerOf(context);
    await node.writeMeta(metaKey(key), Buffer.from(value).toString("latin1"));
    return { messages: [{}] };
  },

  async metaDelete({ key }, context) {
    const { node } = callerOf(context);
    const name = metaKey(key);
    if (node.record.meta?.[name] === undefined) throw notFound("meta key not found");
    await node.writeMeta(name, undefined);
    return { messages: [{}] };
  },
};

/** Keys that Talos keeps for itself: empty slots, upgrades, the encryption of STATE, the boot loader. */
const ownMetaKeys = new Set([0, 0x06, 0x07, 0x08, 0x09, 0x0e]);

function metaKey(key: number): string {
  if (key > 255) throw invalidArgument("key must be a uint8");
  if (ownMetaKeys.has(key)) throw permissionDenied("meta key is not writeable via the API");
  return String(key);
}

/** Services an administrator may start, stop and restart. */
const changeable: Readonly<Record<string, readonly string[]>> = {
  start: ["kubelet"],
  stop: ["kubelet"],
  restart: ["kubelet", "cri", "etcd", "trustd", "apid", "udevd"],
};

function changeService(context: HandlerContext, id: string, verb: "start" | "stop" | "restart"): string {
  const { node } = callerOf(context);
  const shown = JSON.stringify(id.slice(0, 200));
  if (!node.view().services.some((service) => service.id === id))
    throw unknownError(`service ${shown} is not defined`);
  if (changeable[verb]?.includes(id) !== true)
    throw unknownError(`service ${shown} doesn't support ${verb} operation via API`);
  const past = { start: "started", stop: "stopped", restart: "restarted" }[verb];
  node.setService(id, verb === "stop" ? "Finished" : "Running", `Service ${past} via API`);
  return `Service ${shown} ${past}`;
}

function timestamp(ms: number): Timestamp {
  return timestampFromMs(ms);
}

function lastChange(at: number | undefined): { lastChange?: Timestamp } {
  return at === undefined ? {} : { lastChange: timestamp(at) };
}
