/**
 * Resources that follow from the machine alone: links, addresses, disks, processors, memory, firmware.
 */
import { addressBytes } from "../client/addresses.ts";
import { resourceKinds } from "../client/resource-kind.ts";
import {
  NethelpersDuplex,
  NethelpersFamily,
  NethelpersLinkType,
  NethelpersOperationalState,
  NethelpersPort,
  NethelpersScope,
} from "../gen/resource/enums/enums_pb.ts";
import type { DiskSpec, LinkSpec, MachineSpec } from "./machine-spec.ts";
import { describe, hardwareAddressBytes, prettySize } from "./resource-descriptions.ts";
import type { ResourceDescription } from "./resource-store.ts";

/** Kernel flags: UP, BROADCAST, RUNNING, MULTICAST, LOWER_UP; and for the loopback LOOPBACK instead. */
const upFlags = 0x1 | 0x2 | 0x40 | 0x1000 | 0x10000;
const loopbackFlags = 0x1 | 0x8 | 0x40 | 0x10000;
/** The kernel's `permanent` flag of an address. */
const permanent = 128;

/** All of them. */
export function hardwareResources(spec: MachineSpec): ResourceDescription[] {
  return [
    loopback(),
    ...spec.links.map((link, index) => linkStatus(link, index + 2)),
    ...addressStatuses(spec),
    ...spec.disks.map(disk),
    systemInformation(spec),
    ...processors(spec),
    ...memoryModules(spec),
  ];
}

/** An address on a link, in CIDR form. */
export interface LinkAddress {
  readonly link: string;
  readonly index: number;
  readonly address: string;
  readonly prefixLength: number;
}

/** Every address of a machine; its own comes first on its first link. */
export function linkAddresses(spec: MachineSpec): LinkAddress[] {
  const onLinks = spec.links.flatMap((link, position) => {
    const own = position === 0 ? [`${spec.address}/16`] : [];
    return [...own, linkLocal(link.mac), ...(link.addresses ?? [])].map((cidr) => ({
      link: link.name,
      index: position + 2,
      cidr,
    }));
  });
  const all = [
    { link: "lo", index: 1, cidr: "127.0.0.1/8" },
    { link: "lo", index: 1, cidr: "::1/128" },
    ...onLinks,
  ];
  return all.map(({ cidr, ...rest }) => {
    const [address = "", length = "0"] = cidr.split("/");
    return { ...rest, address, prefixLength: Number(length) };
  });
}

/** The link-local address that follows from a hardware address (RFC 4291, modified EUI-64). */
function linkLocal(mac: string): string {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = hardwareAddressBytes(mac);
  const group = (high: number, low: number): string => ((high << 8) | low).toString(16);
  return `fe80::${group(a ^ 2, b)}:${group(c, 0xff)}:${group(0xfe, d)}:${group(e, f)}/64`;
}

function loopback(): ResourceDescription {
  return describe(
    resourceKinds.linkStatus,
    "lo",
    "network.LinkStatusController",
    {
      index: 1,
      type: NethelpersLinkType.LINK_LOOPBCK,
      flags: loopbackFlags,
      hardwareAddr: new Uint8Array(6),
      mtu: 65536,
      queueDisc: "noqueue",
      operationalState: NethelpersOperationalState.OPER_STATE_UNKNOWN,
      linkState: true,
    },
    {
      index: 1,
      type: "loopback",
      flags: "UP,LOOPBACK,RUNNING,LOWER_UP",
      mtu: 65536,
      queueDisc: "noqueue",
      operationalState: "unknown",
      linkState: true,
    },
  );
}

function linkStatus(link: LinkSpec, index: number): ResourceDescription {
  const busPath = `0000:00:0${index}.0`;
  const mac = hardwareAddressBytes(link.mac);
  return describe(
    resourceKinds.linkStatus,
    link.name,
    "network.LinkStatusController",
    {
      index,
      type: NethelpersLinkType.LINK_ETHER,
      flags: upFlags,
      hardwareAddr: mac,
      permanentAddr: mac,
      broadcastAddr: new Uint8Array(6).fill(0xff),
      mtu: 1500,
      queueDisc: "mq",
      operationalState: NethelpersOperationalState.OPER_STATE_UP,
      busPath,
      driver: link.driver,
      vendor: "Simulated Systems",
      product: "Simulated Ethernet",
      linkState: true,
      speedMegabits: BigInt(link.speedMegabits),
      port: NethelpersPort.TWISTED_PAIR,
      duplex: NethelpersDuplex.FULL,
    },
    {
      index,
      type: "ether",
      linkIndex: 0,
      flags: "UP,BROADCAST,RUNNING,MULTICAST,LOWER_UP",
      hardwareAddr: link.mac,
      permanentAddr: link.mac,
      broadcastAddr: "ff:ff:ff:ff:ff:ff",
      mtu: 1500,
      queueDisc: "mq",
      operationalState: "up",
      kind: "",
      slaveKind: "",
      busPath,
      driver: link.driver,
      linkState: true,
      speedMbit: link.speedMegabits,
      port: "TwistedPair",
      duplex: "Full",
    },
  );
}

function addressStatuses(spec: MachineSpec): ResourceDescription[] {
  return linkAddresses(spec).map(({ link, index, address, prefixLength }) => {
    const ip = addressBytes(address) ?? new Uint8Array();
    const isV6 = address.includes(":");
    const scope = link === "lo" ? "host" : address.startsWith("fe80") ? "link" : "global";
    const cidr = `${address}/${prefixLength}`;
    return describe(
      resourceKinds.addressStatus,
      `${link}/${cidr}`,
      "network.AddressStatusController",
      {
        address: { ip, prefixLength },
        ...(isV6 ? {} : { local: { ip } }),
        linkIndex: index,
        linkName: link,
        family: isV6 ? NethelpersFamily.FAMILY_INET6 : NethelpersFamily.FAMILY_INET4,
        scope: scopes[scope],
        flags: permanent,
      },
      {
        address: cidr,
        ...(isV6 ? {} : { local: address }),
        linkIndex: index,
        linkName: link,
        family: isV6 ? "inet6" : "inet4",
        scope,
        flags: "permanent",
      },
    );
  });
}

const scopes = {
  global: NethelpersScope.SCOPE_GLOBAL,
  link: NethelpersScope.SCOPE_LINK,
  host: NethelpersScope.SCOPE_HOST,
} as const;

function disk(spec: DiskSpec, index: number): ResourceDescription {
  const devPath = `/dev/${spec.name}`;
  const busPath = `/pci0000:00/0000:00:1f.${index}/${spec.name}`;
  const wwid = `sim.${spec.serial}`;
  const flags = { readonly: spec.readonly ?? false, cdrom: spec.cdrom ?? false };
  return describe(
    resourceKinds.disk,
    spec.name,
    "block.DisksController",
    {
      size: BigInt(spec.sizeBytes),
      ioSize: 512n,
      sectorSize: 512n,
      ...flags,
      model: spec.model,
      serial: spec.serial,
      wwid,
      busPath,
      subSystem: "/sys/class/block",
      transport: spec.transport,
      rotational: spec.rotational ?? false,
      devPath,
      prettySize: prettySize(spec.sizeBytes),
      symlinks: [`/dev/disk/by-id/${spec.transport || "sim"}-${spec.serial}`],
    },
    {
      dev_path: devPath,
      size: spec.sizeBytes,
      pretty_size: prettySize(spec.sizeBytes),
      io_size: 512,
      sector_size: 512,
      ...flags,
      model: spec.model,
      serial: spec.serial,
      wwid,
      bus_path: busPath,
      sub_system: "/sys/class/block",
      transport: spec.transport,
      ...(spec.rotational === true ? { rotational: true } : {}),
    },
  );
}

function systemInformation(spec: MachineSpec): ResourceDescription {
  const common = { manufacturer: spec.manufacturer, version: "1.0", uuid: spec.uuid };
  return describe(
    resourceKinds.systemInformation,
    "systeminformation",
    "hardware.SystemInfoController",
    {
      ...common,
      productName: spec.productName,
      serialNumber: spec.serialNumber,
      wakeUpType: "Power Switch",
      skuNumber: "SIM",
    },
    {
      ...common,
      productName: spec.productName,
      serialnumber: spec.serialNumber,
      wakeUpType: "Power Switch",
      skuNumber: "SIM",
    },
  );
}

function processors({ cpu }: MachineSpec): ResourceDescription[] {
  return Array.from({ length: cpu.sockets }, (_, index) => {
    const socket = `CPU ${index}`;
    return describe(
      resourceKinds.processor,
      `CPU-${index}`,
      "hardware.SystemInfoController",
      {
        socket,
        manufacturer: cpu.manufacturer,
        productName: cpu.productName,
        maxSpeed: cpu.megahertz,
        bootSpeed: cpu.megahertz,
        status: 65,
        coreCount: cpu.cores,
        coreEnabled: cpu.cores,
        threadCount: cpu.cores * 2,
      },
      {
        socket,
        manufacturer: cpu.manufacturer,
        productName: cpu.productName,
        maxSpeedMhz: cpu.megahertz,
        bootSpeedMhz: cpu.megahertz,
        status: 65,
        coreCount: cpu.cores,
        coreEnabled: cpu.cores,
        threadCount: cpu.cores * 2,
      },
    );
  });
}

function memoryModules({ memoryModulesMiB, serialNumber }: MachineSpec): ResourceDescription[] {
  return memoryModulesMiB.map((size, index) => {
    const fields = {
      deviceLocator: `DIMM ${index}`,
      bankLocator: `BANK ${index}`,
      speed: 3200,
      manufacturer: "Simulated Systems",
      productName: "Simulated Memory",
    };
    const serial = `${serialNumber}-M${index}`;
    return describe(
      resourceKinds.memoryModule,
      `DIMM-${index}-BANK-${index}`,
      "hardware.SystemInfoController",
      { size, ...fields, serialNumber: serial },
      { sizeMiB: size, ...fields, speedMT: 3200, serialNumber: serial },
    );
  });
}
