/**
 * The algebra of field ownership (structured-merge-diff "updater"): what a write and an apply do to the
 * owners, what conflicts, and what an apply removes.
 *
 * Invariant: an owner loses a path only when another writer changed or removed it, or when its own next apply
 * leaves it out. Applying the same configuration again changes neither object nor owners.
 */
import type { JsonObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import {
  difference,
  emptySet,
  FieldSetBuilder,
  intersection,
  isEmptySet,
  union,
  type FieldSet,
} from "./field-set.ts";
import { setFields, type Managed, type ManagedEntry } from "./managed-fields.ts";
import type { ObjectVersions } from "./object-versions.ts";
import { compareScoped, scoped, type Comparison, type FieldScope } from "./typed-compare.ts";
import { mergeTyped } from "./typed-merge.ts";
import { removeFields, withNamedFields } from "./typed-remove.ts";
import { containersOf, fieldsOf } from "./typed-value.ts";

/** Fields a writer wants to set that others own with another value, by owner. */
export type Conflicts = ReadonlyMap<string, { readonly entry: ManagedEntry; readonly fields: FieldSet }>;

/** Fields the server owns and nobody else: never recorded. */
export const serverFields: FieldSet = (() => {
  const set = new FieldSetBuilder();
  for (const name of ["apiVersion", "kind", "metadata"]) set.at(`f:${name}`).isMember = true;
  for (const name of [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
  ])
    set.at("f:metadata").at(`f:${name}`).isMember = true;
  return set.build();
})();

/**
 * Owners after a change of `before` to `after` by the owner `writer`: others lose what was modified or
 * removed. Returns the conflicts instead when there are any and `force` is false. `managed` is changed. `known` is the
 * comparison in the request's own version, where it was made already.
 */
async function transfer(
  versions: ObjectVersions,
  managed: Managed,
  writer: string,
  before: JsonObject,
  after: JsonObject,
  scope: FieldScope,
  force: boolean,
  known?: Comparison,
): Promise<Conflicts> {
  const comparisons = new Map<string, Comparison>(known ? [[versions.apiVersion, known]] : []);
  const conflicts = new Map<string, { readonly entry: ManagedEntry; readonly fields: FieldSet }>();
  const losses: (() => void)[] = [];
  for (const [key, entry] of managed) {
    if (key === writer) continue;
    const { apiVersion } = entry;
    const type = versions.typeOf(apiVersion);
    if (!type) {
      managed.delete(key);
      continue;
    }
    let comparison = comparisons.get(apiVersion);
    if (!comparison) {
      comparison = compareScoped(
        type,
        await versions.convert(before, apiVersion),
        await versions.convert(after, apiVersion),
        scope,
      );
      comparisons.set(apiVersion, comparison);
    }
    const taken = intersection(entry.fields, union(comparison.modified, comparison.added));
    if (!isEmptySet(taken)) conflicts.set(key, { entry, fields: taken });
    const { removed } = comparison;
    if (!isEmptySet(taken) || !isEmptySet(removed))
      losses.push(() => setFields(managed, key, entry, difference(difference(entry.fields, taken), removed)));
  }
  if (!force && conflicts.size > 0) return conflicts;
  for (const lose of losses) lose();
  return new Map();
}

/** Steps that name items; below an atomic list they are what is left of an earlier, granular type. */
const isItemStep = (step: string): boolean => !step.startsWith("f:");

/** A recorded set, fitted to the type as it is now: what became atomic is owned as a whole. */
function fitToType(type: TypeNode, set: FieldSet): FieldSet {
  if (set.children.size === 0 || type.type === "scalar") return set;
  const isWhole =
    (type.type === "map" && type.atomic) ||
    (type.type === "list" && type.listType === "atomic") ||
    (type.type === "untyped" && [...set.children.keys()].some(isItemStep));
  if (isWhole) return { isMember: true, children: emptySet.children };
  const children = new Map<string, FieldSet>();
  for (const [step, child] of set.children) {
    const below =
      type.type === "list"
        ? type.item()
        : type.type === "map"
          ? type.field(step.slice(2))
          : ({ type: "untyped" } as const);
    children.set(step, below ? fitToType(below, child) : child);
  }
  return { isMember: set.isMember, children };
}

/** Fits every owner's record to the types as they are now, in place. */
export function reconcileWithTypes(versions: ObjectVersions, managed: Managed): void {
  for (const [key, entry] of managed) {
    const type = versions.typeOf(entry.apiVersion);
    if (type) managed.set(key, { ...entry, fields: fitToType(type, entry.fields) });
  }
}

/**
 * Owners after an ordinary write. Every owner, the writer's older record included, loses what changed.
 *
 * @returns what the writer gained.
 */
export async function recordWrite(
  versions: ObjectVersions,
  managed: Managed,
  before: JsonObject,
  after: JsonObject,
  scope: FieldScope,
): Promise<FieldSet> {
  const type = versions.typeOf(versions.apiVersion);
  if (!type) return emptySet;
  const comparison = compareScoped(type, before, after, scope);
  const { added, modified } = comparison;
  await transfer(versions, managed, "", before, after, scope, true, comparison);
  return difference(union(added, modified), serverFields);
}

/** What an apply makes. */
export type Applied =
  | { readonly object: JsonObject; readonly managed: Managed; readonly conflicts?: undefined }
  | { readonly conflicts: Conflicts };

/** One apply. */
export interface Application {
  readonly versions: ObjectVersions;
  readonly live: JsonObject;
  readonly config: JsonObject;
  readonly managed: Managed;
  /** Key and identity of the applying owner; its `fields` are not read. */
  readonly key: string;
  readonly entry: ManagedEntry;
  readonly scope: FieldScope;
  readonly force: boolean;
}

/** Merges a configuration, removes what the owner no longer applies, and settles ownership. */
export async function applyConfiguration(application: Application): Promise<Applied> {
  const { versions, live, config, key, entry, scope, force } = application;
  const managed: Managed = new Map(application.managed);
  const type = versions.typeOf(versions.apiVersion);
  if (!type) throw new Error(`no type for ${versions.apiVersion}`);
  const previous = managed.get(key);
  const fields = difference(scoped(fieldsOf(type, config), scope), serverFields);
  managed.set(key, { ...entry, fields });
  const merged = mergeTyped(type, live, config);
  // What the owner holds still has an owner: most applies leave nothing out.
  const leavesOut =
    previous !== undefined &&
    (previous.apiVersion !== entry.apiVersion || !isEmptySet(difference(previous.fields, fields)));
  const object = leavesOut ? await prune(application, merged, managed, previous) : merged;
  const conflicts = await transfer(versions, managed, key, live, object, scope, force);
  if (conflicts.size > 0) return { conflicts };
  setFields(managed, key, { ...entry, fields }, fields);
  return { object, managed };
}

/**
 * Removes what the owner's previous configuration held, the new one does not, and nobody else owns
 * (structured-merge-diff "prune").
 */
async function prune(
  { versions, scope, config }: Application,
  merged: JsonObject,
  managed: Managed,
  previous: ManagedEntry,
): Promise<JsonObject> {
  const type = versions.typeOf(previous.apiVersion);
  if (!type || isEmptySet(previous.fields)) return merged;
  const base = await versions.convert(merged, previous.apiVersion);
  const last = withNamedFields(type, scoped(previous.fields, scope));
  let pruned = removeFields(type, base, last);
  const owned = new Map<string, FieldSet>();
  for (const entry of managed.values())
    owned.set(entry.apiVersion, union(owned.get(entry.apiVersion) ?? emptySet, entry.fields));
  // The version of the previous record comes first, so that conversions see no half-removed fields.
  const order = [previous.apiVersion, ...[...owned.keys()].filter((v) => v !== previous.apiVersion)];
  for (const apiVersion of order) {
    const fields = owned.get(apiVersion);
    const ownedType = versions.typeOf(apiVersion);
    if (!fields || !ownedType) continue;
    const whole = await versions.convert(merged, apiVersion);
    const rest = await versions.convert(pruned, apiVersion);
    const keep = union(
      withNamedFields(ownedType, fieldsOf(ownedType, rest)),
      withNamedFields(ownedType, fields),
    );
    pruned = removeFields(
      ownedType,
      whole,
      difference(withNamedFields(ownedType, fieldsOf(ownedType, whole)), keep),
    );
  }
  const rest = await versions.convert(pruned, previous.apiVersion);
  const gone = difference(
    withNamedFields(type, fieldsOf(type, base)),
    withNamedFields(type, fieldsOf(type, rest)),
  );
  // A container the configuration names stays, be it empty: else the next apply would bring it back.
  const named = previous.apiVersion === versions.apiVersion ? containersOf(type, config) : emptySet;
  const result = removeFields(type, base, difference(intersection(gone, last), named));
  return versions.convert(result, versions.apiVersion);
}
