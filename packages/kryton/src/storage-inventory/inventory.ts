/**
 * Storage classes by fitness for machines: what they are, whether they can snapshot, which to prefer.
 */
import { z } from "zod";
import { backendOf, type ClusterSnapshotClass, type ClusterStorageClass } from "./contract.ts";

/** A class in answers. */
export const storageClassSchema = z
  .object({
    name: z.string(),
    provisioner: z.string(),
    default: z.boolean().optional(),
    allowVolumeExpansion: z.boolean().optional(),
    volumeBindingMode: z.string().optional(),
    backend: z.string(),
    snapshotCapable: z.boolean(),
    snapshotClass: z.string().optional(),
    recommended: z.boolean().optional(),
  })
  .meta({ id: "StorageClass" });
/** See {@link storageClassSchema}. */
export type RatedClass = z.infer<typeof storageClassSchema>;

/** A snapshot class in answers. */
export const snapshotClassSchema = z
  .object({ name: z.string(), driver: z.string(), default: z.boolean().optional() })
  .meta({ id: "SnapshotClass" });

/** Rates and orders classes; `preferred` are names that an outside inventory recommends. */
export function rate(
  classes: readonly ClusterStorageClass[],
  snapshotClasses: readonly ClusterSnapshotClass[],
  preferred: readonly string[],
): RatedClass[] {
  const rated = classes.map((entry): RatedClass => {
    const backend = backendOf(entry.provisioner);
    const matching = snapshotClasses.filter(({ driver }) => driver === entry.provisioner);
    const snapshotClass = (matching.find((candidate) => candidate.default) ?? matching[0])?.name;
    const snapshotCapable = snapshotClass !== undefined && backend !== "local-path";
    const proven = snapshotCapable && (backend === "rook-ceph" || backend === "longhorn");
    const recommended = proven || preferred.includes(entry.name);
    return {
      name: entry.name,
      provisioner: entry.provisioner,
      ...(entry.default ? { default: true } : {}),
      ...(entry.allowVolumeExpansion ? { allowVolumeExpansion: true } : {}),
      ...(entry.volumeBindingMode ? { volumeBindingMode: entry.volumeBindingMode } : {}),
      backend,
      snapshotCapable,
      ...(snapshotClass === undefined ? {} : { snapshotClass }),
      ...(recommended ? { recommended } : {}),
    };
  });
  return rated.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

/** Backends that are installed, judged by the classes there are. */
export function installedBackends(classes: readonly RatedClass[]): Record<string, boolean> {
  const found: Record<string, boolean> = {};
  for (const { backend } of classes)
    if (backend === "rook-ceph" || backend === "longhorn") found[backend] = true;
  return found;
}

function rank(entry: RatedClass): number {
  if (entry.backend === "rook-ceph") return entry.snapshotCapable ? 0 : 1;
  if (entry.backend === "longhorn" && entry.snapshotCapable) return 2;
  if (entry.recommended) return 3;
  if (entry.snapshotCapable) return 4;
  return entry.backend === "local-path" ? 6 : 5;
}
