/**
 * Validation rules of the documents of the running system: logs, registries, extensions, discovery, installation.
 */
import { isObject } from "@kontinuum/std";
import type { ConfigDocument } from "../config-document.ts";
import { isQualifiedName } from "../kubernetes-names.ts";
import { isTrue, objects, textOf } from "../machine-config-facts.ts";
import { isOciSpecification } from "./oci-specification.ts";
import {
  eachOf,
  expression,
  isPemCertificate,
  isPemKey,
  needs,
  needsExpression,
  needsList,
  notNegative,
  type Finding,
  type Rules,
} from "./rule.ts";

/** Files of `/etc` that Talos writes itself, and folders of which it writes all. */
const managedFiles = [
  "resolv.conf",
  "hosts",
  "machine-id",
  "extensions.yaml",
  "localtime",
  "os-release",
  "xattr.conf",
];
const managedFolders = [
  "apparmor.d",
  "apparmor",
  "ca-certificates",
  "cni",
  "cri",
  "iscsi",
  "kubernetes",
  "lvm",
  "nvme",
  "pki",
  "selinux",
  "ssl",
];

function etcFileError({ name }: ConfigDocument): Finding {
  const path = textOf(name);
  if (path === "") return false;
  const parts = path.split("/");
  if (path.startsWith("/") || path.startsWith(".") || leavesFolder(parts))
    return "name must be a path below /etc";
  const isManaged = managedFiles.includes(path) || managedFolders.includes(parts[0] ?? "");
  return isManaged && "name is a file that Talos writes itself";
}

/** Whether a path goes above where it begins. */
function leavesFolder(parts: readonly string[]): boolean {
  let depth = 0;
  for (const part of parts) {
    if (part === "..") depth--;
    else if (part !== "." && part !== "") depth++;
    if (depth < 0) return true;
  }
  return false;
}

/** `<scheme>://<host>[:<port>][/…]`, as far as rules look at it. */
function urlParts(text: string): { scheme: string; port: string; path: string } | undefined {
  const match = /^([a-z][a-z0-9+.-]*):(?:\/\/(?:[^/?#]*?)(?::(\d*))?(?=[/?#]|$))?([^?#]*)/i.exec(text);
  return match
    ? { scheme: (match[1] ?? "").toLowerCase(), port: match[2] ?? "", path: match[3] ?? "" }
    : undefined;
}

function kmsgErrors(document: ConfigDocument, minor: number): Finding[] {
  const text = textOf(document["url"]);
  if (text === "") return ["url is required"];
  const url = urlParts(text);
  if (url?.scheme !== "tcp" && url?.scheme !== "udp") return ["url must begin with tcp:// or udp://"];
  if (url.path !== "" && url.path !== "/") return ["url must have no path"];
  return [minor >= 11 && url.port === "" && "url must have a port"];
}

function siderolinkErrors(document: ConfigDocument): Finding[] {
  const text = textOf(document["apiUrl"]);
  if (text === "") return ["apiUrl is required"];
  const url = urlParts(text);
  if (url?.scheme !== "https" && url?.scheme !== "grpc")
    return ["apiUrl must begin with https:// or grpc://"];
  return [url.path !== "" && url.path !== "/" && "apiUrl must have no path"];
}

function verifierErrors(rule: Readonly<Record<string, unknown>>): Finding[] {
  const { keyless, publicKey } = rule;
  const [skip, deny] = [isTrue(rule["skip"]), isTrue(rule["deny"])];
  const verifies = isObject(keyless) || isObject(publicKey);
  return [
    textOf(rule["image"]) === "" && "image is required",
    skip && deny && "skip and deny exclude each other",
    (skip || deny) && verifies && "a verifier is not allowed with skip or deny",
    !skip && !deny && !verifies && "one of keyless, publicKey, skip and deny is required",
    isObject(keyless) && isObject(publicKey) && "keyless and publicKey exclude each other",
    isObject(keyless) && textOf(keyless["issuer"]) === "" && "keyless.issuer is required",
    isObject(keyless) &&
      !textOf(keyless["subject"]) &&
      !textOf(keyless["subjectRegex"]) &&
      "keyless.subject or keyless.subjectRegex is required",
    isObject(publicKey) && textOf(publicKey["certificate"]) === "" && "publicKey.certificate is required",
  ];
}

function endpointPathError(document: ConfigDocument): Finding {
  const path = urlParts(textOf(document["endpoint"]))?.path ?? "";
  return path !== "" && path !== "/" && "endpoint must have no path";
}

/** Seconds a watchdog waits at least. */
const watchdogSecondsMin = 10;

/** Whether a duration of Go is shorter than some seconds; nought stands for the default. */
function isShorter(duration: string, seconds: number): boolean {
  if (duration === "" || /^[-+]?0+(?:[a-zµ]+)?$/.test(duration)) return false;
  if (duration.startsWith("-")) return true;
  const factors: Readonly<Record<string, number>> = {
    h: 3600,
    m: 60,
    s: 1,
    ms: 1e-3,
    us: 1e-6,
    µs: 1e-6,
    ns: 1e-9,
  };
  let sum = 0;
  for (const [, number, unit = "s"] of duration.matchAll(/(\d+\.?\d*|\.\d+)(ms|us|µs|ns|h|m|s)/g))
    sum += Number(number) * (factors[unit] ?? 1);
  return sum < seconds;
}

/** Rules by kind. */
export const runtimeRules: Rules = {
  EventSinkConfig: ({ endpoint }) => [
    !/^(?:\[[^\]]*\]|[^:[\]]*):[^:]*$/.test(textOf(endpoint)) && "endpoint must be an address with port",
  ],
  KmsgLogConfig: (document, { minor }) => kmsgErrors(document, minor),
  WatchdogTimerConfig: (document) => [
    needs(document, "device"),
    isShorter(textOf(document["timeout"]), watchdogSecondsMin) &&
      `timeout must be at least ${watchdogSecondsMin}s`,
  ],
  OOMConfig: (document) => [
    expression(document, "OOM trigger", "triggerExpression"),
    expression(document, "OOM ranking", "cgroupRankingExpression"),
    notNegative(document, "sampleInterval"),
  ],
  EnvironmentConfig: ({ variables }) =>
    Object.keys(isObject(variables) ? variables : {}).map(
      (name) =>
        !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && `variables.${name.slice(0, 128)} is no name of a variable`,
    ),
  ExtensionServiceConfig: (document) => [
    needsList(document, "configFiles") !== false &&
      needsList(document, "environment") !== false &&
      "configFiles or environment is required",
    ...["content", "mountPath"].map(
      (key) =>
        objects(document["configFiles"]).some((entry) => textOf(entry[key]) === "") &&
        `an entry of configFiles has no ${key}`,
    ),
  ],
  EtcFileConfig: (document) => [etcFileError(document)],
  UnattendedInstallConfig: (document) => [
    needsExpression(document, "disk", "provisioning", "diskSelector", "match"),
  ],
  RegistryMirrorConfig: ({ endpoints }) => [
    objects(endpoints).some((entry) => !/^https?:/i.test(textOf(entry["url"]))) &&
      "an entry of endpoints has no http or https URL",
  ],
  RegistryAuthConfig: (document) => {
    const has = (key: string): boolean => textOf(document[key]) !== "";
    return [
      has("username") && has("identityToken") && "username and identityToken exclude each other",
      has("auth") && (has("username") || has("identityToken")) && "auth excludes username and identityToken",
    ];
  },
  RegistryTLSConfig: ({ ca, clientIdentity }) => [
    textOf(ca) !== "" && !isPemCertificate(ca) && "ca is no certificate",
    isObject(clientIdentity) &&
      !isPemCertificate(clientIdentity["cert"]) &&
      "clientIdentity.cert is no certificate",
    isObject(clientIdentity) && !isPemKey(clientIdentity["key"]) && "clientIdentity.key is no key",
  ],
  CRIBaseRuntimeSpecConfig: ({ overrides }) => [
    !isOciSpecification(overrides) && "overrides is no OCI runtime specification",
  ],
  CRICustomizationConfig: ({ name }) => [
    textOf(name) !== "" && !isQualifiedName(textOf(name)) && "name is no qualified name",
    textOf(name) === "customization" && "name is reserved",
  ],
  ImageVerificationConfig: (document) => eachOf(document, "rules", verifierErrors),
  SideroLinkConfig: siderolinkErrors,
  DiscoveryIdentityConfig: (document) => [
    needs(document, "clusterID"),
    needs(document, "clusterSecret") ||
      (Buffer.from(textOf(document["clusterSecret"]), "base64").length !== 32 &&
        "clusterSecret must be 32 bytes in base64") ||
      (!/^[A-Za-z0-9+/\r\n]*={0,2}$/.test(textOf(document["clusterSecret"])) &&
        "clusterSecret must be base64"),
  ],
  DiscoveryServiceConfig: (document) => [needs(document, "endpoint"), endpointPathError(document)],
};
