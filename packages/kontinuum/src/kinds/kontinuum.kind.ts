/**
 * Kontinuum: one running process, as it registered itself. The hub has neither region nor zone; a zone's
 * process has both.
 *
 * `v1alpha1` is the older form, in which the role is part of `spec`. It stays served; `kontinuum.conversion.ts`
 * turns one into the other.
 */
import { column } from "./condition.schema.ts";
import { defineKind, type Declared, type KindVersion } from "./kind.ts";
import { boolean, dateTime, object, oneOf, optional, string, type Infer } from "./schema.ts";

/** What a process is: the hub, or a zone's own server. */
export const roles = ["ControlPlane", "Worker"] as const;

const placementRule = {
  rule: "(!has(self.region) || self.region == '') == (!has(self.zone) || self.zone == '')",
  message: "region and zone must both be set, or neither",
};

const region = optional(string("Region of the process; empty on the hub."));
const zone = optional(string("Zone of the process; empty on the hub."));
const heartbeat = optional(dateTime("When the process last reported itself."));

const configSchema = object("The process's effective configuration, without secrets.", {
  server: optional(
    object("Server settings.", {
      addr: optional(string("Listen address.")),
      storage: optional(string("Storage target, without credentials.")),
      region,
      zone,
      dns: optional(object("DNS settings.", { domain: optional(string("Default domain of new zones.")) })),
      grpc: optional(
        object("How zones reach this hub.", {
          endpoint: optional(string("Public host:port of the hub.")),
          insecureTLSSkipVerify: optional(
            string("Whether zones skip verification of the hub's certificate."),
          ),
        }),
      ),
    }),
  ),
  log: optional(
    object("Log settings.", { level: optional(string("Level.")), format: optional(string("Format.")) }),
  ),
  oidc: optional(
    object("OpenID Connect settings.", {
      enabled: optional(boolean("Whether an issuer is configured.")),
      issuerURL: optional(string("Issuer.")),
      clientID: optional(string("Client.")),
      redirectURL: optional(string("Where the provider sends the browser back to.")),
      adminGroups: optional(string("Groups that administer this hub, separated by commas.")),
    }),
  ),
  insecureAllowAnonymous: optional(string("Whether everybody may do everything.")),
  acme: optional(
    object("ACME settings for zones with a public domain.", {
      email: optional(string("Account address.")),
      server: optional(string("Directory address.")),
    }),
  ),
});

/** `status.config`. */
export type KontinuumConfigStatus = Infer<typeof configSchema>;

const specSchema = object("Where the process runs.", { region, zone }, { rules: [placementRule] });

const statusSchema = object("What the process reported.", {
  role: optional(oneOf("Role of the process.", roles)),
  lastHeartbeatTime: heartbeat,
  version: optional(string("Version of the running program.")),
  secretRef: optional(
    object("Secret with the storage settings.", {
      name: optional(string("Name.")),
      namespace: optional(string("Namespace.")),
    }),
  ),
  config: optional(configSchema),
});

const older: KindVersion<unknown, unknown> = {
  name: "v1alpha1",
  spec: object(
    "Where and as what the process runs.",
    { role: oneOf("Role of the process.", roles), region, zone },
    { rules: [placementRule] },
  ),
  status: object("What the process reported.", { lastHeartbeatTime: heartbeat }),
  columns: [column("Role", ".spec.role"), column("Region", ".spec.region"), column("Zone", ".spec.zone")],
};

/** Spec of a process. */
export type KontinuumSpec = Infer<typeof specSchema>;
/** Status of a process. */
export type KontinuumStatus = Infer<typeof statusSchema>;
/** A registered process. */
export type Kontinuum = Declared<KontinuumSpec, KontinuumStatus>;

/** The kind. */
export const kontinuumKind = defineKind(
  {
    kind: "Kontinuum",
    plural: "kontinuums",
    singular: "kontinuum",
    description: "A running Kontinuum process: the hub, or the server of a zone.",
    // Never dialled: the server converts these in process (see `converters` where it is made).
    conversionUrl: "https://localhost:9443/convert",
  },
  {
    name: "v1alpha2",
    spec: specSchema,
    status: statusSchema,
    columns: [
      column("Role", ".status.role"),
      column("Region", ".spec.region"),
      column("Zone", ".spec.zone"),
      column("Version", ".status.version"),
    ],
  },
  [older],
);
