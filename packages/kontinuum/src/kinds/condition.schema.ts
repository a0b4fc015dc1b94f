/**
 * The schema of `status.conditions`, the same for every kind, and the printer columns made of conditions.
 *
 * Source: Kubernetes API conventions, "Typical status properties" (metav1.Condition).
 */
import type { Condition } from "@kontinuum/controller";
import type { Column } from "./kind.ts";
import { dateTime, integer, list, object, oneOf, optional, string, type Schema } from "./schema.ts";

const typePattern =
  "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

const condition: Schema<Condition> = object("One aspect of the object's state.", {
  type: string("What the condition is about.", { maxLength: 316, pattern: typePattern }),
  status: oneOf("Whether it holds.", ["True", "False", "Unknown"]),
  reason: string("Why, as one word for programs.", {
    minLength: 1,
    maxLength: 1024,
    pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
  }),
  message: string("Why, as a sentence for people.", { maxLength: 32768 }),
  lastTransitionTime: dateTime("When the status last changed."),
  observedGeneration: optional(
    integer("The metadata.generation this was observed at.", "int64", { minimum: 0 }),
  ),
});

/** `status.conditions`; `types` are named in the description for `kubectl explain`. */
export const conditionsSchema = (types: readonly string[]): Schema<Condition[]> =>
  list(`Conditions: ${types.join(", ")}.`, condition, {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
  });

/** A column with the status of a condition, named like it unless `name` is given. */
export const statusColumn = (type: string, name = type): Column => ({
  name,
  type: "string",
  jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
});

/** A column `Reason` with the reason of a condition. */
export const reasonColumn = (type: string): Column => ({
  name: "Reason",
  type: "string",
  jsonPath: `.status.conditions[?(@.type=="${type}")].reason`,
});

/** A plain column. */
export const column = (name: string, jsonPath: string, type: Column["type"] = "string"): Column => ({
  name,
  type,
  jsonPath,
});
