/**
 * What a provider with a cluster behind it knows of storage there.
 */

/** How a class is provided; see {@link backendOf}. */
export type StorageBackend = "rook-ceph" | "longhorn" | "local-path" | "other";

/** A StorageClass, as the cluster has it. */
export interface ClusterStorageClass {
  readonly name: string;
  readonly provisioner: string;
  readonly default: boolean;
  readonly allowVolumeExpansion: boolean;
  readonly volumeBindingMode: string;
}

/** A VolumeSnapshotClass, as the cluster has it. */
export interface ClusterSnapshotClass {
  readonly name: string;
  readonly driver: string;
  readonly default: boolean;
}

/** The storage side of a cluster. */
export interface ClusterStorage {
  classes(signal: AbortSignal): Promise<readonly ClusterStorageClass[]>;
  snapshotClasses(signal: AbortSignal): Promise<readonly ClusterSnapshotClass[]>;
  /** Uses another default class from now on; empty: the cluster's. */
  useClass(name: string): void;
  /** Looks for images in another namespace from now on. */
  useImageNamespace(name: string): void;
  /** Where the cluster is, for settings. */
  readonly endpoint: string;
}

/** The backend of a provisioner. */
export function backendOf(provisioner: string): StorageBackend {
  if (/rook-ceph|rbd\.csi\.ceph\.com|cephfs\.csi\.ceph\.com/.test(provisioner)) return "rook-ceph";
  if (provisioner.includes("longhorn")) return "longhorn";
  if (provisioner.includes("local-path") || provisioner === "kubernetes.io/no-provisioner")
    return "local-path";
  return "other";
}
