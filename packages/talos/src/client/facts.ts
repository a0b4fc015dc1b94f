/**
 * What a node says of itself, in plain values: links, addresses, disks, system information, memory,
 * processors. Read from its resources; nothing here asks the network.
 */
import {
  MachineType,
  NethelpersFamily,
  NethelpersLinkType,
  NethelpersOperationalState,
  NethelpersScope,
  RuntimeMachineStage,
} from "../gen/resource/enums/enums_pb.ts";
import { addressText, hardwareAddressText } from "./addresses.ts";
import type { resourceKinds, SpecOf } from "./resource-kind.ts";
import type { NodeResource } from "./state-reader.ts";

type Resource<K extends keyof typeof resourceKinds> = NodeResource<SpecOf<(typeof resourceKinds)[K]>>;

/** A network link. */
export interface LinkFact {
  readonly name: string;
  readonly index: number;
  /** `ether`, `loopback`, or the ARP hardware type as a number. */
  readonly type: string;
  /** Kernel kind of a virtual link (`bond`, `vlan`, `bridge`, …); empty for hardware. */
  readonly kind: string;
  /** `aa:bb:cc:dd:ee:ff`; empty when the link has none. */
  readonly mac: string;
  readonly permanentMac: string;
  readonly mtu: number;
  readonly up: boolean;
  readonly busPath: string;
  readonly driver: string;
  readonly vendor: string;
  readonly product: string;
  /** Megabits a second; 0 when unknown. */
  readonly speedMegabits: number;
}

/** An address on a link. */
export interface AddressFact {
  readonly link: string;
  readonly address: string;
  readonly prefixLength: number;
  /** `address/prefix`. */
  readonly cidr: string;
  readonly family: 4 | 6;
  readonly scope: "global" | "site" | "link" | "host" | "nowhere";
}

/** A disk. */
export interface DiskFact {
  /** Kernel name, such as `sda`. */
  readonly name: string;
  readonly devicePath: string;
  readonly sizeBytes: number;
  readonly model: string;
  readonly serial: string;
  readonly wwid: string;
  readonly uuid: string;
  /** `nvme`, `sata`, `virtio`, …; empty for devices without one. */
  readonly transport: string;
  readonly rotational: boolean;
  readonly readonly: boolean;
  readonly cdrom: boolean;
  readonly busPath: string;
  readonly symlinks: readonly string[];
}

/** What SMBIOS says of the machine. */
export interface SystemInformationFact {
  readonly manufacturer: string;
  readonly productName: string;
  readonly version: string;
  readonly serialNumber: string;
  /** SMBIOS system UUID, lower case. */
  readonly uuid: string;
  readonly skuNumber: string;
}

/** Installed memory. */
export interface MemoryFact {
  readonly totalBytes: number;
  readonly modules: readonly {
    readonly slot: string;
    readonly sizeBytes: number;
    readonly manufacturer: string;
    readonly serialNumber: string;
    /** Megatransfers a second. */
    readonly speed: number;
  }[];
}

/** A processor socket. */
export interface CpuFact {
  readonly socket: string;
  readonly manufacturer: string;
  readonly productName: string;
  readonly coreCount: number;
  readonly threadCount: number;
  readonly maxSpeedMegahertz: number;
}

/** Where a node is in its life (Talos `MachineStatus`). */
export interface MachineStatusFact {
  readonly stage:
    | "unknown"
    | "booting"
    | "installing"
    | "maintenance"
    | "running"
    | "rebooting"
    | "shutting down"
    | "resetting"
    | "upgrading";
  readonly ready: boolean;
  readonly unmetConditions: readonly { readonly name: string; readonly reason: string }[];
}

/** A link from its resource. */
export function linkFact({ id, spec }: Resource<"linkStatus">): LinkFact {
  return {
    name: id,
    index: spec.index,
    type: linkTypes.get(spec.type) ?? String(spec.type),
    kind: spec.kind,
    mac: hardwareAddressText(spec.hardwareAddr),
    permanentMac: hardwareAddressText(spec.permanentAddr),
    mtu: spec.mtu,
    // The loopback reports `unknown` although it is up.
    up: spec.operationalState === NethelpersOperationalState.OPER_STATE_UP || (spec.flags & 1) === 1,
    busPath: spec.busPath,
    driver: spec.driver,
    vendor: spec.vendor,
    product: spec.product,
    speedMegabits: Number(spec.speedMegabits),
  };
}

const linkTypes: ReadonlyMap<NethelpersLinkType, string> = new Map([
  [NethelpersLinkType.LINK_ETHER, "ether"],
  [NethelpersLinkType.LINK_LOOPBCK, "loopback"],
  [NethelpersLinkType.LINK_NONE, "none"],
]);

/** An address from its resource; `undefined` when the bytes are no address. */
export function addressFact({ spec }: Resource<"addressStatus">): AddressFact | undefined {
  const address = spec.address && addressText(spec.address.ip);
  if (!spec.address || !address) return undefined;
  return {
    link: spec.linkName,
    address,
    prefixLength: spec.address.prefixLength,
    cidr: `${address}/${spec.address.prefixLength}`,
    family: spec.family === NethelpersFamily.FAMILY_INET6 || address.includes(":") ? 6 : 4,
    scope: scopes.get(spec.scope) ?? "nowhere",
  };
}

const scopes: ReadonlyMap<NethelpersScope, AddressFact["scope"]> = new Map([
  [NethelpersScope.SCOPE_GLOBAL, "global"],
  [NethelpersScope.SCOPE_SITE, "site"],
  [NethelpersScope.SCOPE_LINK, "link"],
  [NethelpersScope.SCOPE_HOST, "host"],
]);

/** A disk from its resource. */
export function diskFact({ id, spec }: Resource<"disk">): DiskFact {
  return {
    name: id,
    devicePath: spec.devPath,
    sizeBytes: Number(spec.size),
    model: spec.model,
    serial: spec.serial,
    wwid: spec.wwid,
    uuid: spec.uuid,
    transport: spec.transport,
    rotational: spec.rotational,
    readonly: spec.readonly,
    cdrom: spec.cdrom,
    busPath: spec.busPath,
    symlinks: [...spec.symlinks],
  };
}

/** System information from its resource. */
export function systemInformationFact({ spec }: Resource<"systemInformation">): SystemInformationFact {
  return {
    manufacturer: spec.manufacturer,
    productName: spec.productName,
    version: spec.version,
    serialNumber: spec.serialNumber,
    uuid: spec.uuid.toLowerCase(),
    skuNumber: spec.skuNumber,
  };
}

/** Memory from its modules' resources. SMBIOS sizes are MiB. */
export function memoryFact(modules: readonly Resource<"memoryModule">[]): MemoryFact {
  const found = modules
    .filter(({ spec }) => spec.size > 0)
    .map(({ id, spec }) => ({
      slot: id,
      sizeBytes: spec.size * 1024 * 1024,
      manufacturer: spec.manufacturer,
      serialNumber: spec.serialNumber,
      speed: spec.speed,
    }));
  return { totalBytes: found.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0), modules: found };
}

/** A processor from its resource. */
export function cpuFact({ id, spec }: Resource<"processor">): CpuFact {
  return {
    socket: spec.socket || id,
    manufacturer: spec.manufacturer,
    productName: spec.productName,
    coreCount: spec.coreCount,
    threadCount: spec.threadCount,
    maxSpeedMegahertz: spec.maxSpeed,
  };
}

const stages: ReadonlyMap<RuntimeMachineStage, MachineStatusFact["stage"]> = new Map([
  [RuntimeMachineStage.MACHINE_STAGE_BOOTING, "booting"],
  [RuntimeMachineStage.MACHINE_STAGE_INSTALLING, "installing"],
  [RuntimeMachineStage.MACHINE_STAGE_MAINTENANCE, "maintenance"],
  [RuntimeMachineStage.MACHINE_STAGE_RUNNING, "running"],
  [RuntimeMachineStage.MACHINE_STAGE_REBOOTING, "rebooting"],
  [RuntimeMachineStage.MACHINE_STAGE_SHUTTING_DOWN, "shutting down"],
  [RuntimeMachineStage.MACHINE_STAGE_RESETTING, "resetting"],
  [RuntimeMachineStage.MACHINE_STAGE_UPGRADING, "upgrading"],
]);

/** The machine's stage from its resource. */
export function machineStatusFact({ spec }: Resource<"machineStatus">): MachineStatusFact {
  return {
    stage: stages.get(spec.stage) ?? "unknown",
    ready: spec.status?.ready ?? false,
    unmetConditions: (spec.status?.unmetConditions ?? []).map(({ name, reason }) => ({ name, reason })),
  };
}

/** The configured role; `unknown` in maintenance mode. */
export function machineTypeText(type: MachineType): "unknown" | "controlplane" | "worker" {
  if (type === MachineType.TYPE_WORKER) return "worker";
  return type === MachineType.TYPE_UNKNOWN ? "unknown" : "controlplane";
}
