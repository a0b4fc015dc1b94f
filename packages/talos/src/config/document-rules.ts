/**
 * The validation rules of all documents but the main one.
 *
 * What a field must hold to be of use; that it has the right type is the shape's business. CEL
 * expressions are only checked for closed brackets and texts: evaluating them is the node's.
 */
import { at, isObject } from "@kontinuum/std";
import ipaddr from "ipaddr.js";
import { isMainDocument, type ConfigDocument } from "./config-document.ts";
import { documentKinds } from "./document-shapes.ts";
import { documentsOfKind, mainDocumentOf, readMachineConfig, textOf, texts } from "./machine-config-facts.ts";

type Rule = (document: ConfigDocument) => readonly (string | false)[];

/** A field that must not be empty. */
const needs = (document: ConfigDocument, ...path: string[]): string | false =>
  textOf(at(document, ...path)) === "" && `${path.join(".")} is required`;

const needsList = (document: ConfigDocument, ...path: string[]): string | false => {
  const value = at(document, ...path);
  return !(Array.isArray(value) && value.length > 0) && `${path.join(".")} is required`;
};

const needsAddressName: Rule = (document) => [
  textOf(document["name"]) !== "" &&
    !ipaddr.isValid(textOf(document["name"])) &&
    "name must be an IP address",
];

const between = (document: ConfigDocument, key: string, low: number, high: number): string | false => {
  const value = document[key];
  return (
    value !== undefined &&
    !(Number(value) >= low && Number(value) <= high) &&
    `${key} must be between ${low} and ${high}`
  );
};

const rules: Readonly<Record<string, Rule>> = {
  BondConfig: (document) => [needsList(document, "links"), needs(document, "bondMode")],
  VLANConfig: (document) => [
    needs(document, "vlanID"),
    between(document, "vlanID", 1, 4094),
    needs(document, "parent"),
  ],
  Layer2VIPConfig: (document) => [...needsAddressName(document), needs(document, "link")],
  HCloudVIPConfig: (document) => [...needsAddressName(document), needs(document, "link")],
  StaticHostConfig: (document) => [...needsAddressName(document), needsList(document, "hostnames")],
  KmsgLogConfig: (document) => [needs(document, "url")],
  SideroLinkConfig: (document) => [needs(document, "apiUrl")],
  EventSinkConfig: ({ endpoint }) => [
    !/^\S+:\d{1,5}$/.test(textOf(endpoint)) && "endpoint must be an address with port",
  ],
  WatchdogTimerConfig: (document) => [needs(document, "device")],
  ExtensionServiceConfig: (document) => [
    needsList(document, "configFiles") !== false &&
      needsList(document, "environment") !== false &&
      "configFiles or environment is required",
  ],
  NetworkRuleConfig: (document) => [needsList(document, "portSelector", "ports")],
  ZswapConfig: (document) => [between(document, "maxPoolPercent", 0, 100)],
  OOMConfig: ({ triggerExpression, cgroupRankingExpression }) => [
    !isClosed(textOf(triggerExpression)) && "triggerExpression is not an expression",
    !isClosed(textOf(cgroupRankingExpression)) && "cgroupRankingExpression is not an expression",
  ],
  UserVolumeConfig: (document) =>
    textOf(document["volumeType"]) === "directory" ? [] : provisionedErrors(document),
  RawVolumeConfig: (document) => provisionedErrors(document),
  SwapVolumeConfig: (document) => provisionedErrors(document),
  VolumeConfig: ({ name, provisioning }) => [
    textOf(name) !== "" &&
      !["STATE", "EPHEMERAL", "IMAGECACHE"].includes(textOf(name)) &&
      "name must be STATE, EPHEMERAL or IMAGECACHE",
    !isClosed(textOf(at(provisioning, "diskSelector", "match"))) &&
      "provisioning.diskSelector.match is not an expression",
  ],
};

function provisionedErrors(document: ConfigDocument): (string | false)[] {
  const match = textOf(at(document, "provisioning", "diskSelector", "match"));
  const wholeDisk = textOf(document["volumeType"]) === "disk";
  const sized = ["minSize", "maxSize"].some((key) => textOf(at(document, "provisioning", key)) !== "");
  return [
    match === "" && "provisioning.diskSelector.match is required",
    !isClosed(match) && "provisioning.diskSelector.match is not an expression",
    !sized && !wholeDisk && "provisioning.minSize or provisioning.maxSize is required",
  ];
}

/** Whether brackets and texts of an expression are closed. */
export function isClosed(expression: string): boolean {
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
    if (isObject(document["encryption"]) && textOf(at(document, "encryption", "provider")) !== "luks2") {
      errors.push(`${place}: encryption.provider must be luks2`);
    }
  }
  return [...errors, ...hostnameErrors(documents), ...encryptionKeyErrors(documents)];
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
    at(main, "machine", "features", "stableHostname") === true &&
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
  return texts(value).every((entry) => ipaddr.isValidCIDR(entry.replace(/^!/, "")));
}
