/**
 * The storage side of a connected cluster: its StorageClasses and VolumeSnapshotClasses.
 *
 * Source: Kubernetes storage.k8s.io/v1 and the CSI snapshot API, snapshot.storage.k8s.io/v1.
 */
import { at, stringAt } from "@kontinuum/std";
import type {
  ClusterSnapshotClass,
  ClusterStorage,
  ClusterStorageClass,
} from "../storage-inventory/contract.ts";
import type { Kubernetes } from "./kubernetes.ts";

/** Annotations that mark the default class, newest first. */
export const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class";
const oldDefaultClassAnnotation = "storageclass.beta.kubernetes.io/is-default-class";
const defaultSnapshotAnnotation = "snapshot.storage.kubernetes.io/is-default-class";

/** Reads the storage of a cluster. A provider that puts machines on it is told of choices by other means. */
export class KubernetesStorage implements ClusterStorage {
  readonly endpoint: string;
  readonly #api: Kubernetes;

  constructor(api: Kubernetes) {
    this.#api = api;
    this.endpoint = api.endpoint;
  }

  async classes(signal: AbortSignal): Promise<readonly ClusterStorageClass[]> {
    const items = await this.#api.list("/apis/storage.k8s.io/v1/storageclasses?limit=500", signal);
    return items.flatMap((item) => {
      const name = stringAt(item, "metadata", "name");
      if (!name) return [];
      return [
        {
          name,
          provisioner: stringAt(item, "provisioner") ?? "",
          default: marked(item, defaultClassAnnotation) || marked(item, oldDefaultClassAnnotation),
          allowVolumeExpansion: at(item, "allowVolumeExpansion") === true,
          volumeBindingMode: stringAt(item, "volumeBindingMode") ?? "",
        },
      ];
    });
  }

  async snapshotClasses(signal: AbortSignal): Promise<readonly ClusterSnapshotClass[]> {
    const path = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses?limit=500";
    return (await this.#api.list(path, signal)).flatMap((item) => {
      const name = stringAt(item, "metadata", "name");
      if (!name) return [];
      return [
        { name, driver: stringAt(item, "driver") ?? "", default: marked(item, defaultSnapshotAnnotation) },
      ];
    });
  }

  useClass(): void {}

  useImageNamespace(): void {}
}

function marked(item: unknown, annotation: string): boolean {
  return stringAt(item, "metadata", "annotations", annotation) === "true";
}
