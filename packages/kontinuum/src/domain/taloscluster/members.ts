/**
 * Which machines belong to a cluster, in what role, in an order that never depends on a cache.
 */
import { isConditionTrue, isDeleting } from "@kontinuum/controller";
import { dialAddressOf } from "@kontinuum/talos";
import { annotations, labels, type Instance, type TalosCluster } from "../../kinds/index.ts";

/** What a machine does in its cluster. */
export type Role = "controlplane" | "worker";

/** A machine of a cluster. */
export interface Member {
  readonly instance: Instance;
  readonly role: Role;
  /** Address its Talos API and its Kubernetes API are dialled at. */
  readonly address: string;
}

/** Names of all pools of a cluster: workers' in spec order, then the control plane's. */
export function poolNames({ spec }: TalosCluster): string[] {
  return [...(spec.workers ?? []).map(({ poolRef }) => poolRef.name), spec.controlPlane.poolRef.name];
}

/** Address to dial a machine at: the one that answered, else a usable one of its interfaces, else the first candidate. */
export function addressOf({ spec, status }: Instance): string | undefined {
  const found = status?.identity?.address ?? dialAddressOf((status?.interfaces ?? []).map(withAddresses));
  return found ?? spec.interfaces?.[0];
}

const withAddresses = ({ addresses }: { addresses?: string[] }): { addresses: readonly string[] } => ({
  addresses: addresses ?? [],
});

/**
 * Members of `cluster` among all machines of its namespace: control plane first, then workers, by name.
 * Machines that leave (deleted, or being given back) are not members any more.
 */
export function membersOf(cluster: TalosCluster, instances: readonly Instance[]): Member[] {
  return claimedOf(cluster, instances)
    .filter(({ instance }) => !isLeaving(instance))
    .flatMap(({ instance, role }) => {
      const address = addressOf(instance);
      const seen =
        isConditionTrue(instance.status?.conditions, "Discovered") ||
        isConditionTrue(instance.status?.conditions, "Configured");
      return address === undefined || !seen ? [] : [{ instance, role, address }];
    });
}

/** Everything claimed by the cluster's pools, whatever its state: control plane first, then workers, by name. */
export function claimedOf(
  cluster: TalosCluster,
  instances: readonly Instance[],
): { readonly instance: Instance; readonly role: Role }[] {
  const controlPlane = cluster.spec.controlPlane.poolRef.name;
  const pools = new Set(poolNames(cluster));
  const claimed = instances.filter((instance) =>
    pools.has(instance.metadata.labels?.[labels.claimedBy] ?? ""),
  );
  const roleOf = (instance: Instance): Role =>
    instance.metadata.labels?.[labels.claimedBy] === controlPlane ? "controlplane" : "worker";
  return claimed
    .map((instance) => ({ instance, role: roleOf(instance) }))
    .sort((a, b) =>
      a.role === b.role
        ? a.instance.metadata.name.localeCompare(b.instance.metadata.name, "en")
        : a.role === "controlplane"
          ? -1
          : 1,
    );
}

/** Whether the machine is on its way out of its cluster. */
export function isLeaving(instance: Instance): boolean {
  return isDeleting(instance) || instance.metadata.annotations?.[annotations.release] !== undefined;
}
