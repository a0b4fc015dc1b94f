/**
 * What an Addon asks for, once the defaults of its release are filled in. Pure.
 *
 * Everything that becomes an argument of another program is checked here: names are names, addresses are
 * https or oci, and nothing can be taken for a flag.
 */
import { CodedError, isDnsLabel, isObject, type JsonObject } from "@kontinuum/std";
import type { Addon, ProvisioningMethod } from "../../kinds/index.ts";
import { builtinAddon } from "./builtin-addons.ts";

/** Where a chart comes from. */
export interface ChartRef {
  /** Absent: `name` is an oci:// reference, or a chart of the offline folder. */
  readonly repo?: string;
  readonly name: string;
  /** Absent: the newest. */
  readonly version?: string;
}

/** An addon ready to be installed. */
export interface ResolvedAddon {
  readonly release: string;
  readonly chart: ChartRef;
  readonly namespace: string;
  readonly method: ProvisioningMethod;
  /** Defaults, with `$cel` fields not computed yet. */
  readonly defaults: JsonObject;
  /** What the user set; never computed. */
  readonly values: JsonObject;
}

/** The release name: the object's own name unless set. */
export const releaseOf = ({ spec, metadata }: Addon): string => spec.releaseName || metadata.name;

/** Whether the addon is to be kept installed. */
export const isEnabled = ({ spec }: Addon): boolean => spec.enabled !== false;

/** Lower comes first. */
export const priorityOf = (addon: Addon): number =>
  addon.spec.lifecycle?.priority ?? builtinAddon(releaseOf(addon))?.priority ?? 100;

/** Resolves an addon. Fails with `invalid_argument`, naming the field. */
export function resolveAddon(addon: Addon): ResolvedAddon {
  const { spec } = addon;
  const release = releaseOf(addon);
  const defaults = builtinAddon(release);
  const name = spec.chart?.name || defaults?.chart || release;
  const repo = spec.chart?.repo || (spec.chart?.name ? undefined : defaults?.repo);
  const version = spec.chart?.version || (spec.chart?.name ? undefined : defaults?.version);
  const namespace = spec.namespace?.name || defaults?.namespace;
  if (!isDnsLabel(release)) throw invalid(`spec.releaseName ${JSON.stringify(release)} is not a DNS label`);
  if (namespace === undefined)
    throw invalid("spec.namespace.name is required: this release has no default namespace");
  if (!isDnsLabel(namespace))
    throw invalid(`spec.namespace.name ${JSON.stringify(namespace)} is not a DNS label`);
  if (!isOci(name) && !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) {
    throw invalid(`spec.chart.name ${JSON.stringify(name)} is neither a chart name nor an oci:// reference`);
  }
  if (repo !== undefined && !isHttps(repo))
    throw invalid(`spec.chart.repo ${JSON.stringify(repo)} is not an https address`);
  if (repo === undefined && !isOci(name))
    throw invalid("spec.chart.repo is required unless spec.chart.name is an oci:// reference");
  if (version !== undefined && !/^[A-Za-z0-9][A-Za-z0-9.+_-]*$/.test(version)) {
    throw invalid(`spec.chart.version ${JSON.stringify(version)} is not a version`);
  }
  if (spec.values !== undefined && spec.values !== null && !isObject(spec.values)) {
    throw invalid("spec.values is not a map");
  }
  return {
    release,
    chart: { name, ...(repo === undefined ? {} : { repo }), ...(version === undefined ? {} : { version }) },
    namespace,
    method: spec.lifecycle?.provisioning?.method ?? defaults?.method ?? "HelmUpgradeInstall",
    defaults: defaults?.values ?? {},
    values: isObject(spec.values) ? spec.values : {},
  };
}

/** Whether a chart name is a reference into an OCI registry. */
const isOci = (name: string): boolean => /^oci:\/\/[A-Za-z0-9][A-Za-z0-9._:/-]*$/.test(name);

function isHttps(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.protocol === "https:" && url.username === "" && url.password === "";
}

const invalid = (message: string): CodedError => new CodedError("invalid_argument", message);
