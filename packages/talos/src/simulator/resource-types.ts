/**
 * Which resource types a node knows, and who may read them (Talos resource definitions and policy).
 */

/** Types everybody may read, by namespace. Their names are the wire's. */
const open: Readonly<Record<string, readonly string[]>> = {
  meta: ["Namespaces.meta.cosi.dev", "ResourceDefinitions.meta.cosi.dev"],
  network: [
    "LinkStatuses.net.talos.dev",
    "AddressStatuses.net.talos.dev",
    "HostnameStatuses.net.talos.dev",
    "NodeAddresses.net.talos.dev",
    "NetworkStatuses.net.talos.dev",
    "ResolverStatuses.net.talos.dev",
    "RouteStatuses.net.talos.dev",
  ],
  runtime: [
    "Disks.block.talos.dev",
    "BlockDevices.block.talos.dev",
    "SystemDisks.block.talos.dev",
    "VolumeStatuses.block.talos.dev",
    "MachineStatuses.runtime.talos.dev",
    "Versions.runtime.talos.dev",
    "PlatformMetadatas.talos.dev",
    "Services.v1alpha1.talos.dev",
    "SecurityStates.talos.dev",
    "Diagnostics.runtime.talos.dev",
  ],
  hardware: [
    "SystemInformations.hardware.talos.dev",
    "Processors.hardware.talos.dev",
    "MemoryModules.hardware.talos.dev",
  ],
  config: ["MachineTypes.config.talos.dev"],
  k8s: [
    "Nodenames.kubernetes.talos.dev",
    "NodeStatuses.kubernetes.talos.dev",
    "StaticPodStatuses.kubernetes.talos.dev",
  ],
  etcd: ["EtcdMembers.etcd.talos.dev"],
  cluster: ["Members.cluster.talos.dev"],
};

/** Types only an admin may read. */
const sensitive = [
  "MachineConfigs.config.talos.dev",
  "LinkSpecs.net.talos.dev",
  "OperatorSpecs.net.talos.dev",
  "VolumeConfigs.block.talos.dev",
  "KubeletSpecs.kubernetes.talos.dev",
  "APIServerConfigs.kubernetes.talos.dev",
  "SiderolinkConfigs.siderolink.talos.dev",
  "OSRootSecrets.secrets.talos.dev",
  "KubernetesRootSecrets.secrets.talos.dev",
  "EtcdRootSecrets.secrets.talos.dev",
  "APICertificates.secrets.talos.dev",
  "TrustdCertificates.secrets.talos.dev",
];

/** Namespaces there are. */
export const namespaceNames: readonly string[] = [...Object.keys(open), "secrets", "files", "perf"];

/** Every known type with the namespace it is usually in and whether it is sensitive. */
export const resourceTypes: readonly {
  readonly type: string;
  readonly namespace: string;
  readonly isSensitive: boolean;
}[] = [
  ...Object.entries(open).flatMap(([namespace, types]) =>
    types.map((type) => ({ type, namespace, isSensitive: false })),
  ),
  ...sensitive.map((type) => ({
    type,
    namespace: type.includes(".secrets.") ? "secrets" : "config",
    isSensitive: true,
  })),
];

const byLowerName = new Map(resourceTypes.map((entry) => [entry.type.toLowerCase(), entry]));

/** `open`, `sensitive`, or `undefined` for a type nobody knows. The policy ignores case, the data does not. */
export function sensitivityOf(type: string): "open" | "sensitive" | undefined {
  const entry = byLowerName.get(type.toLowerCase());
  if (!entry) return undefined;
  return entry.isSensitive ? "sensitive" : "open";
}
