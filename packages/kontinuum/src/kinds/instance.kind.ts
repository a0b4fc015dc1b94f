/**
 * Instance: a machine a cluster may be built from, and what was seen of it.
 *
 * `spec` says where to look, `status` what answered. Which pool owns it is the label
 * `kontinuum.sh/claimed-by`, so that a claim is one compare-and-swap on one object.
 */
import { column, conditionsSchema, reasonColumn, statusColumn } from "./condition.schema.ts";
import { defineKind, type Declared } from "./kind.ts";
import { integer, list, object, optional, string, type Infer } from "./schema.ts";

/** Condition types of an Instance. */
export const instanceConditions = ["Discovered", "Configured", "Joined", "Ready"] as const;

/** The conditions that describe a machine as a member of a cluster. */
export const memberConditions = ["Configured", "Joined", "Ready"] as const;

const specSchema = object("Where the machine can be found.", {
  interfaces: optional(
    list("Candidate addresses, tried in order, without a port.", string("An IP address.")),
  ),
  providerRef: optional(
    object("The object of a provider this machine came from.", {
      apiVersion: string("Group and version."),
      kind: string("Kind."),
      name: string("Name."),
    }),
  ),
});

const statusSchema = object("What was seen of the machine.", {
  interfaces: optional(
    list(
      "Network interfaces.",
      object("One interface.", {
        name: string("Link name."),
        macAddress: optional(string("Hardware address, hexadecimal with colons.")),
        addresses: optional(list("Addresses in CIDR notation.", string("An address."))),
      }),
    ),
  ),
  talos: optional(
    object("The Talos system on the machine.", { version: optional(string("Version tag, e.g. v1.13.0.")) }),
  ),
  identity: optional(
    object("What identifies the machine: it must be the same when a configuration is sent to it.", {
      address: optional(string("The candidate address that answered.")),
      uuid: optional(string("SMBIOS system UUID.")),
      certificateKey: optional(string("SHA-256 of the public key of the certificate it presented, base64.")),
    }),
  ),
  hardware: optional(
    object("What the machine is made of.", {
      manufacturer: optional(string("Who made it.")),
      productName: optional(string("Its model.")),
      serialNumber: optional(string("Its serial number.")),
      cpuCores: optional(integer("Cores of all sockets.")),
      memoryBytes: optional(integer("Installed memory, bytes.", "int64")),
      disks: optional(
        list(
          "Disks a system could be installed on.",
          object("One disk.", {
            name: string("Kernel name, such as sda."),
            sizeBytes: integer("Size, bytes.", "int64"),
            model: optional(string("Model.")),
            serial: optional(string("Serial number.")),
            transport: optional(string("nvme, sata, virtio, …")),
          }),
        ),
      ),
    }),
  ),
  conditions: optional(conditionsSchema(instanceConditions)),
});

/** Spec of an instance. */
export type InstanceSpec = Infer<typeof specSchema>;
/** Status of an instance. */
export type InstanceStatus = Infer<typeof statusSchema>;
/** A machine. */
export type Instance = Declared<InstanceSpec, InstanceStatus>;

/** The kind. */
export const instanceKind = defineKind(
  {
    kind: "Instance",
    plural: "instances",
    singular: "instance",
    description: "A machine that a cluster may be built from.",
  },
  {
    name: "v1alpha2",
    spec: specSchema,
    status: statusSchema,
    columns: [
      column("TalosVersion", ".status.talos.version"),
      statusColumn("Discovered"),
      reasonColumn("Discovered"),
      statusColumn("Configured"),
      statusColumn("Joined"),
      statusColumn("Ready"),
    ],
  },
);
