/**
 * Resources of disks and what is on them: block devices, discovered volumes, the system's own volumes.
 */
import { resourceKinds, type ResourceKind } from "../client/resource-kind.ts";
import { DeviceSpecSchema, DiscoveredVolumeSpecSchema } from "../gen/resource/block/block_pb.ts";
import {
  BlockFilesystemType as Filesystem,
  BlockVolumePhase as Phase,
  BlockVolumeType as VolumeType,
} from "../gen/resource/enums/enums_pb.ts";
import type { NodeView } from "./node-view.ts";
import { describe, prettySize } from "./resource-descriptions.ts";
import type { ResourceDescription } from "./resource-store.ts";

const device = {
  namespace: "runtime",
  type: "BlockDevices.block.talos.dev",
  schema: DeviceSpecSchema,
} satisfies ResourceKind;
const discovered = {
  namespace: "runtime",
  type: "DiscoveredVolumes.block.talos.dev",
  schema: DiscoveredVolumeSpecSchema,
} satisfies ResourceKind;

/** Bytes of the small partitions; EPHEMERAL takes the rest. */
const partitionBytes = { efi: 2_202_009_600, meta: 1_048_576, state: 104_857_600 } as const;

interface Partition {
  readonly label: string;
  readonly number: number;
  readonly bytes: number;
  readonly filesystem: Filesystem;
  /** Whether it waits for a configuration before it is mounted. */
  readonly isData: boolean;
}

/** The partitions of an installed disk (Talos' layout on UEFI machines). */
function partitionsOf(diskBytes: number): Partition[] {
  const { efi, meta, state } = partitionBytes;
  const rest = diskBytes - efi - meta - state;
  return [
    { label: "EFI", number: 1, bytes: efi, filesystem: Filesystem.FILESYSTEM_TYPE_VFAT, isData: false },
    { label: "META", number: 2, bytes: meta, filesystem: Filesystem.FILESYSTEM_TYPE_NONE, isData: false },
    { label: "STATE", number: 3, bytes: state, filesystem: Filesystem.FILESYSTEM_TYPE_XFS, isData: true },
    { label: "EPHEMERAL", number: 4, bytes: rest, filesystem: Filesystem.FILESYSTEM_TYPE_XFS, isData: true },
  ];
}

const filesystemNames: Readonly<Record<number, string>> = {
  [Filesystem.FILESYSTEM_TYPE_VFAT]: "vfat",
  [Filesystem.FILESYSTEM_TYPE_XFS]: "xfs",
};

/** All of them. */
export function blockResources(view: NodeView): ResourceDescription[] {
  const { spec, systemDisk } = view;
  return spec.disks.flatMap((disk, index) => {
    const partitions = view.installed && disk.name === systemDisk ? partitionsOf(disk.sizeBytes) : [];
    return [
      blockDevice(disk.name, index * 16, undefined),
      discoveredDisk(disk.name, disk.sizeBytes, partitions.length > 0),
      ...partitions.flatMap((partition) => [
        blockDevice(disk.name, index * 16, partition),
        discoveredPartition(disk.name, partition),
      ]),
      ...(partitions.length === 0 ? [] : systemVolumes(view, disk.name, partitions)),
    ];
  });
}

/** `sda1`, `nvme0n1p1`. */
function partitionName(disk: string, { number }: Partition): string {
  return `${disk}${/\d$/.test(disk) ? "p" : ""}${number}`;
}

function blockDevice(disk: string, minor: number, partition: Partition | undefined): ResourceDescription {
  const id = partition ? partitionName(disk, partition) : disk;
  const spec = {
    type: partition ? "partition" : "disk",
    major: 8,
    minor: minor + (partition?.number ?? 0),
    generation: 1,
    devicePath: `/devices/simulated/${disk}${partition ? `/${id}` : ""}`,
    ...(partition ? { partitionName: partition.label, partitionNumber: partition.number, parent: disk } : {}),
  };
  const wire = {
    ...spec,
    major: BigInt(spec.major),
    minor: BigInt(spec.minor),
    generation: 1n,
    partitionNumber: BigInt(partition?.number ?? 0),
  };
  return describe(device, id, "block.DevicesController", wire, spec);
}

function discoveredDisk(disk: string, size: number, isPartitioned: boolean): ResourceDescription {
  const name = isPartitioned ? "gpt" : "";
  return describe(
    discovered,
    disk,
    "block.DiscoveryController",
    { type: "disk", devPath: `/dev/${disk}`, size: BigInt(size), prettySize: prettySize(size), name },
    { dev_path: `/dev/${disk}`, type: "disk", size, pretty_size: prettySize(size), name },
  );
}

function discoveredPartition(disk: string, partition: Partition): ResourceDescription {
  const id = partitionName(disk, partition);
  const { label, bytes, number, filesystem } = partition;
  const name = label === "META" ? "talosmeta" : (filesystemNames[filesystem] ?? "");
  return describe(
    discovered,
    id,
    "block.DiscoveryController",
    {
      type: "partition",
      devPath: `/dev/${id}`,
      parent: disk,
      parentDevPath: `/dev/${disk}`,
      size: BigInt(bytes),
      prettySize: prettySize(bytes),
      name,
      partitionLabel: label,
      partitionIndex: BigInt(number),
    },
    {
      dev_path: `/dev/${id}`,
      type: "partition",
      parent: disk,
      parent_dev_path: `/dev/${disk}`,
      size: bytes,
      pretty_size: prettySize(bytes),
      name,
      partition_label: label,
      partition_index: number,
    },
  );
}

function systemVolumes(
  { config }: NodeView,
  disk: string,
  partitions: readonly Partition[],
): ResourceDescription[] {
  const parentLocation = `/dev/${disk}`;
  const volumes = partitions
    .filter(({ label }) => label !== "EFI")
    .map((partition) => {
      const { label, bytes, number, filesystem, isData } = partition;
      const isReady = !isData || config !== undefined;
      const location = `/dev/${partitionName(disk, partition)}`;
      const shown = filesystemNames[filesystem];
      return describe(
        resourceKinds.volumeStatus,
        label,
        "block.VolumeManagerController",
        {
          phase: isReady ? Phase.VOLUME_PHASE_READY : Phase.VOLUME_PHASE_MISSING,
          type: VolumeType.VOLUME_TYPE_PARTITION,
          ...(isReady
            ? {
                location,
                parentLocation,
                partitionIndex: BigInt(number),
                size: BigInt(bytes),
                prettySize: prettySize(bytes),
                filesystem,
              }
            : {}),
        },
        isReady
          ? {
              phase: "ready",
              type: "partition",
              location,
              partitionIndex: number,
              parentLocation,
              size: bytes,
              prettySize: prettySize(bytes),
              ...(shown === undefined ? {} : { filesystem: shown }),
            }
          : { phase: "missing", type: "partition" },
      );
    });
  return [
    describe(
      resourceKinds.systemDisk,
      "system-disk",
      "block.SystemDiskController",
      { diskId: disk, devPath: parentLocation },
      { diskID: disk, devPath: parentLocation },
    ),
    ...volumes,
  ];
}
