/**
 * The configuration of one process: the values of `variables.ts`, checked and given their types.
 *
 * `parseConfig` is pure. Every refusal is one line that names the variable and the remedy. Files are read,
 * hosts resolved and issuers asked later, by whoever needs them.
 */
import { CodedError, logLevels, type LogFormat, type LogLevel } from "@kontinuum/std";
import { parseCidrs, type Cidr } from "./cidr.ts";
import { hostOf, isLoopback, parseListenAddress, type ListenAddress } from "./listen-address.ts";
import type { Values, VariableName } from "./variables.ts";

/** Where a process stands: the hub has no placement. */
export interface Placement {
  readonly region: string;
  readonly zone: string;
}

/** A checked configuration. */
export interface Config {
  /** Every value as given or defaulted, for what is published and handed on. */
  readonly values: Values;
  readonly listen: ListenAddress;
  /** Absent on the hub. */
  readonly placement?: Placement;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
  /** Absent: everybody is anonymous and may do everything. */
  readonly oidc?: {
    readonly issuerUrl: string;
    readonly clientId: string;
    readonly redirectUrl: string;
    readonly adminGroups: readonly string[];
  };
  readonly grpc: {
    /** `host:port`; empty when zones cannot be served. */
    readonly endpoint: string;
    readonly skipVerify: boolean;
    readonly plaintext: boolean;
    /** Empty: the system's authorities. */
    readonly caFile: string;
  };
  /** Absent: a hub serves with a certificate of its own authority, and clear text too; a zone's server clear text only. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  readonly discovery: { readonly allowed: readonly Cidr[] };
  /** What should be said once at start. */
  readonly warnings: readonly string[];
}

/** Checks `values`. Fails with `invalid_argument`. */
export function parseConfig(values: Values): Config {
  const warnings: string[] = [];
  const anonymous = parseBoolean("KONTINUUM_INSECURE_ALLOW_ANONYMOUS", values);
  const oidc = parseOidc(values, anonymous);
  const listen = parseListenAddress("KONTINUUM_SERVER_ADDR", values.KONTINUUM_SERVER_ADDR, anonymous);
  if (anonymous) {
    warnings.push(
      "anonymous access is on: everybody who reaches this address may do everything; set KONTINUUM_OIDC_ISSUER_URL before anyone else can reach it",
    );
    if (!listen.loopback) {
      warnings.push(`anonymous access is open to the network at ${values.KONTINUUM_SERVER_ADDR}`);
    }
  }
  const placement = parsePlacement(values);
  const plaintext = parseBoolean("KONTINUUM_SERVER_GRPC_INSECURE_PLAINTEXT", values);
  const endpoint = values.KONTINUUM_SERVER_GRPC_ENDPOINT;
  if (plaintext && endpoint !== "" && !isLoopback(hostOf(endpoint))) {
    throw invalid(
      `KONTINUUM_SERVER_GRPC_INSECURE_PLAINTEXT=true is refused with KONTINUUM_SERVER_GRPC_ENDPOINT=${endpoint}: zones' tokens would cross the network in clear text; unset it, the hub serves TLS with a certificate of its own`,
    );
  }
  const skipVerify = parseBoolean("KONTINUUM_SERVER_GRPC_INSECURE_TLS_SKIP_VERIFY", values);
  if (skipVerify) {
    warnings.push(
      "the hub's certificate is not verified (KONTINUUM_SERVER_GRPC_INSECURE_TLS_SKIP_VERIFY): whoever is between a zone and its hub can act as the hub; name the authority in KONTINUUM_SERVER_GRPC_CA_FILE instead",
    );
  }
  const tls = parseTls(values);
  return {
    values,
    listen,
    ...(placement ? { placement } : {}),
    log: parseLog(values),
    ...(oidc ? { oidc } : {}),
    grpc: {
      endpoint,
      skipVerify,
      plaintext,
      caFile: values.KONTINUUM_SERVER_GRPC_CA_FILE,
    },
    ...(tls ? { tls } : {}),
    discovery: {
      allowed: parseCidrs("KONTINUUM_DISCOVERY_ALLOWED_RANGES", values.KONTINUUM_DISCOVERY_ALLOWED_RANGES),
    },
    warnings,
  };
}

/** The words that mean yes and no, as Go's `strconv.ParseBool` takes them. */
const booleans = new Map<string, boolean>([
  ...["1", "t", "T", "TRUE", "true", "True"].map((word) => [word, true] as const),
  ...["0", "f", "F", "FALSE", "false", "False"].map((word) => [word, false] as const),
]);

function parseBoolean(name: VariableName, values: Values): boolean {
  const value = booleans.get(values[name]);
  if (value === undefined)
    throw invalid(`${name} must be true or false, not ${JSON.stringify(values[name])}`);
  return value;
}

function parseOidc(values: Values, anonymous: boolean): Config["oidc"] {
  const issuerUrl = values.KONTINUUM_OIDC_ISSUER_URL;
  if (issuerUrl === "") {
    if (anonymous) return undefined;
    throw invalid(
      "no authentication is chosen: set KONTINUUM_OIDC_ISSUER_URL, or KONTINUUM_INSECURE_ALLOW_ANONYMOUS=true for a trial on this machine",
    );
  }
  if (anonymous) {
    throw invalid(
      "KONTINUUM_OIDC_ISSUER_URL and KONTINUUM_INSECURE_ALLOW_ANONYMOUS=true exclude each other: unset one",
    );
  }
  if (!URL.canParse(issuerUrl)) throw invalid(`KONTINUUM_OIDC_ISSUER_URL is not an address: ${issuerUrl}`);
  const adminGroups = values.KONTINUUM_OIDC_ADMIN_GROUPS.split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (adminGroups.length === 0) {
    throw invalid("KONTINUUM_OIDC_ADMIN_GROUPS must name at least one group when an issuer is set");
  }
  return {
    issuerUrl,
    clientId: values.KONTINUUM_OIDC_CLIENT_ID,
    redirectUrl: values.KONTINUUM_OIDC_REDIRECT_URL,
    adminGroups,
  };
}

function parsePlacement(values: Values): Placement | undefined {
  const { KONTINUUM_SERVER_REGION: region, KONTINUUM_SERVER_ZONE: zone } = values;
  if ((region === "") !== (zone === "")) {
    throw invalid(
      `KONTINUUM_SERVER_REGION (${JSON.stringify(region)}) and KONTINUUM_SERVER_ZONE (${JSON.stringify(zone)}) must both be set, or neither`,
    );
  }
  return region === "" ? undefined : { region, zone };
}

function parseLog(values: Values): Config["log"] {
  const level = logLevels.find((name) => name === values.KONTINUUM_LOG_LEVEL.toLowerCase());
  if (!level) {
    throw invalid(
      `KONTINUUM_LOG_LEVEL must be one of ${logLevels.join(", ")}, not ${JSON.stringify(values.KONTINUUM_LOG_LEVEL)}`,
    );
  }
  const format = values.KONTINUUM_LOG_FORMAT.toLowerCase();
  if (format === "json") return { level, format };
  if (format === "console" || format === "text") return { level, format: "text" };
  throw invalid(
    `KONTINUUM_LOG_FORMAT must be json or console, not ${JSON.stringify(values.KONTINUUM_LOG_FORMAT)}`,
  );
}

function parseTls(values: Values): Config["tls"] {
  const { KONTINUUM_SERVER_TLS_CERT_FILE: certFile, KONTINUUM_SERVER_TLS_KEY_FILE: keyFile } = values;
  if ((certFile === "") !== (keyFile === "")) {
    throw invalid(
      "KONTINUUM_SERVER_TLS_CERT_FILE and KONTINUUM_SERVER_TLS_KEY_FILE must both be set, or neither",
    );
  }
  return certFile === "" ? undefined : { certFile, keyFile };
}

const invalid = (message: string): CodedError => new CodedError("invalid_argument", message);
