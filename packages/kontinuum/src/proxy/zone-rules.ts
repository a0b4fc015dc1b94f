/**
 * What a zone may read and write of the hub's key space: one table, deny by default.
 *
 * Reads are filtered, never refused. Writes are checked with the value before and after: a zone's bytes are not
 * trusted, so a value must pass the hub's own reader and the kind's schema (`zone-value.ts`), match its key, keep uid,
 * owners and finalizers, and change nothing but what the rule allows. The table in docs/zones.md is tested against this file key by key.
 */
import { cloneJson, type ResourceDefinition } from "@kontinuum/kapi";
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import {
  group,
  kontinuumKind,
  labels,
  processSecretName,
  systemNamespace,
  talosClusterKind,
  instancePoolKind,
  addonKind,
  instanceKind,
  zoneKind,
} from "../kinds/index.ts";
import { builtinOf, decodeStored, definitionOf, readZoneValue, storedFormRefusal } from "./zone-value.ts";

export { zoneValueLimitBytes } from "./zone-value.ts";

/** The zone that asks. */
export interface ZoneScope {
  /** Name of the Zone object; its cluster and pools have the same name. */
  readonly name: string;
  readonly uid: string;
  readonly region: string;
  readonly zone: string;
}

/** A key taken apart: `/registry/[<group>/]<plural>/[<namespace>/]<name>`. */
interface Place {
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string;
}

/** One row of the table. */
interface Rule {
  /** `plural.group`, or the plural alone for the core group. */
  readonly resource: string;
  readonly namespaced: boolean;
  /** Whether the zone may see the object; `read` decodes it, for rules that need more than the key. */
  reads(scope: ZoneScope, place: Place, read: () => unknown): boolean;
  /** What the zone may write; absent: nothing. */
  readonly writes?: {
    /** `status`: an existing object's status only. `whole`: create, update and delete. */
    readonly extent: "status" | "whole";
    /** Whether this object, before or after the write, is the zone's own. */
    owns(scope: ZoneScope, place: Place, read: () => unknown): boolean;
    /** What the value must be. */
    readonly definition: ResourceDefinition;
    /** A rule beyond the kind's schema: why the value is refused. */
    refusal?(object: JsonObject): string | undefined;
  };
}

const isHere = (place: Place): boolean => place.namespace === systemNamespace;

const isOwnPlacement = (scope: ZoneScope, object: unknown): boolean =>
  stringAt(object, "spec", "region") === scope.region && stringAt(object, "spec", "zone") === scope.zone;

const isOwnProcess = (scope: ZoneScope, place: Place, read: () => unknown): boolean =>
  isHere(place) && isOwnPlacement(scope, read());

const isNamedAsZone = (scope: ZoneScope, place: Place): boolean => isHere(place) && place.name === scope.name;

function isOwnInstance(scope: ZoneScope, place: Place, read: () => unknown): boolean {
  if (!isHere(place)) return false;
  const given = at(read(), "metadata", "labels");
  return stringAt(given, labels.region) === scope.region && stringAt(given, labels.zone) === scope.zone;
}

const isOwnAddon = (scope: ZoneScope, place: Place, read: () => unknown): boolean =>
  isHere(place) && stringAt(read(), "spec", "talosClusterRef", "name") === scope.name;

/** A zone's own Lease objects are named after its UID, which no other name can contain. */
export const zoneLeasePrefix = (uid: string): string => `zone-${uid}`;

const isOwnLease = (scope: ZoneScope, place: Place): boolean =>
  isHere(place) &&
  (place.name === zoneLeasePrefix(scope.uid) || place.name.startsWith(`${zoneLeasePrefix(scope.uid)}.`));

/** The Secret in which a process publishes its storage string: for a zone that string holds no credential. */
function isOwnProcessSecret(scope: ZoneScope, place: Place, read: () => unknown): boolean {
  if (!isHere(place) || !place.name.startsWith(processSecretName(""))) return false;
  const data = at(read(), "data");
  if (!isObject(data) || Object.keys(data).join() !== "KONTINUUM_SERVER_STORAGE") return false;
  const encoded = stringAt(data, "KONTINUUM_SERVER_STORAGE") ?? "";
  return Buffer.from(encoded, "base64").toString("utf8").startsWith(`grpc://${scope.name}@`);
}

const opaqueOnly = (object: JsonObject): string | undefined =>
  (object["type"] ?? "Opaque") === "Opaque" ? undefined : "its type is not Opaque";

/**
 * Bindings a zone's own server needs to decide about its users: the built-in ones, ours, and those that name groups
 * only. Which users and service accounts of the hub have which rights is no business of a zone.
 */
function isSharedBinding(read: () => unknown): boolean {
  const object = read();
  const given = at(object, "metadata", "labels");
  if (stringAt(given, "kubernetes.io/bootstrapping") === "rbac-defaults") return true;
  if (stringAt(given, labels.managedBy) !== undefined) return true;
  const subjects = at(object, "subjects");
  return (
    Array.isArray(subjects) &&
    subjects.length > 0 &&
    subjects.every((subject) => stringAt(subject, "kind") === "Group")
  );
}

const always = (): boolean => true;
const ours = `.${group}`;

/** The table. */
export const zoneRules: readonly Rule[] = [
  {
    resource: `zones${ours}`,
    namespaced: true,
    reads: isNamedAsZone,
    writes: { extent: "status", owns: isNamedAsZone, definition: definitionOf(zoneKind.crd) },
  },
  {
    resource: `talosclusters${ours}`,
    namespaced: true,
    reads: isNamedAsZone,
    writes: { extent: "status", owns: isNamedAsZone, definition: definitionOf(talosClusterKind.crd) },
  },
  {
    resource: `instancepools${ours}`,
    namespaced: true,
    reads: isNamedAsZone,
    writes: { extent: "status", owns: isNamedAsZone, definition: definitionOf(instancePoolKind.crd) },
  },
  {
    resource: `instances${ours}`,
    namespaced: true,
    reads: isOwnInstance,
    writes: { extent: "status", owns: isOwnInstance, definition: definitionOf(instanceKind.crd) },
  },
  {
    resource: `addons${ours}`,
    namespaced: true,
    reads: isOwnAddon,
    writes: { extent: "status", owns: isOwnAddon, definition: definitionOf(addonKind.crd) },
  },
  {
    resource: `kontinuums${ours}`,
    namespaced: true,
    reads: isOwnProcess,
    writes: { extent: "whole", owns: isOwnProcess, definition: definitionOf(kontinuumKind.crd) },
  },
  {
    resource: "secrets",
    namespaced: true,
    reads: isOwnProcessSecret,
    writes: {
      extent: "whole",
      owns: isOwnProcessSecret,
      definition: builtinOf("", "secrets"),
      refusal: opaqueOnly,
    },
  },
  {
    resource: "leases.coordination.k8s.io",
    namespaced: true,
    reads: isOwnLease,
    writes: { extent: "whole", owns: isOwnLease, definition: builtinOf("coordination.k8s.io", "leases") },
  },
  {
    resource: "namespaces",
    namespaced: false,
    reads: (_scope, place) => place.name === systemNamespace || place.name === "default",
  },
  {
    resource: "customresourcedefinitions.apiextensions.k8s.io",
    namespaced: false,
    reads: (_scope, place) => place.name.endsWith(ours),
  },
  { resource: "apiservices.apiregistration.k8s.io", namespaced: false, reads: always },
  { resource: "clusterroles.rbac.authorization.k8s.io", namespaced: false, reads: always },
  {
    resource: "clusterrolebindings.rbac.authorization.k8s.io",
    namespaced: false,
    reads: (_scope, _place, read) => isSharedBinding(read),
  },
  { resource: "roles.rbac.authorization.k8s.io", namespaced: true, reads: (_scope, place) => isHere(place) },
  {
    resource: "rolebindings.rbac.authorization.k8s.io",
    namespaced: true,
    reads: (_scope, place, read) => isHere(place) && isSharedBinding(read),
  },
];

const byResource = new Map(zoneRules.map((rule) => [rule.resource, rule]));
const root = "/registry/";

/** The rule of a key, or `undefined`: nobody's business of a zone. */
function ruleOf(key: string): { rule: Rule; place: Place } | undefined {
  if (!key.startsWith(root)) return undefined;
  const parts = key.slice(root.length).split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return undefined;
  const [first = "", second = ""] = parts;
  // Every group of the table has a dot and no core plural has one; other groups are nobody's business of a zone.
  const [resource, rest] = first.includes(".")
    ? [`${second}.${first}`, parts.slice(2)]
    : [first, parts.slice(1)];
  const rule = byResource.get(resource);
  if (!rule || rest.length !== (rule.namespaced ? 2 : 1)) return undefined;
  const [namespace, name = ""] = rule.namespaced ? rest : [undefined, rest[0]];
  return { rule, place: { plural: resource, namespace, name } };
}

/** Whether a zone sees a key with this value. */
export function zoneMayRead(scope: ZoneScope, key: string, value: Uint8Array): boolean {
  const found = ruleOf(key);
  return found !== undefined && found.rule.reads(scope, found.place, () => decodeStored(value));
}

/**
 * Why a zone may not make this change, or `undefined` when it may. `before` is absent for a create, `after` for a delete.
 */
export function zoneWriteRefusal(
  scope: ZoneScope,
  key: string,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): string | undefined {
  const found = ruleOf(key);
  const writes = found?.rule.writes;
  if (!found || !writes) return "a zone may not write this key";
  const { place } = found;
  const old = before && decodeStored(before);
  if (before && !writes.owns(scope, place, () => old)) return "the object is not the zone's own";
  if (!after)
    return writes.extent === "whole" ? undefined : "a zone may only write the status of this object";
  if (!before && writes.extent !== "whole") return "a zone may not create this object";
  const { object, refusal } = { object: undefined, refusal: undefined, ...readZoneValue(after) };
  if (!object) return refusal;
  return (
    metadataRefusal(place, old, object) ??
    storedFormRefusal(writes.definition, object, old) ??
    writes.refusal?.(object) ??
    (writes.owns(scope, place, () => object) ? undefined : "the object would no longer be the zone's own") ??
    (writes.extent === "status" ? statusOnlyRefusal(writes.definition, old, object) : undefined)
  );
}

function metadataRefusal(place: Place, old: unknown, value: unknown): string | undefined {
  if (stringAt(value, "metadata", "name") !== place.name) return "its name does not match the key";
  if (stringAt(value, "metadata", "namespace") !== place.namespace)
    return "its namespace does not match the key";
  if ((stringAt(value, "metadata", "uid") ?? "") === "") return "it has no uid";
  if (old !== undefined && stringAt(value, "metadata", "uid") !== stringAt(old, "metadata", "uid"))
    return "its uid would change";
  // Creation is stated once, and only the hub's API server begins a deletion that waits.
  const fixed = [
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    ...(old === undefined ? [] : ["creationTimestamp"]),
  ];
  if (fixed.some((field) => !isSame(at(value, "metadata", field), at(old, "metadata", field))))
    return "its times of creation and deletion would change";
  if (!isSame(at(value, "metadata", "finalizers") ?? [], at(old, "metadata", "finalizers") ?? []))
    return "its finalizers would change";
  // A zone's own process owns the Secret it publishes; no other owner may be named, or deleting that owner would delete this.
  const owners = at(value, "metadata", "ownerReferences") ?? [];
  const ownProcess =
    place.plural === "secrets" &&
    Array.isArray(owners) &&
    owners.every(
      (owner) =>
        stringAt(owner, "kind") === "Kontinuum" &&
        `kontinuum-${stringAt(owner, "name") ?? ""}` === place.name,
    );
  if (!ownProcess && !isSame(owners, at(old, "metadata", "ownerReferences") ?? []))
    return "its owners would change";
  return undefined;
}

/** Everything but status and bookkeeping must be as before, as the API server shows it: pruned and with its defaults. */
function statusOnlyRefusal(
  definition: ResourceDefinition,
  old: unknown,
  value: JsonObject,
): string | undefined {
  const rest = (object: unknown): unknown => {
    if (!isObject(object)) return object;
    const shown = cloneJson(object);
    definition.prune(shown);
    definition.applyDefaults(shown);
    const { status: _status, metadata, ...others } = shown;
    if (!isObject(metadata)) return others;
    const { managedFields: _managedFields, resourceVersion: _resourceVersion, ...kept } = metadata;
    return { ...others, metadata: kept };
  };
  return isSame(rest(old), rest(value)) ? undefined : "a zone may only write the status of this object";
}

/** Equality of JSON values, whatever the order of keys. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  );
}
