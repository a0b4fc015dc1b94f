/**
 * Names that stored objects, clients and other processes depend on. Changing one breaks what is out there.
 */

/** Where everything that belongs to the system itself lives, on the hub and in a zone's own cluster. */
export const systemNamespace = "kontinuum-system";

/** Labels. */
export const labels = {
  /** Region of an Instance, pool or cluster. */
  region: "kontinuum.sh/region",
  /** Zone of an Instance, pool or cluster. */
  zone: "kontinuum.sh/zone",
  /** On an Instance: the pool that claimed it. */
  claimedBy: "kontinuum.sh/claimed-by",
  /** On objects a controller of ours keeps in shape: which one. */
  managedBy: "kontinuum.sh/managed-by",
} as const;

/** Annotations. */
export const annotations = {
  /** On an Instance: the host name its address was resolved from. */
  hostname: "kontinuum.sh/hostname",
  /** On an Instance: since when its pool no longer wants it (RFC 3339); it is released once it was reset. */
  release: "kontinuum.sh/release",
  /** On a Kontinuum: which start of which process wrote it. */
  processId: "kontinuum.sh/process-id",
  /** On a binding: the group as configured. */
  adminGroup: "kontinuum.sh/admin-group",
  /** On a Secret with a cluster's keys: the UID of the cluster. */
  clusterUid: "kontinuum.sh/cluster-uid",
  /** On an Addon: digest and reference of the chart that was fetched for it. */
  chartDigest: "kontinuum.sh/chart-digest",
} as const;

/** Finalizers. */
export const finalizers = {
  zone: "kontinuum.sh/zone-teardown",
  talosCluster: "kontinuum.sh/taloscluster-teardown",
  instancePool: "kontinuum.sh/instancepool-teardown",
  instance: "kontinuum.sh/talos-reset",
} as const;

/** Name of every object of the zone's workload in its own cluster. */
export const workloadName = "kontinuum";
/** Secret and ConfigMap with the workload's variables, in the zone's own cluster. */
export const environmentName = "kontinuum-env";
/** Secret with the zone's private key, in the zone's own cluster. */
export const identitySecretName = "kontinuum-etcd-identity";
/** Where that Secret is mounted. */
export const identityMountPath = "/etc/kontinuum/etcd-identity";

/** Hub Secret with a zone's public keys. */
export const zoneAuthSecretName = (zone: string): string => `${zone}-etcd-auth`;
/** Hub Secret with a process's storage settings. */
export const processSecretName = (process: string): string => `kontinuum-${process}`;
