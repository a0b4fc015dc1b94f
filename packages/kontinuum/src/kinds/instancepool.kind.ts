/**
 * InstancePool: claims Instances that match a selector, up to a number.
 */
import { column, conditionsSchema, reasonColumn, statusColumn } from "./condition.schema.ts";
import { defineKind, type Declared } from "./kind.ts";
import { integer, list, mapOf, object, optional, string, type Infer } from "./schema.ts";

/** Condition types of an InstancePool. */
export const instancePoolConditions = ["InsufficientCapacity", "Ready"] as const;

const selectorSchema = object(
  "Which instances may be claimed; an empty selector matches all.",
  {
    matchLabels: optional(mapOf("Labels that must all be equal.", string("A value."))),
    matchExpressions: optional(
      list(
        "Requirements that must all hold.",
        object("A requirement on one label.", {
          key: string("Label key."),
          operator: string("In, NotIn, Exists or DoesNotExist."),
          values: optional(
            list("Values of In and NotIn.", string("A value."), { "x-kubernetes-list-type": "atomic" }),
          ),
        }),
        { "x-kubernetes-list-type": "atomic" },
      ),
    ),
  },
  { extra: { "x-kubernetes-map-type": "atomic" } },
);

const specSchema = object(
  "How many instances of which sort.",
  {
    selector: selectorSchema,
    replicas: integer("How many instances to hold."),
    template: optional(
      object("How to make more instances when none is left.", {
        providerTemplateRef: object("The template object of a provider.", {
          apiVersion: string("Group and version."),
          kind: string("Kind."),
          name: string("Name."),
        }),
      }),
    ),
  },
  {
    rules: [
      {
        rule: "!has(self.template) || has(self.template.providerTemplateRef)",
        message: "providerTemplateRef is required when a template is set",
      },
    ],
  },
);

const statusSchema = object("What the pool holds.", {
  readyReplicas: optional(integer("Claimed instances that are discovered.")),
  conditions: optional(conditionsSchema(instancePoolConditions)),
});

/** A label selector. */
export type LabelSelector = Infer<typeof selectorSchema>;
/** Spec of a pool. */
export type InstancePoolSpec = Infer<typeof specSchema>;
/** Status of a pool. */
export type InstancePoolStatus = Infer<typeof statusSchema>;
/** A pool. */
export type InstancePool = Declared<InstancePoolSpec, InstancePoolStatus>;

/** The kind. */
export const instancePoolKind = defineKind(
  {
    kind: "InstancePool",
    plural: "instancepools",
    singular: "instancepool",
    description: "A pool: claims instances for a cluster.",
  },
  {
    name: "v1alpha2",
    spec: specSchema,
    status: statusSchema,
    columns: [
      column("Replicas", ".spec.replicas", "integer"),
      column("Ready", ".status.readyReplicas", "integer"),
      statusColumn("InsufficientCapacity"),
      reasonColumn("InsufficientCapacity"),
    ],
  },
);
