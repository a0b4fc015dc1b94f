/**
 * TalosCluster: a Kubernetes cluster built by Talos from the machines of its pools.
 */
import { column, conditionsSchema, reasonColumn, statusColumn } from "./condition.schema.ts";
import { defineKind, type Declared } from "./kind.ts";
import { boolean, list, object, optional, string, type Infer } from "./schema.ts";

/** Condition types of a TalosCluster. */
export const talosClusterConditions = ["Bootstrapped", "ControlPlaneReady", "Ready"] as const;

/** What an absent `spec.talos.version` means. */
export const defaultTalosVersion = "v1.13.0";
/** What an absent `spec.kubernetes.version` means. */
export const defaultKubernetesVersion = "v1.32.0";

const poolRef = object("A pool in the same namespace.", { name: string("Name of the pool.") });

const specSchema = object("What the cluster is made of.", {
  talos: optional(
    object("Talos settings.", {
      version: optional(
        string(`Version whose configuration form is used; default ${defaultTalosVersion}.`, {
          maxLength: 32,
        }),
      ),
    }),
  ),
  kubernetes: optional(
    object("Kubernetes settings.", {
      version: optional(
        string(`Kubernetes version; default ${defaultKubernetesVersion}.`, { maxLength: 32 }),
      ),
    }),
  ),
  controlPlane: object("The control plane.", {
    poolRef,
    endpoint: optional(
      string(
        "Stable host or address of the Kubernetes API (a virtual IP, a load balancer, a DNS name). Default: the first control-plane machine's own address.",
        { maxLength: 253 },
      ),
    ),
  }),
  workers: optional(
    list(
      "Pools of workers.",
      object("One pool of workers.", { name: string("Name of the group."), poolRef }),
      { maxItems: 32 },
    ),
  ),
  teardown: optional(
    object("What happens when the cluster is deleted.", {
      unregisterInstances: optional(
        boolean("Delete the Instance objects instead of returning them to their pools."),
      ),
    }),
  ),
});

const statusSchema = object("How far the cluster is.", {
  secretRef: optional(
    object("Secret with the cluster's keys and kubeconfig.", {
      name: optional(string("Name.")),
      namespace: optional(string("Namespace.")),
    }),
  ),
  endpoint: optional(
    string(
      "Host or address of the Kubernetes API, chosen once and kept while its machine is in the cluster: every machine's configuration names it.",
    ),
  ),
  bootstrapInstance: optional(
    string(
      "Name of the Instance whose etcd was started first: written before it is, so that no second one ever is.",
    ),
  ),
  conditions: optional(conditionsSchema(talosClusterConditions)),
});

/** Spec of a cluster. */
export type TalosClusterSpec = Infer<typeof specSchema>;
/** Status of a cluster. */
export type TalosClusterStatus = Infer<typeof statusSchema>;
/** A cluster. */
export type TalosCluster = Declared<TalosClusterSpec, TalosClusterStatus>;

/** The kind. */
export const talosClusterKind = defineKind(
  {
    kind: "TalosCluster",
    plural: "talosclusters",
    singular: "taloscluster",
    description: "A Kubernetes cluster built by Talos from the machines of its pools.",
  },
  {
    name: "v1alpha2",
    spec: specSchema,
    status: statusSchema,
    columns: [
      column("ControlPlanePool", ".spec.controlPlane.poolRef.name"),
      statusColumn("Ready"),
      reasonColumn("Ready"),
    ],
  },
);
