/**
 * The configuration of one krytond, from environment variables.
 *
 * Everything that can be refused without touching anything is refused here, with the variable named.
 * Provider settings stay with their providers.
 */
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CodedError, isDnsLabel, unknownVariables } from "@kontinuum/std";
import { z } from "zod";
import { builtProviders, providerNames, type ProviderName } from "../model/machine.ts";
import { isLocal } from "../http/loopback-guard.ts";
import type { Quota } from "../service/quotas.ts";
import { knownVariables } from "./known-variables.ts";
import { choice, decimal, duration, flag, integer, list, text, type Environment } from "./values.ts";

/** Ways to recognise callers. */
export const authModes = ["disabled", "apikey", "proxy"] as const;
/** One of {@link authModes}. */
export type AuthMode = (typeof authModes)[number];

/** Everything krytond can be told. Paths are empty when unset. */
export interface Config {
  readonly host: string;
  readonly port: number;
  readonly provider: ProviderName;
  readonly projects: readonly string[];
  readonly defaultProject: string;
  readonly namespacePrefix: string;
  readonly imageNamespace: string;
  readonly storageClass: string;
  readonly imagesFile: string;
  readonly authMode: AuthMode;
  readonly apiKeysFile: string;
  readonly proxySecretFile: string;
  readonly allowInsecure: boolean;
  readonly labTokenFile: string;
  readonly labAutoAuth: boolean;
  readonly webhookUrl: string;
  readonly webhookSecret: string;
  readonly eventsFile: string;
  readonly eventsRetention: number;
  readonly goldenDir: string;
  readonly storageConfigFile: string;
  readonly settingsConfigFile: string;
  /** Folder with the manifests of storage systems, one subfolder each. */
  readonly storageManifests: string;
  readonly projectRoot: string;
  readonly corsOrigins: readonly string[];
  readonly allowedHosts: readonly string[];
  readonly reconcileIntervalMs: number;
  readonly shutdownTimeoutMs: number;
  readonly rateLimitRps: number;
  readonly rateLimitBurst: number;
  readonly tlsCertFile: string;
  readonly tlsKeyFile: string;
  readonly clientCaFile: string;
  /** The address browsers use, when a proxy stands in front: decides whether cookies are Secure. */
  readonly publicUrl: string;
  readonly storage: string;
  readonly encryptionKeyFile: string;
  readonly outboundAllow: readonly string[];
  readonly quotas: ReadonlyMap<string, Quota>;
  readonly atlas: { readonly url: string; readonly token: string; readonly product: string };
  /** What should be said once at start. */
  readonly warnings: readonly string[];
  /** What providers read their own settings from. */
  readonly env: Environment;
}

/** Reads the configuration. Fails with `invalid_argument`, naming the variable and the remedy. */
export function readConfig(env: Environment): Config {
  const refuse = (message: string): CodedError => new CodedError("invalid_argument", message);
  const home = env["HOME"] || homedir();
  const provider = choice(env, "KRYTON_PROVIDER", providerNames, "demo");
  const projects = list(env, "KRYTON_PROJECTS");
  if (projects.length === 0) {
    if (env["KRYTON_PROJECTS"]) throw refuse("KRYTON_PROJECTS: names no project");
    projects.push("default");
  }
  for (const project of projects) {
    if (!isDnsLabel(project)) {
      throw refuse(
        `KRYTON_PROJECTS: ${JSON.stringify(project)} is not a DNS label (a-z, 0-9 and -, at most 63)`,
      );
    }
  }
  const defaultProject = text(env, "KRYTON_DEFAULT_PROJECT", projects[0]);
  if (!projects.includes(defaultProject)) {
    throw refuse(`KRYTON_DEFAULT_PROJECT: ${JSON.stringify(defaultProject)} is not in KRYTON_PROJECTS`);
  }
  const namespacePrefix = text(env, "KRYTON_NAMESPACE_PREFIX");
  const imageNamespace = text(env, "KRYTON_IMAGE_NAMESPACE", "kryton-images");
  if (provider === "kubevirt") {
    if (!isDnsLabel(imageNamespace))
      throw refuse(`KRYTON_IMAGE_NAMESPACE: ${JSON.stringify(imageNamespace)} is not a DNS label`);
    for (const project of projects) {
      if (!isDnsLabel(namespacePrefix + project)) {
        throw refuse(
          `KRYTON_NAMESPACE_PREFIX: ${JSON.stringify(namespacePrefix + project)} is not a DNS label`,
        );
      }
    }
  }
  const allowInsecure = flag(env, "KRYTON_ALLOW_INSECURE", false);
  const auth = readAuth(env, provider, allowInsecure, refuse);
  const listen = readAddress(env, auth.authMode, allowInsecure, refuse);
  const tlsCertFile = text(env, "KRYTON_TLS_CERT_FILE");
  const tlsKeyFile = text(env, "KRYTON_TLS_KEY_FILE");
  if ((tlsCertFile === "") !== (tlsKeyFile === "")) {
    throw refuse("KRYTON_TLS_CERT_FILE and KRYTON_TLS_KEY_FILE must be set together");
  }
  const clientCaFile = text(env, "KRYTON_CLIENT_CA_FILE");
  if (clientCaFile !== "" && tlsCertFile === "") {
    throw refuse("KRYTON_CLIENT_CA_FILE needs KRYTON_TLS_CERT_FILE and KRYTON_TLS_KEY_FILE");
  }
  const interval = duration(env, "KRYTON_RECONCILE_INTERVAL", 30_000);
  if (!builtProviders.includes(provider)) {
    throw refuse(
      `KRYTON_PROVIDER: ${provider} is not in this build yet; it has ${builtProviders.join(", ")}: set KRYTON_PROVIDER=demo`,
    );
  }
  return {
    ...listen,
    ...auth,
    provider,
    projects,
    defaultProject,
    namespacePrefix,
    imageNamespace,
    storageClass: text(env, "KRYTON_STORAGE_CLASS"),
    imagesFile: text(env, "KRYTON_IMAGES_FILE"),
    allowInsecure,
    webhookUrl: text(env, "KRYTON_EVENT_WEBHOOK_URL"),
    webhookSecret: text(env, "KRYTON_EVENT_WEBHOOK_SECRET"),
    eventsFile: text(env, "KRYTON_EVENTS_FILE"),
    eventsRetention: integer(env, "KRYTON_EVENTS_RETENTION", 10_000, 100, 1_000_000),
    goldenDir: text(env, "KRYTON_GOLDEN_DIR", join(home, ".kryton", "golden")),
    storageConfigFile: text(env, "KRYTON_STORAGE_CONFIG_FILE", join(home, ".kryton", "storage.json")),
    settingsConfigFile: text(env, "KRYTON_SETTINGS_CONFIG_FILE", join(home, ".kryton", "settings.json")),
    storageManifests: text(env, "KRYTON_STORAGE_MANIFESTS", join(home, ".kryton", "storage-manifests")),
    projectRoot: text(env, "KRYTON_PROJECT_ROOT"),
    corsOrigins: list(env, "KRYTON_CORS_ORIGINS"),
    allowedHosts: list(env, "KRYTON_ALLOWED_HOSTS").map((host) => host.toLowerCase()),
    reconcileIntervalMs: interval <= 0 ? 30_000 : interval,
    shutdownTimeoutMs: Math.max(0, duration(env, "KRYTON_SHUTDOWN_TIMEOUT", 15_000)),
    rateLimitRps: decimal(env, "KRYTON_RATE_LIMIT_RPS", 0),
    rateLimitBurst: integer(env, "KRYTON_RATE_LIMIT_BURST", 0, -1_000_000, 1_000_000),
    tlsCertFile,
    tlsKeyFile,
    clientCaFile,
    publicUrl: text(env, "KRYTON_PUBLIC_URL"),
    storage: text(
      env,
      "KRYTON_STORAGE",
      provider === "demo" ? "memory://" : `sqlite://${join(home, ".kryton", "kryton.db")}`,
    ),
    encryptionKeyFile: text(env, "KRYTON_ENCRYPTION_KEY_FILE"),
    outboundAllow: list(env, "KRYTON_OUTBOUND_ALLOW"),
    quotas: readQuotas(env, refuse),
    atlas: {
      url: text(env, "KRYTON_ATLAS_URL").replace(/\/+$/, ""),
      token: text(env, "KRYTON_ATLAS_TOKEN"),
      product: text(env, "KRYTON_ATLAS_PRODUCT", "kryton"),
    },
    warnings: unknownVariables(env, "KRYTON_", knownVariables),
    env,
  };
}

type Refuse = (message: string) => CodedError;

function readAuth(
  env: Environment,
  provider: ProviderName,
  allowInsecure: boolean,
  refuse: Refuse,
): Pick<Config, "authMode" | "apiKeysFile" | "proxySecretFile" | "labAutoAuth" | "labTokenFile"> {
  const chosen = text(env, "KRYTON_AUTH_MODE") !== "";
  const authMode = choice(env, "KRYTON_AUTH_MODE", authModes, "disabled");
  const apiKeysFile = text(env, "KRYTON_API_KEYS_FILE");
  const proxySecretFile = text(env, "KRYTON_PROXY_SECRET_FILE");
  if (authMode === "disabled") {
    if (!chosen && provider !== "demo") {
      throw refuse(`KRYTON_AUTH_MODE must be set with provider ${provider}: use apikey or proxy`);
    }
    if ((provider === "libvirt" || provider === "kubevirt") && !allowInsecure) {
      throw refuse(
        `KRYTON_AUTH_MODE=disabled is refused with provider ${provider}: use apikey or proxy, or set KRYTON_ALLOW_INSECURE=true`,
      );
    }
  }
  if (authMode === "apikey" && apiKeysFile === "") {
    throw refuse("KRYTON_AUTH_MODE=apikey needs KRYTON_API_KEYS_FILE");
  }
  if (authMode === "proxy") {
    if (!flag(env, "KRYTON_TRUST_PROXY", false))
      throw refuse("KRYTON_AUTH_MODE=proxy needs KRYTON_TRUST_PROXY=true");
    if (proxySecretFile === "") throw refuse("KRYTON_AUTH_MODE=proxy needs KRYTON_PROXY_SECRET_FILE");
  } else {
    flag(env, "KRYTON_TRUST_PROXY", false);
  }
  const labAutoAuth = flag(env, "KRYTON_LAB_AUTO_AUTH", false);
  if (labAutoAuth && (!allowInsecure || authMode !== "apikey")) {
    throw refuse("KRYTON_LAB_AUTO_AUTH needs KRYTON_ALLOW_INSECURE=true and KRYTON_AUTH_MODE=apikey");
  }
  const besideKeys = apiKeysFile === "" ? "" : join(dirname(apiKeysFile), "lab.token");
  const labTokenFile = text(env, "KRYTON_LAB_TOKEN_FILE", besideKeys);
  return { authMode, apiKeysFile, proxySecretFile, labAutoAuth, labTokenFile };
}

function readAddress(
  env: Environment,
  authMode: AuthMode,
  allowInsecure: boolean,
  refuse: Refuse,
): Pick<Config, "host" | "port"> {
  const given = text(env, "KRYTON_ADDR");
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(given === "" ? ":8080" : given);
  const port = Number(match?.[3]);
  if (!match || port > 65_535)
    throw refuse(`KRYTON_ADDR: ${JSON.stringify(given)} is not an address like :8080 or 127.0.0.1:8080`);
  const host = match[1] ?? match[2] ?? "";
  if (authMode !== "disabled") return { host, port };
  // Off means loopback: an address without a host never means every interface here.
  if (host === "") return { host: "127.0.0.1", port };
  if (isLocal(host)) return { host, port };
  if (!allowInsecure) {
    throw refuse(
      `KRYTON_ADDR=${given} with authentication off is refused: set KRYTON_AUTH_MODE, use 127.0.0.1:${port}, or set KRYTON_ALLOW_INSECURE=true`,
    );
  }
  return { host, port };
}

const quotaSchema = z.record(
  z.string(),
  z.strictObject({
    machines: z.int().min(0).optional(),
    cpu: z.int().min(0).optional(),
    memoryMiB: z.int().min(0).optional(),
    diskGiB: z.int().min(0).optional(),
  }),
);

/** `KRYTON_QUOTAS`: JSON from project (or `*`) to limits. */
function readQuotas(env: Environment, refuse: Refuse): ReadonlyMap<string, Quota> {
  const value = text(env, "KRYTON_QUOTAS");
  if (value === "") return new Map();
  let raw: unknown;
  try {
    raw = JSON.parse(value);
  } catch {
    throw refuse('KRYTON_QUOTAS: is not JSON like {"ci":{"machines":20,"cpu":64}}');
  }
  const parsed = quotaSchema.safeParse(raw);
  if (!parsed.success)
    throw refuse(
      'KRYTON_QUOTAS: must be like {"ci":{"machines":20,"cpu":64,"memoryMiB":131072,"diskGiB":2000}}',
    );
  return new Map(Object.entries(parsed.data));
}
