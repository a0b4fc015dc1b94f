/**
 * The validation rules of all documents but the main one.
 *
 * What a field must hold to be of use; that it has the right type is the shape's business. CEL
 * expressions are only checked for closed brackets and texts: evaluating them is the node's.
 */
import { at, isObject } from "@kontinuum/std";
import { parseCertificate, pemLabel } from "../pki/pem.ts";
import { isMainDocument, type ConfigDocument } from "./config-document.ts";
import { documentKinds } from "./document-kinds.ts";
import { isAddress, isNetwork } from "./ip-text.ts";
import {
  documentsOfKind,
  isTrue,
  mainDocumentOf,
  objects,
  readMachineConfig,
  textOf,
  texts,
} from "./machine-config-facts.ts";

type Rule = (document: ConfigDocument) => readonly (string | false)[];

/** A field that must not be empty. */
const needs = (document: ConfigDocument, ...path: string[]): string | false =>
  textOf(at(document, ...path)) === "" && `${path.join(".")} is required`;

const needsList = (document: ConfigDocument, ...path: string[]): string | false => {
  const value = at(document, ...path);
  return !(Array.isArray(value) && value.length > 0) && `${path.join(".")} is required`;
};

const needsAddressName: Rule = (document) => [
  textOf(document["name"]) !== "" && !isAddress(textOf(document["name"])) && "name must be an IP address",
];

const between = (document: ConfigDocument, key: string, low: number, high: number): string | false => {
  const value = document[key];
  return (
    value !== undefined &&
    !(Number(value) >= low && Number(value) <= high) &&
    `${key} must be between ${low} and ${high}`
  );
};

/** Routing tables the kernel keeps for itself. */
const reservedTables = new Set(["", "unspec", "default", "main", "local", "0", "253", "254", "255"]);

/** 32 bytes in base64 (WireGuard). */
function isWireguardKey(value: unknown): boolean {
  const text = textOf(value);
  return /^[A-Za-z0-9+/]{43}=$/.test(text) && Buffer.from(text, "base64").length === 32;
}

function isPemCertificate(value: unknown): boolean {
  try {
    parseCertificate(textOf(value), "certificate");
    return true;
  } catch {
    return false;
  }
}

const rules: Readonly<Record<string, Rule>> = {
  BondConfig: (document) => [needsList(document, "links"), needs(document, "bondMode")],
  VLANConfig: (document) => [
    needs(document, "vlanID"),
    between(document, "vlanID", 1, 4094),
    needs(document, "parent"),
  ],
  Layer2VIPConfig: (document) => [...needsAddressName(document), needs(document, "link")],
  HCloudVIPConfig: (document) => [
    ...needsAddressName(document),
    needs(document, "link"),
    needs(document, "apiToken"),
  ],
  VRFConfig: ({ table }) => [reservedTables.has(textOf(table)) && "table is reserved"],
  WireguardConfig: ({ privateKey, peers }) => [
    !isWireguardKey(privateKey) && "privateKey is no key",
    objects(peers).some(({ publicKey }) => !isWireguardKey(publicKey)) && "a peer's publicKey is no key",
    objects(peers).some(({ presharedKey }) => textOf(presharedKey) !== "" && !isWireguardKey(presharedKey)) &&
      "a peer's presharedKey is no key",
  ],
  RegistryTLSConfig: ({ ca, clientIdentity }) => [
    textOf(ca) !== "" && !isPemCertificate(ca) && "ca is no certificate",
    isObject(clientIdentity) &&
      !isPemCertificate(clientIdentity["cert"]) &&
      "clientIdentity.cert is no certificate",
    isObject(clientIdentity) &&
      pemLabel(textOf(clientIdentity["key"])) === undefined &&
      "clientIdentity.key is no key",
  ],
  StaticHostConfig: (document) => [...needsAddressName(document), needsList(document, "hostnames")],
  KmsgLogConfig: (document) => [
    needs(document, "url"),
    !/^(?:$|(?:tcp|udp):\/\/)/.test(textOf(document["url"])) && "url must begin with tcp:// or udp://",
  ],
  SideroLinkConfig: (document) => [
    needs(document, "apiUrl"),
    !/^(?:$|(?:https|grpc):\/\/)/.test(textOf(document["apiUrl"])) &&
      "apiUrl must begin with https:// or grpc://",
  ],
  RegistryMirrorConfig: ({ endpoints }) => [
    objects(endpoints).some((entry) => !/^https?:\/\/[^/]/.test(textOf(entry["url"]))) &&
      "an entry of endpoints has no http or https URL",
  ],
  RoutingRuleConfig: (document) => [
    textOf(document["table"]) === "" &&
      ["", "unicast"].includes(textOf(document["action"])) &&
      "table is required",
  ],
  ImageVerificationConfig: ({ rules: entries }) => [
    objects(entries).some(({ image }) => textOf(image) === "") && "an entry of rules has no image",
    objects(entries).some(({ keyless }) => isObject(keyless) && textOf(keyless["issuer"]) === "") &&
      "an entry of rules has no issuer",
    objects(entries).some(
      ({ keyless }) => isObject(keyless) && !textOf(keyless["subject"]) && !textOf(keyless["subjectRegex"]),
    ) && "an entry of rules has no subject",
  ],
  TCPProbeConfig: (document) => [needs(document, "endpoint")],
  LinkAliasConfig: (document) => [
    needs(document, "selector", "match"),
    !isClosed(textOf(at(document, "selector", "match"))) && "selector.match is not an expression",
  ],
  BlackholeRouteConfig: ({ name }) => [
    !isNetwork(textOf(name)) && "name must be an address with prefix length",
  ],
  ExternalVolumeConfig: (document) => [
    volumeName(document),
    needs(document, "filesystemType"),
    needs(document, "mount", "virtiofs", "tag"),
  ],
  ExistingVolumeConfig: (document) => [
    volumeName(document),
    needs(document, "discovery", "volumeSelector", "match"),
  ],
  EventSinkConfig: ({ endpoint }) => [
    !/^\S+:\d{1,5}$/.test(textOf(endpoint)) && "endpoint must be an address with port",
  ],
  WatchdogTimerConfig: (document) => [needs(document, "device")],
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
  NetworkRuleConfig: (document) => [
    needsList(document, "portSelector", "ports"),
    objects(document["ingress"]).some(({ subnet }) => textOf(subnet) === "") &&
      "an entry of ingress has no subnet",
  ],
  ZswapConfig: (document) => [between(document, "maxPoolPercent", 0, 100)],
  OOMConfig: ({ triggerExpression, cgroupRankingExpression }) => [
    !isClosed(textOf(triggerExpression)) && "triggerExpression is not an expression",
    !isClosed(textOf(cgroupRankingExpression)) && "cgroupRankingExpression is not an expression",
  ],
  UserVolumeConfig: (document) =>
    textOf(document["volumeType"]) === "directory" ? [] : provisionedErrors(document),
  RawVolumeConfig: (document) => provisionedErrors(document),
  SwapVolumeConfig: (document) => provisionedErrors(document),
  VolumeConfig: (document) => [
    sizeOrder(document),
    !["", "STATE", "EPHEMERAL", "IMAGECACHE"].includes(textOf(document["name"])) &&
      "name must be STATE, EPHEMERAL or IMAGECACHE",
    !isClosed(textOf(at(document, "provisioning", "diskSelector", "match"))) &&
      "provisioning.diskSelector.match is not an expression",
  ],
};

function volumeName({ name }: ConfigDocument): string | false {
  return !/^[A-Za-z0-9-]*$/.test(textOf(name)) && "name may hold letters, digits and hyphens only";
}

const units: Readonly<Record<string, number>> = { "": 0, k: 1, m: 2, g: 3, t: 4, p: 5, e: 6 };

/** Bytes of `10GiB`; a decimal and a binary unit count by 1000 and by 1024. */
function bytesOf(size: string): number | undefined {
  const match = /^([-+]?)\s*(\d+(?:\.\d+)?)\s*([kmgtpe]?)(i?)b?$/i.exec(size);
  if (!match) return undefined;
  const [, sign, number = "0", unit = "", binary] = match;
  const bytes = Number(number) * (binary ? 1024 : 1000) ** (units[unit.toLowerCase()] ?? 0);
  return sign === "-" ? -bytes : bytes;
}

function sizeOrder(document: ConfigDocument): string | false {
  const [low, high] = ["minSize", "maxSize"].map((key) => bytesOf(textOf(at(document, "provisioning", key))));
  if (low !== undefined && low < 0) return "provisioning.minSize cannot be negative";
  // A negative maximum is counted from the disk's end, so it cannot be compared here.
  return (
    low !== undefined &&
    high !== undefined &&
    high > 0 &&
    low > high &&
    "provisioning.minSize exceeds maxSize"
  );
}

function provisionedErrors(document: ConfigDocument): (string | false)[] {
  const match = textOf(at(document, "provisioning", "diskSelector", "match"));
  const wholeDisk = textOf(document["volumeType"]) === "disk";
  const sized = ["minSize", "maxSize"].some((key) => textOf(at(document, "provisioning", key)) !== "");
  return [
    volumeName(document),
    sizeOrder(document),
    match === "" && "provisioning.diskSelector.match is required",
    !isClosed(match) && "provisioning.diskSelector.match is not an expression",
    !sized && !wholeDisk && "provisioning.minSize or provisioning.maxSize is required",
  ];
}

/** Whether brackets and texts of an expression are closed. */
function isClosed(expression: string): boolean {
  const open: string[] = [];
  let quote = "";
  for (let i = 0; i < expression.length; i++) {
    const letter = expression[i] ?? "";
    if (quote) {
      if (letter === "\\") i++;
      else if (letter === quote) quote = "";
    } else if (letter === '"' || letter === "'") quote = letter;
    else if ("([{".includes(letter)) open.push(letter);
    else if (")]}".includes(letter) && open.pop() !== "([{"[")]}".indexOf(letter)]) return false;
  }
  return quote === "" && open.length === 0;
}

/** Errors of all documents but the main one. */
export function documentErrors(documents: readonly ConfigDocument[]): string[] {
  const errors: string[] = [];
  for (const document of documents) {
    if (isMainDocument(document)) continue;
    const kind = String(document["kind"]);
    const name = textOf(document["name"]);
    const place = name === "" ? kind : `${kind} ${name}`;
    const known = Object.hasOwn(documentKinds, kind) ? documentKinds[kind] : undefined;
    if (known?.named && name === "") errors.push(`${kind}: name is required`);
    const found = (Object.hasOwn(rules, kind) && rules[kind]?.(document)) || [];
    for (const error of found) if (error !== false) errors.push(`${place}: ${error}`);
    if (known?.link && objects(document["addresses"]).some((entry) => textOf(entry["address"]) === "")) {
      errors.push(`${place}: an entry of addresses has no address`);
    }
    if (
      Object.keys(encryptionOf(document)).length > 0 &&
      textOf(at(document, "encryption", "provider")) !== "luks2"
    ) {
      errors.push(`${place}: encryption.provider must be luks2`);
    }
  }
  const kubeSpan = isObject(at(mainDocumentOf(documents), "machine", "network", "kubespan"));
  if (kubeSpan && documentsOfKind(documents, "KubeSpanConfig").length > 0) {
    errors.push("KubeSpanConfig conflicts with machine.network.kubespan");
  }
  return [...errors, ...hostnameErrors(documents), ...encryptionKeyErrors(documents)];
}

function encryptionOf({ encryption }: ConfigDocument): Record<string, unknown> {
  return isObject(encryption) ? encryption : {};
}

function hostnameErrors(documents: readonly ConfigDocument[]): string[] {
  const [document] = documentsOfKind(documents, "HostnameConfig");
  if (!document) return [];
  const hostname = textOf(document["hostname"]);
  const auto = textOf(document["auto"]);
  const first = hostname.split(".")[0] ?? "";
  const main = mainDocumentOf(documents);
  const found: (string | false)[] = [
    !hostname && !auto && "either auto or hostname is required",
    hostname !== "" && auto !== "" && auto !== "off" && "auto and hostname exclude each other",
    hostname.length > 253 && "hostname is longer than 253 characters",
    hostname !== "" &&
      (first.length < 1 || first.length > 63) &&
      "the first label of hostname must have 1 to 63 characters",
    textOf(at(main, "machine", "network", "hostname")) !== "" && "conflicts with machine.network.hostname",
    isTrue(at(main, "machine", "features", "stableHostname")) &&
      "conflicts with machine.features.stableHostname",
  ];
  return found.filter((error) => error !== false).map((error) => `HostnameConfig: ${error}`);
}

function encryptionKeyErrors(documents: readonly ConfigDocument[]): string[] {
  const errors: string[] = [];
  for (const { name, keys } of readMachineConfig(documents).volumes) {
    const place = `encryption of ${name}`;
    if (keys.length === 0) errors.push(`${place}: at least one key is required`);
    if (new Set(keys.map(({ slot }) => slot)).size !== keys.length)
      errors.push(`${place}: a slot is there twice`);
    if (keys.some(({ kind }) => kind === "")) errors.push(`${place}: a key states no method`);
  }
  return errors;
}

/** What a node takes but is surely not meant. */
export function documentWarnings(documents: readonly ConfigDocument[]): string[] {
  return readMachineConfig(documents)
    .volumes.filter(({ keys }) => keys.some(({ kind, endpoint }) => kind === "kms" && !endpoint))
    .map(({ name }) => `encryption of ${name}: a KMS key without endpoint cannot be used`);
}

/** Whether every entry is a network, or one left out with `!`. */
export function areSubnets(value: unknown): boolean {
  return texts(value).every((entry) => isNetwork(entry.replace(/^!/, "")));
}
