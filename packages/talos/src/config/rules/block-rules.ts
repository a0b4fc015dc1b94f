/**
 * Validation rules of the documents of volumes and file systems.
 */
import { at, isObject } from "@kontinuum/std";
import type { ConfigDocument } from "../config-document.ts";
import { isTrue, objects, textOf } from "../machine-config-facts.ts";
import {
  between,
  expression,
  needs,
  needsExpression,
  notNegative,
  type Finding,
  type Rule,
  type RuleContext,
  type Rules,
} from "./rule.ts";

const units: Readonly<Record<string, number>> = { "": 0, k: 1, m: 2, g: 3, t: 4, p: 5, e: 6 };

/** Longest name of a volume: a partition's label less the prefix Talos puts before it. */
const volumeNameMax = 34;
/** Longest name LVM and md take. */
const storageNameMax: Readonly<Record<string, number>> = {
  LVMVolumeGroupConfig: 63,
  LVMLogicalVolumeConfig: 63,
  RAIDArrayConfig: 32,
};

/** Bytes of `10GiB`; a decimal and a binary unit count by 1000 and by 1024. A percentage is no number of bytes. */
function bytesOf(size: string): number | undefined {
  const match = /^([-+]?)\s*(\d+(?:\.\d+)?)\s*([kmgtpe]?)(i?)b?$/i.exec(size);
  if (!match) return undefined;
  const [, sign, number = "0", unit = "", binary] = match;
  const bytes = Number(number) * (binary ? 1024 : 1000) ** (units[unit.toLowerCase()] ?? 0);
  return sign === "-" ? -bytes : bytes;
}

function sizeOrder(document: ConfigDocument): Finding {
  const [low, high] = ["minSize", "maxSize"].map((key) => bytesOf(textOf(at(document, "provisioning", key))));
  if (textOf(at(document, "provisioning", "minSize")).startsWith("-"))
    return "provisioning.minSize cannot be negative";
  // A negative maximum is counted from the disk's end, so it cannot be compared here.
  return (
    low !== undefined &&
    high !== undefined &&
    high >= 0 &&
    textOf(at(document, "provisioning", "minSize")) !== "" &&
    low > high &&
    "provisioning.minSize exceeds maxSize"
  );
}

function volumeName({ name, kind }: ConfigDocument): Finding {
  const text = textOf(name);
  if (!/^[A-Za-z0-9-]*$/.test(text)) return "name may hold letters, digits and hyphens only";
  return (
    kind !== "ExistingVolumeConfig" &&
    text.length > volumeNameMax &&
    `name must have at most ${volumeNameMax} characters`
  );
}

function storageName({ name, kind }: ConfigDocument): Finding {
  const text = textOf(name);
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return "name may hold letters, digits, hyphens and underscores only";
  const longest = storageNameMax[textOf(kind)] ?? 63;
  return text.length > longest && `name must have at most ${longest} characters`;
}

/** Whether one of the keys says something. */
function states(document: ConfigDocument, key: string): boolean {
  const value = document[key];
  return (
    isObject(value) &&
    Object.values(value).some((entry) => entry !== null && entry !== "" && !isEmptyMapping(entry))
  );
}

function isEmptyMapping(value: unknown): boolean {
  return isObject(value) && Object.values(value).every((entry) => entry === null || entry === "");
}

const sized = (document: ConfigDocument): boolean =>
  ["minSize", "maxSize"].some((key) => textOf(at(document, "provisioning", key)) !== "");

function provisionedErrors(document: ConfigDocument): Finding[] {
  return [
    volumeName(document),
    sizeOrder(document),
    needsExpression(document, "disk", "provisioning", "diskSelector", "match"),
    !sized(document) && "provisioning.minSize or provisioning.maxSize is required",
  ];
}

const userVolume: Rule = (document, context) => {
  const type = textOf(document["volumeType"]);
  const more = [...filesystemErrors(document), ...upkeepErrors(document)];
  if (type === "directory") {
    return [
      volumeName(document),
      ...["provisioning", "encryption", "filesystem"].map(
        (key) => states(document, key) && `${key} is not allowed for volumeType directory`,
      ),
      context.minor >= 13 &&
        at(document, "mount", "disableAccessTime") !== undefined &&
        "mount.disableAccessTime is not allowed for volumeType directory",
      ...upkeepErrors(document),
    ];
  }
  if (type === "disk") {
    const grow: unknown = at(document, "provisioning", "grow");
    return [
      volumeName(document),
      needsExpression(document, "disk", "provisioning", "diskSelector", "match"),
      (sized(document) || (grow !== undefined && grow !== null)) &&
        "provisioning takes neither sizes nor grow for volumeType disk",
      ...more,
    ];
  }
  return [...provisionedErrors(document), ...more];
};

function filesystemErrors(document: ConfigDocument): Finding[] {
  const type = textOf(at(document, "filesystem", "type"));
  const isXfs = type === "" || type === "xfs";
  return [
    isTrue(at(document, "filesystem", "projectQuotaSupport")) &&
      !isXfs &&
      "filesystem.projectQuotaSupport is for xfs only",
    isObject(at(document, "filesystem", "xfs")) && !isXfs && "filesystem.xfs is for xfs only",
  ];
}

/** Regular trimming and checking. */
function upkeepErrors(document: ConfigDocument): Finding[] {
  return [notNegative(document, "trim", "interval"), scrubError(document, "scrub", "interval")];
}

/** Seconds of a duration of Go; only as exact as comparing with ten seconds needs. */
function secondsOf(duration: string): number {
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
  return duration.startsWith("-") ? -sum : sum;
}

/** Seconds between two checks at least. */
const scrubSecondsMin = 10;

function scrubError(document: ConfigDocument, ...path: string[]): Finding {
  const interval = textOf(at(document, ...path));
  const seconds = secondsOf(interval);
  return (
    interval !== "" &&
    seconds !== 0 &&
    seconds < scrubSecondsMin &&
    `${path.join(".")} must be at least ${scrubSecondsMin}s`
  );
}

const systemVolumes = ["STATE", "EPHEMERAL", "IMAGECACHE"];
/** Directories of EPHEMERAL that may get a partition of their own. */
const promotableVolumes = ["ETCD", "CRI", "KUBELET", "LOG"];

const systemVolume: Rule = (document, { minor }: RuleContext) => {
  const name = textOf(document["name"]);
  const allowed = minor >= 14 ? [...systemVolumes, ...promotableVolumes] : systemVolumes;
  if (!allowed.includes(name)) return [`name must be one of ${allowed.join(", ")}`];
  const mounted = states(document, "mount");
  const locked = objects(at(document, "encryption", "keys")).some(({ lockToState }) => isTrue(lockToState));
  return [
    sizeOrder(document),
    minor < 13 &&
      textOf(at(document, "provisioning", "maxSize")).startsWith("-") &&
      "provisioning.maxSize cannot be negative before Talos 1.13",
    expression(document, "disk", "provisioning", "diskSelector", "match"),
    name === "STATE" && states(document, "provisioning") && "provisioning is not allowed for STATE",
    name === "STATE" && locked && "a key with lockToState is not allowed for STATE",
    (name === "STATE" || name === "IMAGECACHE") && mounted && `mount is not allowed for ${name}`,
    name === "IMAGECACHE" && states(document, "filesystem") && "filesystem is not allowed for IMAGECACHE",
    promotableVolumes.includes(name) &&
      mounted &&
      !states(document, "provisioning") &&
      `mount is only allowed for ${name} on a partition of its own`,
    ...upkeepErrors(document),
  ];
};

const mirrored = ["raid1", "raid10"];
const striped = ["raid0", "raid10"];

/** Rules by kind. */
export const blockRules: Rules = {
  VolumeConfig: systemVolume,
  UserVolumeConfig: userVolume,
  RawVolumeConfig: provisionedErrors,
  SwapVolumeConfig: provisionedErrors,
  ExistingVolumeConfig: (document) => [
    volumeName(document),
    needsExpression(document, "volume", "discovery", "volumeSelector", "match"),
    ...upkeepErrors(document),
  ],
  ExternalVolumeConfig: (document) => [
    volumeName(document),
    needs(document, "filesystemType"),
    needs(document, "mount", "virtiofs", "tag"),
  ],
  ZswapConfig: (document) => [between(document, "maxPoolPercent", 0, 100)],
  FilesystemTrimConfig: (document) => [notNegative(document, "interval")],
  FilesystemScrubConfig: (document) => [scrubError(document, "interval")],
  LVMVolumeGroupConfig: (document) => [
    storageName(document),
    needsExpression(document, "member volume", "provisioning", "volumeSelector", "match"),
  ],
  LVMLogicalVolumeConfig: (document) => {
    const type = textOf(document["type"]);
    const { mirrors, stripes } = document;
    return [
      storageName(document),
      mirrors != null && !mirrored.includes(type) && "mirrors needs type raid1 or raid10",
      mirrors != null && mirrored.includes(type) && Number(mirrors) < 1 && "mirrors must be at least 1",
      stripes != null && !striped.includes(type) && "stripes needs type raid0 or raid10",
      stripes != null && striped.includes(type) && Number(stripes) < 2 && "stripes must be at least 2",
      needs(document, "provisioning", "volumeGroup"),
      needs(document, "provisioning", "maxSize"),
      textOf(at(document, "provisioning", "maxSize")).startsWith("-") &&
        "provisioning.maxSize cannot be negative",
      sizeOrder(document),
    ];
  },
  RAIDArrayConfig: (document) => [
    storageName(document),
    needsExpression(document, "member volume", "provisioning", "volumeSelector", "match"),
  ],
};
