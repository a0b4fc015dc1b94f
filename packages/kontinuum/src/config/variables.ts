/**
 * Every environment variable of `kontinuum serve`, in one table: name, default, meaning, and whether a zone's
 * own server gets it.
 *
 * The first block is the published contract: names follow the path of the field in a Kontinuum's
 * `status.config`. Unset and empty both mean the default. What goes into a zone is listed here explicitly,
 * so that a new variable never travels by accident: never TLS keys, encryption keys or anything of Kryton.
 */

/** How a variable reaches the server of a zone. */
export type ZoneRule =
  /** The hub's own effective value. */
  | "inherit"
  /** A value computed for the zone. */
  | "computed"
  /** A value computed for the zone, or none at all. */
  | "optional"
  /** Stays on this host. */
  | "never";

/** One variable. */
export interface Variable {
  readonly name: string;
  readonly default: string;
  readonly about: string;
  readonly zone: ZoneRule;
  /** Goes into a Secret instead of a ConfigMap, and is never shown. */
  readonly secret?: true;
}

const variable = <const Name extends string>(
  name: Name,
  fallback: string,
  zone: ZoneRule,
  about: string,
): Variable & { readonly name: Name } => ({ name, default: fallback, about, zone });

/** The table. */
export const variables = [
  variable("KONTINUUM_SERVER_ADDR", ":8080", "computed", "Listen address, host:port."),
  {
    ...variable(
      "KONTINUUM_SERVER_STORAGE",
      "sqlite://kontinuum.db",
      "computed",
      "Storage connection string.",
    ),
    secret: true,
  },
  variable("KONTINUUM_SERVER_REGION", "", "computed", "Region of this process; empty on the hub."),
  variable("KONTINUUM_SERVER_ZONE", "", "computed", "Zone of this process; empty on the hub."),
  variable("KONTINUUM_SERVER_DNS_DOMAIN", "", "inherit", "Default domain of new zones."),
  variable("KONTINUUM_SERVER_GRPC_ENDPOINT", "", "inherit", "host:port at which zones reach this hub."),
  variable(
    "KONTINUUM_SERVER_GRPC_INSECURE_TLS_SKIP_VERIFY",
    "false",
    "inherit",
    "Zones skip verification of the hub's certificate.",
  ),
  variable("KONTINUUM_LOG_LEVEL", "warn", "inherit", "debug, info, warn or error."),
  variable("KONTINUUM_LOG_FORMAT", "json", "inherit", "json, or console (text) for people."),
  variable("KONTINUUM_OIDC_ISSUER_URL", "", "inherit", "OpenID Connect issuer; switches sign-in on."),
  variable("KONTINUUM_OIDC_CLIENT_ID", "kontinuum", "inherit", "Public client at the issuer."),
  variable(
    "KONTINUUM_OIDC_REDIRECT_URL",
    "http://localhost:8080/app",
    "computed",
    "Redirect address registered at the issuer.",
  ),
  variable("KONTINUUM_OIDC_ADMIN_GROUPS", "", "inherit", "Administrators' groups, separated by commas."),
  variable("KONTINUUM_INSECURE_ALLOW_ANONYMOUS", "false", "inherit", "Everybody may do everything."),
  variable("KONTINUUM_ACME_EMAIL", "", "inherit", "ACME account address for zones with a domain."),
  variable(
    "KONTINUUM_ACME_SERVER",
    "https://acme-v02.api.letsencrypt.org/directory",
    "inherit",
    "ACME directory for zones with a domain.",
  ),

  variable("KONTINUUM_SERVER_NAME", "", "never", "Name of this process; default: the host name."),
  variable(
    "KONTINUUM_SERVER_ENCRYPTION_KEY_FILE",
    "",
    "never",
    "Key that encrypts Secrets in the store; default beside a SQLite file, required for a shared store.",
  ),
  variable(
    "KONTINUUM_SERVER_TLS_CERT_FILE",
    "",
    "never",
    "PEM certificate chain to serve TLS with; default on a hub: one of its own authority.",
  ),
  variable("KONTINUUM_SERVER_TLS_KEY_FILE", "", "never", "PEM private key to serve TLS with."),
  variable(
    "KONTINUUM_SERVER_GRPC_CA_FILE",
    "",
    "optional",
    "PEM authorities that zones trust to reach this hub, and no others; default: the system's and the hub's own.",
  ),
  variable(
    "KONTINUUM_SERVER_GRPC_INSECURE_PLAINTEXT",
    "false",
    "inherit",
    "Zones reach this hub without TLS; only where both are on one machine (a loopback endpoint).",
  ),
  variable(
    "KONTINUUM_SERVER_IDENTITY_DIR",
    "/etc/kontinuum/etcd-identity",
    "never",
    "Folder with the zone's tls.key.",
  ),
  variable(
    "KONTINUUM_ZONE_IMAGE",
    "ghcr.io/nicklasfrahm-dev/kontinuum",
    "inherit",
    "Image of the zones' servers; the tag is this version unless a tag or digest is given.",
  ),
  variable(
    "KONTINUUM_DISCOVERY_ALLOWED_RANGES",
    "",
    "never",
    "CIDR ranges that discovery may dial although they are loopback, link-local or special.",
  ),
  variable("KONTINUUM_HELM", "", "never", "Path of the helm program; default: helm on PATH."),
  variable(
    "KONTINUUM_CHART_DIR",
    "",
    "never",
    "Folder with chart folders or archives, used before any network.",
  ),
] as const satisfies readonly Variable[];

/** Variables of ours that `kontinuum serve` does not read, and that are no mistake in its environment. */
export const alsoKnown = ["KONTINUUM_DEMO_DIR"] as const;

/** Name of a known variable. */
export type VariableName = (typeof variables)[number]["name"];

/** Effective values of all variables. */
export type Values = Readonly<Record<VariableName, string>>;

/** Effective values: `flags` over `environment` over defaults; an empty text counts as not given. */
export function readValues(
  environment: Readonly<Record<string, string | undefined>>,
  flags: Partial<Values> = {},
): Values {
  const entries = variables.map(({ name, default: fallback }) => [
    name,
    flags[name] || environment[name] || fallback,
  ]);
  return Object.fromEntries(entries) as Values;
}
