/**
 * Addon: a Helm chart installed into a cluster.
 */
import { column, conditionsSchema, reasonColumn, statusColumn } from "./condition.schema.ts";
import { defineKind, type Declared } from "./kind.ts";
import { anything, boolean, integer, object, oneOf, optional, string, type Infer } from "./schema.ts";

/** How a chart gets into the cluster. */
export const provisioningMethods = ["HelmUpgradeInstall", "KubectlApply"] as const;
/** One of {@link provisioningMethods}. */
export type ProvisioningMethod = (typeof provisioningMethods)[number];

/** Condition types of an Addon. */
export const addonConditions = ["Ready"] as const;

const specSchema = object("What to install where.", {
  talosClusterRef: object("The cluster, in the same namespace.", { name: string("Name of the cluster.") }),
  releaseName: optional(string("Helm release name; default: the name of this object.", { maxLength: 63 })),
  enabled: optional(boolean("Whether the addon is kept installed.", { default: true })),
  chart: optional(
    object("Where the chart comes from.", {
      repo: optional(string("Chart repository.", { maxLength: 256 })),
      name: optional(string("Chart name, or an oci:// reference.", { maxLength: 63 })),
      version: optional(string("Chart version.", { maxLength: 32 })),
    }),
  ),
  lifecycle: optional(
    object("When and how it is installed.", {
      priority: optional(
        integer("Lower ones are installed first; equal ones together.", "int32", { default: 100 }),
      ),
      provisioning: optional(
        object("How it is installed.", {
          method: optional(oneOf("Method.", provisioningMethods, { default: "HelmUpgradeInstall" })),
        }),
      ),
    }),
  ),
  namespace: optional(object("Target namespace.", { name: optional(string("Name.")) })),
  values: optional(anything("Chart values, merged over the defaults.")),
});

const statusSchema = object("How far the addon is.", {
  conditions: optional(conditionsSchema(addonConditions)),
});

/** Spec of an addon. */
export type AddonSpec = Infer<typeof specSchema>;
/** Status of an addon. */
export type AddonStatus = Infer<typeof statusSchema>;
/** An addon. */
export type Addon = Declared<AddonSpec, AddonStatus>;

/** The kind. */
export const addonKind = defineKind(
  {
    kind: "Addon",
    plural: "addons",
    singular: "addon",
    description: "A Helm chart kept installed in a cluster.",
  },
  {
    name: "v1alpha2",
    spec: specSchema,
    status: statusSchema,
    columns: [column("Cluster", ".spec.talosClusterRef.name"), statusColumn("Ready"), reasonColumn("Ready")],
    selectableFields: [".spec.talosClusterRef.name"],
  },
);
