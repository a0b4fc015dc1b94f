/**
 * The objects a set-up makes itself: classes, and for Rook a Ceph cluster and its pool.
 *
 * Sources: Rook documentation (CephCluster and CephBlockPool CRDs, RBD StorageClass and snapshot class), Longhorn
 * documentation (StorageClass parameters, CSI snapshot support).
 */
import type { KubeObject } from "../cluster/kubernetes.ts";
import type { SetupRequest } from "./record.ts";

const rookNamespace = "rook-ceph";
const rookPool = "replicapool";
/** Ceph's image, unless the manifests say another. */
const cephImage = "quay.io/ceph/ceph:v19.2.3";

/** The class a set-up ends with, and the driver behind it. */
export const classOf = {
  longhorn: { name: "longhorn", driver: "driver.longhorn.io" },
  "rook-ceph": { name: "rook-ceph-block", driver: `${rookNamespace}.rbd.csi.ceph.com` },
} as const;

/** Where Rook's cluster and pool are found. */
export const rookPaths = {
  clusters: `/apis/ceph.rook.io/v1/namespaces/${rookNamespace}/cephclusters`,
  pool: `/apis/ceph.rook.io/v1/namespaces/${rookNamespace}/cephblockpools/${rookPool}`,
} as const;

/** The StorageClass of a backend. */
export function storageClass(backend: SetupRequest["backend"]): KubeObject {
  const { name, driver } = classOf[backend];
  const secrets = ["provisioner", "controller-expand", "controller-publish", "node-stage"].flatMap((use) => [
    [
      `csi.storage.k8s.io/${use}-secret-name`,
      use === "node-stage" ? "rook-csi-rbd-node" : "rook-csi-rbd-provisioner",
    ],
    [`csi.storage.k8s.io/${use}-secret-namespace`, rookNamespace],
  ]);
  const parameters: Record<string, string> =
    backend === "longhorn"
      ? { numberOfReplicas: "1", staleReplicaTimeout: "30", fsType: "ext4" }
      : {
          clusterID: rookNamespace,
          pool: rookPool,
          imageFormat: "2",
          imageFeatures: "layering",
          "csi.storage.k8s.io/fstype": "ext4",
          ...Object.fromEntries(secrets),
        };
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name },
    provisioner: driver,
    allowVolumeExpansion: true,
    reclaimPolicy: "Delete",
    volumeBindingMode: "Immediate",
    parameters,
  };
}

/** The VolumeSnapshotClass of a backend. */
export function snapshotClass(backend: SetupRequest["backend"]): KubeObject {
  const { name, driver } = classOf[backend];
  return {
    apiVersion: "snapshot.storage.k8s.io/v1",
    kind: "VolumeSnapshotClass",
    metadata: { name },
    driver,
    deletionPolicy: "Delete",
    parameters:
      backend === "longhorn"
        ? { type: "snap" }
        : {
            clusterID: rookNamespace,
            "csi.storage.k8s.io/snapshotter-secret-name": "rook-csi-rbd-provisioner",
            "csi.storage.k8s.io/snapshotter-secret-namespace": rookNamespace,
          },
  };
}

/** Copies of every block: three across hosts where there are three, otherwise one. */
function copies(mode: SetupRequest["rookMode"]): number {
  return mode === "devices" ? 3 : 1;
}

/** Rook's Ceph cluster for a mode. It takes empty disks only; `wipeDevice` lets it take those of a former Ceph. */
export function cephCluster({ rookMode, device, wipeDevice }: SetupRequest, image = cephImage): KubeObject {
  const several = rookMode === "devices";
  return {
    apiVersion: "ceph.rook.io/v1",
    kind: "CephCluster",
    metadata: { name: rookNamespace, namespace: rookNamespace },
    spec: {
      cephVersion: { image },
      dataDirHostPath: "/var/lib/rook",
      mon: { count: several ? 3 : 1, allowMultiplePerNode: !several },
      mgr: { count: several ? 2 : 1, allowMultiplePerNode: !several },
      dashboard: { enabled: false },
      storage:
        rookMode === "device"
          ? { useAllNodes: true, useAllDevices: false, devices: [{ name: device ?? "" }] }
          : { useAllNodes: true, useAllDevices: true },
      ...(wipeDevice ? { cleanupPolicy: { wipeDevicesFromOtherClusters: true } } : {}),
    },
  };
}

/** The pool machines' disks come from. */
export function cephPool(mode: SetupRequest["rookMode"]): KubeObject {
  const size = copies(mode);
  return {
    apiVersion: "ceph.rook.io/v1",
    kind: "CephBlockPool",
    metadata: { name: rookPool, namespace: rookNamespace },
    spec: {
      failureDomain: size > 1 ? "host" : "osd",
      replicated: { size, requireSafeReplicaSize: size > 1 },
    },
  };
}
