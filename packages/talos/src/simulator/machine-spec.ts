/**
 * The hardware of a simulated machine: what its firmware, buses and cables would say.
 *
 * A machine made by {@link describeMachine} depends on its name and address alone, so the same rack has
 * the same serial numbers, addresses and UUIDs in every run.
 */
import { createHash } from "node:crypto";
import net from "node:net";
import { CodedError } from "@kontinuum/std";

/** A disk. */
export interface DiskSpec {
  /** Kernel name, such as `sda`. */
  readonly name: string;
  readonly sizeBytes: number;
  readonly model: string;
  readonly serial: string;
  /** `sata`, `nvme`, `virtio`, …; empty for devices that are no disks to install on. */
  readonly transport: string;
  readonly rotational?: boolean;
  readonly readonly?: boolean;
  readonly cdrom?: boolean;
}

/** A network link. The first one carries the machine's address. */
export interface LinkSpec {
  readonly name: string;
  /** `aa:bb:cc:dd:ee:ff`. */
  readonly mac: string;
  readonly driver: string;
  readonly speedMegabits: number;
  /** Addresses in CIDR form beside the machine's own. */
  readonly addresses?: readonly string[];
}

/** A machine in the rack. */
export interface MachineSpec {
  /** Unique in the rack; names its state and nothing else. */
  readonly name: string;
  /** Where it listens: an address of 127/8. */
  readonly address: string;
  /** SMBIOS system UUID. */
  readonly uuid: string;
  readonly serialNumber: string;
  readonly manufacturer: string;
  readonly productName: string;
  readonly memoryModulesMiB: readonly number[];
  readonly cpu: {
    readonly productName: string;
    readonly manufacturer: string;
    readonly cores: number;
    readonly sockets: number;
    readonly megahertz: number;
  };
  readonly disks: readonly DiskSpec[];
  readonly links: readonly LinkSpec[];
  /** Talos release it boots from its installation medium, such as `v1.13.0`. */
  readonly talosVersion: string;
}

/** What may be chosen of a described machine. */
export type MachineChoice = Pick<MachineSpec, "name" | "address"> & Partial<MachineSpec>;

/** The release a machine boots unless told otherwise. */
const defaultTalosVersion = "v1.13.0";

const gibibyte = 1024 ** 3;

/** A plausible machine; every field can be given. Fails with `invalid_argument` unless the address is in 127/8. */
export function describeMachine(choice: MachineChoice): MachineSpec {
  if (net.isIPv4(choice.address) === false || !choice.address.startsWith("127.")) {
    throw new CodedError(
      "invalid_argument",
      `simulated machine ${choice.name}: ${choice.address} is not an address of 127.0.0.0/8`,
    );
  }
  const seed = createHash("sha256").update(`${choice.name}\n${choice.address}`).digest();
  const hex = seed.toString("hex");
  const serial = hex.slice(0, 10).toUpperCase();
  return {
    uuid: uuidOf(seed),
    serialNumber: `SIM-${serial}`,
    manufacturer: "Simulated Systems",
    productName: "Simulated Node",
    memoryModulesMiB: [8192, 8192],
    cpu: {
      productName: "Simulated CPU",
      manufacturer: "Simulated Systems",
      cores: 8,
      sockets: 1,
      megahertz: 2400,
    },
    disks: [
      { name: "sda", sizeBytes: 256 * gibibyte, model: "SIM SSD", serial: `D0${serial}`, transport: "sata" },
      {
        name: "nvme0n1",
        sizeBytes: 1024 * gibibyte,
        model: "SIM NVMe",
        serial: `D1${serial}`,
        transport: "nvme",
      },
    ],
    links: [
      { name: "eth0", mac: macOf(seed, 0), driver: "simnet", speedMegabits: 10_000 },
      { name: "eth1", mac: macOf(seed, 1), driver: "simnet", speedMegabits: 10_000 },
    ],
    talosVersion: defaultTalosVersion,
    ...choice,
  };
}

/** `count` machines named `<prefix>-NNN` with consecutive addresses from `addressBase` on. */
export function describeMachines(options: {
  readonly count: number;
  /** First address. */
  readonly addressBase: string;
  readonly prefix?: string;
  readonly talosVersion?: string;
}): MachineSpec[] {
  const first = addressNumber(options.addressBase);
  return Array.from({ length: options.count }, (_, index) =>
    describeMachine({
      name: `${options.prefix ?? "node"}-${String(index + 1).padStart(3, "0")}`,
      address: addressText(first + index),
      ...(options.talosVersion === undefined ? {} : { talosVersion: options.talosVersion }),
    }),
  );
}

/** An IPv4 address as a number. */
export function addressNumber(address: string): number {
  if (!net.isIPv4(address)) {
    throw new CodedError("invalid_argument", `${JSON.stringify(address)} is not an IPv4 address`);
  }
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** The IPv4 address of a number. */
export function addressText(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}

function uuidOf(seed: Buffer): string {
  const bytes = Buffer.from(seed.subarray(0, 16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Locally administered, unicast. */
function macOf(seed: Buffer, index: number): string {
  const bytes = [
    0x02,
    seed[16] ?? 0,
    seed[17] ?? 0,
    seed[18] ?? 0,
    seed[19] ?? 0,
    ((seed[20] ?? 0) + index) % 256,
  ];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}
