/**
 * The served groups in order, from the resources served here and those proxied to other servers.
 */
import type { JsonObject } from "@kontinuum/std";
import type { ResourceDefinition, Verb } from "../resource.ts";
import { compareVersions, groupPriority } from "./priority.ts";

/** A resource as discovery shows it, wherever it is served. */
export interface DiscoveredResource {
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly storageVersionHash?: string;
  readonly subresources: readonly {
    readonly name: string;
    readonly verbs: readonly string[];
    readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  }[];
}

/** One version of a group. */
export interface DiscoveredVersion {
  readonly version: string;
  readonly resources: readonly DiscoveredResource[];
  /** The backend could not be asked: last known contents. */
  readonly stale: boolean;
}

/** One group. */
export interface DiscoveredGroup {
  readonly group: string;
  /** Best version first. */
  readonly versions: readonly DiscoveredVersion[];
}

/** A group version that another server serves. */
export interface RemoteGroupVersion extends DiscoveredVersion {
  readonly group: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
}

/** Writing verbs that a terminating definition loses. */
const writing: ReadonlySet<Verb> = new Set(["create", "update", "patch"]);

/** Groups in the order clients are shown. `terminating` holds `<group>/<plural>` of definitions being deleted. */
export function discoverGroups(
  resources: readonly ResourceDefinition[],
  hashOf: (resource: ResourceDefinition) => string,
  terminating: ReadonlySet<string>,
  remote: readonly RemoteGroupVersion[],
): readonly DiscoveredGroup[] {
  const groups = new Map<
    string,
    { priority: number; versions: Map<string, { priority: number; value: DiscoveredVersion }> }
  >();
  const groupOf = (group: string, priority: number) => {
    let found = groups.get(group);
    if (!found) groups.set(group, (found = { priority, versions: new Map() }));
    found.priority = Math.max(found.priority, priority);
    return found;
  };
  const byVersion = new Map<string, ResourceDefinition[]>();
  for (const resource of resources) {
    const id = `${resource.group}/${resource.version}`;
    const list = byVersion.get(id);
    if (list) list.push(resource);
    else byVersion.set(id, [resource]);
  }
  for (const list of byVersion.values()) {
    const [first] = list;
    if (!first) continue;
    const shown = [...list]
      .sort((a, b) => (a.plural < b.plural ? -1 : 1))
      .map((resource) => shownResource(resource, hashOf(resource), terminating));
    const value = { version: first.version, resources: shown, stale: false };
    groupOf(first.group, groupPriority(first.group)).versions.set(first.version, { priority: 0, value });
  }
  for (const { group, groupPriority: priority, versionPriority, ...value } of remote) {
    const { versions } = groupOf(group, priority);
    if (!versions.has(value.version)) versions.set(value.version, { priority: versionPriority, value });
  }
  return [...groups]
    .sort(([a, { priority: pa }], [b, { priority: pb }]) => pb - pa || (a < b ? -1 : 1))
    .map(([group, { versions }]) => ({
      group,
      versions: [...versions.values()]
        .sort((a, b) => b.priority - a.priority || compareVersions(a.value.version, b.value.version))
        .map(({ value }) => value),
    }));
}

function shownResource(
  resource: ResourceDefinition,
  hash: string,
  terminating: ReadonlySet<string>,
): DiscoveredResource {
  const leaving = terminating.has(`${resource.group}/${resource.plural}`);
  const { group, version, kind } = resource;
  return {
    plural: resource.plural,
    singular: resource.singular,
    kind,
    namespaced: resource.namespaced,
    verbs: [...resource.verbs].filter((verb) => !leaving || !writing.has(verb)).sort(),
    shortNames: resource.shortNames,
    categories: resource.categories,
    ...(hash === "" ? {} : { storageVersionHash: hash }),
    subresources: resource.subresources.map((sub) => ({
      name: sub.name,
      verbs: [...sub.verbs].sort(),
      kind: sub.kind ?? { group, version, kind },
    })),
  };
}

const clientAddresses = [{ clientCIDR: "0.0.0.0/0", serverAddress: "" }];

/** `/api`. */
export function apiVersions(): JsonObject {
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: clientAddresses };
}

/** `/apis/<group>`. */
export function apiGroup({ group, versions }: DiscoveredGroup): JsonObject {
  const list = versions.map(({ version }) => ({ groupVersion: `${group}/${version}`, version }));
  return { kind: "APIGroup", apiVersion: "v1", name: group, versions: list, preferredVersion: list[0] };
}

/** `/apis`. */
export function apiGroupList(groups: readonly DiscoveredGroup[]): JsonObject {
  const list = groups
    .filter(({ group }) => group !== "")
    .map((group) => {
      const { kind: _kind, apiVersion: _version, ...rest } = apiGroup(group);
      return rest;
    });
  return { kind: "APIGroupList", apiVersion: "v1", groups: list };
}

/** `/api/v1`, `/apis/<group>/<version>`. */
export function apiResourceList(group: string, { version, resources }: DiscoveredVersion): JsonObject {
  const list: JsonObject[] = [];
  for (const resource of resources) {
    const { plural, singular, namespaced, kind, verbs, shortNames, categories, storageVersionHash } =
      resource;
    list.push({
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames.length > 0 ? { shortNames } : {}),
      ...(categories.length > 0 ? { categories } : {}),
      ...(storageVersionHash === undefined ? {} : { storageVersionHash }),
    });
    for (const sub of resource.subresources) {
      const foreign = sub.kind.group !== group || sub.kind.version !== version;
      list.push({
        name: `${plural}/${sub.name}`,
        singularName: "",
        namespaced,
        ...(foreign ? { group: sub.kind.group, version: sub.kind.version } : {}),
        kind: sub.kind.kind,
        verbs: sub.verbs,
      });
    }
  }
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources: list,
  };
}

/** The aggregated form of some groups (apidiscovery.k8s.io/v2). */
export function aggregated(groups: readonly DiscoveredGroup[]): JsonObject {
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: "apidiscovery.k8s.io/v2",
    metadata: {},
    items: groups.map(({ group, versions }) => ({
      metadata: group === "" ? { creationTimestamp: null } : { name: group, creationTimestamp: null },
      versions: versions.map(({ version, resources, stale }) => ({
        version,
        freshness: stale ? "Stale" : "Current",
        resources: resources.map((resource) => aggregatedResource(group, version, resource)),
      })),
    })),
  };
}

function aggregatedResource(group: string, version: string, resource: DiscoveredResource): JsonObject {
  const { plural, singular, kind, namespaced, verbs, shortNames, categories, subresources } = resource;
  return {
    resource: plural,
    responseKind: { group, version, kind },
    scope: namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(subresources.length > 0
      ? {
          subresources: subresources.map((sub) => ({
            subresource: sub.name,
            responseKind: sub.kind,
            verbs: sub.verbs,
          })),
        }
      : {}),
  };
}
