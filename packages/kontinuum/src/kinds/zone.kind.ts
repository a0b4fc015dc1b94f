/**
 * Zone: a region and zone pair whose cluster runs its own Kontinuum server.
 *
 * Names of its children are all the zone object's own name, `<region>-<zone>`.
 */
import { column, conditionsSchema, reasonColumn, statusColumn } from "./condition.schema.ts";
import { defineKind, type Declared } from "./kind.ts";
import { object, optional, string, type Infer } from "./schema.ts";

/** Condition types of a Zone. */
export const zoneConditions = ["ClusterReady", "Installed", "RegistryJoined", "Teardown", "Ready"] as const;

const specSchema = object(
  "Which zone this is.",
  {
    region: string("Region, a DNS label."),
    zone: string("Zone within the region, a DNS label."),
    domain: optional(
      string("Public domain: the zone answers at <zone>.<region>.<domain>. Empty: not exposed."),
    ),
  },
  {
    rules: [
      {
        rule: "size(self.region) > 0 && size(self.zone) > 0",
        message: "region and zone must both be set",
      },
    ],
  },
);

const statusSchema = object("How far the zone is.", {
  conditions: optional(conditionsSchema(zoneConditions)),
});

/** Spec of a zone. */
export type ZoneSpec = Infer<typeof specSchema>;
/** Status of a zone. */
export type ZoneStatus = Infer<typeof statusSchema>;
/** A zone. */
export type Zone = Declared<ZoneSpec, ZoneStatus>;

/** The kind. */
export const zoneKind = defineKind(
  {
    kind: "Zone",
    plural: "zones",
    singular: "zone",
    description: "A zone: a cluster that runs its own Kontinuum server and joins this hub.",
  },
  {
    name: "v1alpha2",
    spec: specSchema,
    status: statusSchema,
    columns: [
      column("Region", ".spec.region"),
      column("Zone", ".spec.zone"),
      column("Domain", ".spec.domain"),
      statusColumn("Installed"),
      reasonColumn("Installed"),
    ],
  },
);
