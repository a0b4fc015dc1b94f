/**
 * The cells of volumes and storage classes.
 */
import type { JsonObject } from "@kontinuum/std";
import { at } from "@kontinuum/std";
import { has, isTrue, items, text, texts } from "../read.ts";
import type { CellTable } from "./cell.ts";

const unset = "<unset>";
const modes: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

/** Access modes, abbreviated and in their fixed order. */
function accessModes(list: readonly string[]): string {
  return Object.keys(modes)
    .filter((mode) => list.includes(mode))
    .map((mode) => modes[mode])
    .join(",");
}

const phase = (object: JsonObject): string =>
  has(object, "metadata", "deletionTimestamp") ? "Terminating" : text(object, "status", "phase");

function claim(volume: JsonObject): string {
  const name = text(volume, "spec", "claimRef", "name");
  return has(volume, "spec", "claimRef") ? `${text(volume, "spec", "claimRef", "namespace")}/${name}` : "";
}

const storageClass = (object: JsonObject): string =>
  text(object, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class") ||
  text(object, "spec", "storageClassName");

const attributesClass = (object: JsonObject): string =>
  text(object, "spec", "volumeAttributesClassName") || unset;
const volumeMode = (object: JsonObject): string => text(object, "spec", "volumeMode") || unset;
const bound = (object: JsonObject): boolean => text(object, "spec", "volumeName") !== "";

const isDefaultClass = (object: JsonObject): boolean =>
  ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"].some(
    (key) => text(object, "metadata", "annotations", key) === "true",
  );

function claimState(object: JsonObject): string {
  const states = [
    has(object, "metadata", "deletionTimestamp") ? "deleted" : "",
    has(object, "status", "allocation") ? "allocated" : "pending",
    items(object, "status", "reservedFor").length > 0 ? "reserved" : "",
  ];
  return states.filter((state) => state !== "").join(",");
}

/** Cells of storage kinds. */
export const storageCells: CellTable = {
  "v1/PersistentVolume": {
    Capacity: (object) => text(object, "spec", "capacity", "storage") || "0",
    "Access Modes": (object) => accessModes(texts(object, "spec", "accessModes")),
    "Reclaim Policy": (object) => text(object, "spec", "persistentVolumeReclaimPolicy"),
    Status: phase,
    Claim: claim,
    StorageClass: storageClass,
    VolumeAttributesClass: attributesClass,
    Reason: (object) => text(object, "status", "reason"),
    VolumeMode: volumeMode,
  },
  "v1/PersistentVolumeClaim": {
    Status: phase,
    Volume: (object) => text(object, "spec", "volumeName"),
    Capacity: (object) => (bound(object) ? text(object, "status", "capacity", "storage") || "0" : ""),
    "Access Modes": (object) => (bound(object) ? accessModes(texts(object, "status", "accessModes")) : ""),
    StorageClass: storageClass,
    VolumeAttributesClass: attributesClass,
    VolumeMode: volumeMode,
  },
  "storage.k8s.io/v1/StorageClass": {
    Name: (object) => `${text(object, "metadata", "name")}${isDefaultClass(object) ? " (default)" : ""}`,
    Provisioner: (object) => text(object, "provisioner"),
    ReclaimPolicy: (object) => text(object, "reclaimPolicy") || "Delete",
    VolumeBindingMode: (object) => text(object, "volumeBindingMode") || "Immediate",
    AllowVolumeExpansion: (object) => isTrue(object, "allowVolumeExpansion"),
  },
  "storage.k8s.io/v1/VolumeAttributesClass": { DriverName: (object) => text(object, "driverName") },
  "storage.k8s.io/v1/VolumeAttachment": {
    Attacher: (object) => text(object, "spec", "attacher"),
    PV: (object) => text(object, "spec", "source", "persistentVolumeName"),
    Node: (object) => text(object, "spec", "nodeName"),
    Attached: (object) => isTrue(object, "status", "attached"),
  },
  "storage.k8s.io/v1/CSINode": { Drivers: (object) => items(object, "spec", "drivers").length },
  "storage.k8s.io/v1/CSIDriver": {
    AttachRequired: (object) => at(object, "spec", "attachRequired") !== false,
    PodInfoOnMount: (object) => isTrue(object, "spec", "podInfoOnMount"),
    StorageCapacity: (object) => isTrue(object, "spec", "storageCapacity"),
  },
  "storage.k8s.io/v1/CSIStorageCapacity": {
    StorageClassName: (object) => text(object, "storageClassName"),
    Capacity: (object) => text(object, "capacity") || unset,
  },
  "resource.k8s.io/v1/ResourceClaim": { State: claimState },
  "resource.k8s.io/v1/ResourceSlice": {
    Node: (object) => text(object, "spec", "nodeName") || unset,
    Driver: (object) => text(object, "spec", "driver"),
    Pool: (object) => text(object, "spec", "pool", "name"),
  },
};
