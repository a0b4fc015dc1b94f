/**
 * What a zone may read and write of the hub's key space: one table, deny by default.
 *
 * Reads are filtered, never refused. Writes are checked with the value before and after: a zone's bytes are not
 * trusted, so a value must decode, match its key and its kind, keep uid, owners and finalizers, and change nothing
 * but what the rule allows. The table in docs/zones.md is tested against this file key by key.
 */
import { at, isObject, messageOf, stringAt } from "@kontinuum/std";
import {
  group,
  kontinuumKind,
  labels,
  systemNamespace,
  talosClusterKind,
  instancePoolKind,
  addonKind,
  instanceKind,
  zoneKind,
} from "../kinds/index.ts";

/** The zone that asks. */
export interface ZoneScope {
  /** Name of the Zone object; its cluster and pools have the same name. */
  readonly name: string;
  readonly uid: string;
  readonly region: string;
  readonly zone: string;
}

/** Largest value a zone may store, bytes. */
export const zoneValueLimitBytes = 64 * 1024;

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
  /** Whether the zone may see the object. */
  reads(scope: ZoneScope, place: Place, object: unknown): boolean;
  /** What the zone may write; absent: nothing. */
  readonly writes?: {
    /** `status`: an existing object's status only. `whole`: create, update and delete. */
    readonly extent: "status" | "whole";
    /** Whether this object, before or after the write, is the zone's own. */
    owns(scope: ZoneScope, place: Place, object: unknown): boolean;
    /** Throws when the value is not of the kind. */
    check(object: unknown): unknown;
  };
}

const isHere = (place: Place): boolean => place.namespace === systemNamespace;

const isOwnPlacement = (scope: ZoneScope, object: unknown): boolean =>
  stringAt(object, "spec", "region") === scope.region && stringAt(object, "spec", "zone") === scope.zone;

const isOwnProcess = (scope: ZoneScope, place: Place, object: unknown): boolean =>
  isHere(place) && isOwnPlacement(scope, object);

const isNamedAsZone = (scope: ZoneScope, place: Place): boolean => isHere(place) && place.name === scope.name;

const isOwnInstance = (scope: ZoneScope, place: Place, object: unknown): boolean =>
  isHere(place) &&
  stringAt(object, "metadata", "labels", labels.region) === scope.region &&
  stringAt(object, "metadata", "labels", labels.zone) === scope.zone;

const isOwnAddon = (scope: ZoneScope, place: Place, object: unknown): boolean =>
  isHere(place) && stringAt(object, "spec", "talosClusterRef", "name") === scope.name;

/** A zone's own Lease objects are named after its UID, which no other name can contain. */
export const zoneLeasePrefix = (uid: string): string => `zone-${uid}`;

const isOwnLease = (scope: ZoneScope, place: Place): boolean =>
  isHere(place) &&
  (place.name === zoneLeasePrefix(scope.uid) || place.name.startsWith(`${zoneLeasePrefix(scope.uid)}.`));

/** The Secret in which a process publishes its storage string: for a zone that string holds no credential. */
function isOwnProcessSecret(scope: ZoneScope, place: Place, object: unknown): boolean {
  if (!isHere(place) || !place.name.startsWith("kontinuum-")) return false;
  const data = at(object, "data");
  if (!isObject(data) || Object.keys(data).join() !== "KONTINUUM_SERVER_STORAGE") return false;
  const encoded = stringAt(data, "KONTINUUM_SERVER_STORAGE") ?? "";
  return Buffer.from(encoded, "base64").toString("utf8").startsWith(`grpc://${scope.name}@`);
}

function checkSecret(object: unknown): void {
  if (stringAt(object, "kind") !== "Secret") throw new TypeError("it is not a Secret");
  if ((stringAt(object, "type") ?? "Opaque") !== "Opaque") throw new TypeError("its type is not Opaque");
}

function checkLease(object: unknown): void {
  if (stringAt(object, "kind") !== "Lease") throw new TypeError("it is not a Lease");
  if (!isObject(at(object, "spec"))) throw new TypeError("it has no spec");
}

const always = (): boolean => true;
const ours = `.${group}`;

/** The table. */
export const zoneRules: readonly Rule[] = [
  {
    resource: `zones${ours}`,
    namespaced: true,
    reads: isNamedAsZone,
    writes: { extent: "status", owns: isNamedAsZone, check: zoneKind.resource.parse },
  },
  {
    resource: `talosclusters${ours}`,
    namespaced: true,
    reads: isNamedAsZone,
    writes: { extent: "status", owns: isNamedAsZone, check: talosClusterKind.resource.parse },
  },
  {
    resource: `instancepools${ours}`,
    namespaced: true,
    reads: isNamedAsZone,
    writes: { extent: "status", owns: isNamedAsZone, check: instancePoolKind.resource.parse },
  },
  {
    resource: `instances${ours}`,
    namespaced: true,
    reads: isOwnInstance,
    writes: { extent: "status", owns: isOwnInstance, check: instanceKind.resource.parse },
  },
  {
    resource: `addons${ours}`,
    namespaced: true,
    reads: isOwnAddon,
    writes: { extent: "status", owns: isOwnAddon, check: addonKind.resource.parse },
  },
  {
    resource: `kontinuums${ours}`,
    namespaced: true,
    reads: isOwnProcess,
    writes: { extent: "whole", owns: isOwnProcess, check: kontinuumKind.resource.parse },
  },
  {
    resource: "secrets",
    namespaced: true,
    reads: isOwnProcessSecret,
    writes: { extent: "whole", owns: isOwnProcessSecret, check: checkSecret },
  },
  {
    resource: "leases.coordination.k8s.io",
    namespaced: true,
    reads: isOwnLease,
    writes: { extent: "whole", owns: isOwnLease, check: checkLease },
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
  { resource: "clusterrolebindings.rbac.authorization.k8s.io", namespaced: false, reads: always },
  { resource: "roles.rbac.authorization.k8s.io", namespaced: true, reads: (_scope, place) => isHere(place) },
  {
    resource: "rolebindings.rbac.authorization.k8s.io",
    namespaced: true,
    reads: (_scope, place) => isHere(place),
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

function decode(value: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(value).toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Whether a zone sees a key with this value. */
export function zoneMayRead(scope: ZoneScope, key: string, value: Uint8Array): boolean {
  const found = ruleOf(key);
  return found !== undefined && found.rule.reads(scope, found.place, decode(value));
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
  const old = before && decode(before);
  if (before && !writes.owns(scope, place, old)) return "the object is not the zone's own";
  if (!after)
    return writes.extent === "whole" ? undefined : "a zone may only write the status of this object";
  if (after.length > zoneValueLimitBytes) return `the value is larger than ${zoneValueLimitBytes} bytes`;
  if (!before && writes.extent !== "whole") return "a zone may not create this object";
  const value = decode(after);
  if (!isObject(value)) return "the value is not a JSON object";
  return (
    metadataRefusal(place, old, value) ??
    kindRefusal(writes.check, value) ??
    (writes.owns(scope, place, value) ? undefined : "the object would no longer be the zone's own") ??
    (writes.extent === "status" ? statusOnlyRefusal(old, value) : undefined)
  );
}

function metadataRefusal(place: Place, old: unknown, value: unknown): string | undefined {
  if (stringAt(value, "metadata", "name") !== place.name) return "its name does not match the key";
  if (stringAt(value, "metadata", "namespace") !== place.namespace)
    return "its namespace does not match the key";
  if (old !== undefined && stringAt(value, "metadata", "uid") !== stringAt(old, "metadata", "uid"))
    return "its uid would change";
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

function kindRefusal(check: (object: unknown) => unknown, value: unknown): string | undefined {
  try {
    check(value);
    return undefined;
  } catch (error) {
    return `the value is not valid: ${messageOf(error)}`;
  }
}

/** Everything but status and bookkeeping must be as before. */
function statusOnlyRefusal(old: unknown, value: unknown): string | undefined {
  const rest = (object: unknown): unknown => {
    if (!isObject(object)) return object;
    const { status: _status, metadata, ...others } = object;
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
