/**
 * The resource types of a node that this package reads, each with its namespace and its record.
 * Names are Talos' (COSI resource definitions); everything here is readable in maintenance mode.
 */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import {
  DiskSpecSchema,
  SystemDiskSpecSchema,
  VolumeStatusSpecSchema,
} from "../gen/resource/block/block_pb.ts";
import { MemberSpecSchema } from "../gen/resource/cluster/cluster_pb.ts";
import { MachineTypeSpecSchema } from "../gen/resource/config/config_pb.ts";
import {
  MemoryModuleSpecSchema,
  ProcessorSpecSchema,
  SystemInformationSpecSchema,
} from "../gen/resource/hardware/hardware_pb.ts";
import { NodenameSpecSchema, NodeStatusSpecSchema } from "../gen/resource/k8s/k8s_pb.ts";
import {
  AddressStatusSpecSchema,
  HostnameStatusSpecSchema,
  LinkStatusSpecSchema,
  NodeAddressSpecSchema,
  RouteStatusSpecSchema,
} from "../gen/resource/network/network_pb.ts";
import {
  DiagnosticSpecSchema,
  MachineStatusSpecSchema,
  PlatformMetadataSpecSchema,
  SecurityStateSpecSchema,
  VersionSpecSchema,
} from "../gen/resource/runtime/runtime_pb.ts";
import { ServiceSpecSchema } from "../gen/resource/v1alpha1/v1alpha1_pb.ts";

/** A resource type with the record of its `spec`. */
export interface ResourceKind<D extends DescMessage = DescMessage> {
  readonly namespace: string;
  readonly type: string;
  readonly schema: D;
}

/** The record of a kind's `spec`. */
export type SpecOf<K> = K extends ResourceKind<infer D> ? MessageShape<D> : never;

const kind = <D extends DescMessage>(namespace: string, type: string, schema: D): ResourceKind<D> => ({
  namespace,
  type,
  schema,
});

/** Every kind this package knows. */
export const resourceKinds = {
  linkStatus: kind("network", "LinkStatuses.net.talos.dev", LinkStatusSpecSchema),
  addressStatus: kind("network", "AddressStatuses.net.talos.dev", AddressStatusSpecSchema),
  hostnameStatus: kind("network", "HostnameStatuses.net.talos.dev", HostnameStatusSpecSchema),
  nodeAddress: kind("network", "NodeAddresses.net.talos.dev", NodeAddressSpecSchema),
  routeStatus: kind("network", "RouteStatuses.net.talos.dev", RouteStatusSpecSchema),
  disk: kind("runtime", "Disks.block.talos.dev", DiskSpecSchema),
  systemDisk: kind("runtime", "SystemDisks.block.talos.dev", SystemDiskSpecSchema),
  volumeStatus: kind("runtime", "VolumeStatuses.block.talos.dev", VolumeStatusSpecSchema),
  systemInformation: kind("hardware", "SystemInformations.hardware.talos.dev", SystemInformationSpecSchema),
  processor: kind("hardware", "Processors.hardware.talos.dev", ProcessorSpecSchema),
  memoryModule: kind("hardware", "MemoryModules.hardware.talos.dev", MemoryModuleSpecSchema),
  machineStatus: kind("runtime", "MachineStatuses.runtime.talos.dev", MachineStatusSpecSchema),
  version: kind("runtime", "Versions.runtime.talos.dev", VersionSpecSchema),
  platformMetadata: kind("runtime", "PlatformMetadatas.talos.dev", PlatformMetadataSpecSchema),
  service: kind("runtime", "Services.v1alpha1.talos.dev", ServiceSpecSchema),
  securityState: kind("runtime", "SecurityStates.talos.dev", SecurityStateSpecSchema),
  diagnostic: kind("runtime", "Diagnostics.runtime.talos.dev", DiagnosticSpecSchema),
  machineType: kind("config", "MachineTypes.config.talos.dev", MachineTypeSpecSchema),
  nodename: kind("k8s", "Nodenames.kubernetes.talos.dev", NodenameSpecSchema),
  nodeStatus: kind("k8s", "NodeStatuses.kubernetes.talos.dev", NodeStatusSpecSchema),
  member: kind("cluster", "Members.cluster.talos.dev", MemberSpecSchema),
} as const;
