/**
 * Numbers a node reports of itself. They follow from the machine and its uptime: an idle machine.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CPUsFreqStatsSchema,
  CPUsInfoSchema,
  DiskStatsSchema,
  LoadAvgSchema,
  MemorySchema,
  MountsSchema,
  NetworkDeviceStatsSchema,
  SystemStatSchema,
} from "../../gen/machine/machine_pb.ts";
import type { MachineSpec } from "../machine-spec.ts";
import type { SimulatedNode } from "../node.ts";

/** `/proc/meminfo` of the machine, in kilobytes. */
export function memory(spec: MachineSpec): MessageInitShape<typeof MemorySchema> {
  const total = BigInt(spec.memoryModulesMiB.reduce((sum, size) => sum + size, 0)) * 1024n;
  const used = 1_500_000n < total ? 1_500_000n : total / 2n;
  const cached = total / 20n;
  return {
    meminfo: {
      memtotal: total,
      memfree: total - used - cached,
      memavailable: total - used,
      buffers: 10_000n,
      cached,
      active: used,
      swaptotal: 0n,
      swapfree: 0n,
      commitlimit: total / 2n,
      committedas: used,
    },
  };
}

/** One entry per hardware thread. */
export function cpuInfo({ cpu }: MachineSpec): MessageInitShape<typeof CPUsInfoSchema> {
  const threads = cpu.cores * 2;
  return {
    cpuInfo: Array.from({ length: threads * cpu.sockets }, (_, processor) => ({
      processor,
      vendorId: "Simulated",
      cpuFamily: "6",
      model: "1",
      modelName: cpu.productName,
      stepping: "1",
      cpuMhz: cpu.megahertz,
      physicalId: String(Math.floor(processor / threads)),
      coreId: String(processor % cpu.cores),
      siblings: threads,
      cpuCores: cpu.cores,
      cacheSize: "32768 KB",
    })),
  };
}

/** One entry per hardware thread; frequencies in kilohertz. */
export function frequencies({ cpu }: MachineSpec): MessageInitShape<typeof CPUsFreqStatsSchema> {
  const one = {
    currentFrequency: BigInt(cpu.megahertz) * 1000n,
    minimumFrequency: 800_000n,
    maximumFrequency: BigInt(cpu.megahertz) * 1000n,
    governor: "performance",
  };
  return { cpuFreqStats: Array.from({ length: cpu.cores * 2 * cpu.sockets }, () => one) };
}

function upSeconds(node: SimulatedNode): number {
  return Math.max(0, (node.edges.clock.now() - node.bootTime) / 1000);
}

/** `/proc/stat`. */
export function systemStat(node: SimulatedNode): MessageInitShape<typeof SystemStatSchema> {
  const seconds = upSeconds(node);
  const threads = node.spec.cpu.cores * 2 * node.spec.cpu.sockets;
  const one = { user: seconds * 0.02, system: seconds * 0.01, idle: seconds * 0.97 };
  return {
    bootTime: BigInt(Math.floor(node.bootTime / 1000)),
    cpuTotal: { user: one.user * threads, system: one.system * threads, idle: one.idle * threads },
    cpu: Array.from({ length: threads }, () => one),
    contextSwitches: BigInt(Math.floor(seconds * 1000)),
    processCreated: BigInt(Math.floor(seconds)),
    processRunning: 1n,
  };
}

/** Rises to the load of an idle node after boot. */
export function loadAverage(node: SimulatedNode): MessageInitShape<typeof LoadAvgSchema> {
  const seconds = upSeconds(node);
  const towards = (window: number): number => 0.3 * (1 - Math.exp(-seconds / window));
  return { load1: towards(60), load5: towards(300), load15: towards(900) };
}

/** Mounted filesystems: the data partition once the node runs from its disk. */
export function mounts(node: SimulatedNode): MessageInitShape<typeof MountsSchema> {
  const root = { filesystem: "overlay", size: 67_108_864n, available: 0n, mountedOn: "/" };
  if (!node.config || !node.record.installed) return { stats: [root] };
  const size = BigInt(node.spec.disks.find(({ name }) => name === node.view().systemDisk)?.sizeBytes ?? 0);
  return {
    stats: [
      root,
      {
        filesystem: "/dev/disk/by-partlabel/EPHEMERAL",
        size,
        available: (size * 9n) / 10n,
        mountedOn: "/var",
      },
    ],
  };
}

/** Counters of the disks: an idle machine. */
export function diskStats(spec: MachineSpec): MessageInitShape<typeof DiskStatsSchema> {
  return { total: { name: "" }, devices: spec.disks.map(({ name }) => ({ name })) };
}

/** Counters of the links: an idle machine. */
export function networkStats(spec: MachineSpec): MessageInitShape<typeof NetworkDeviceStatsSchema> {
  return { total: { name: "" }, devices: [{ name: "lo" }, ...spec.links.map(({ name }) => ({ name }))] };
}
