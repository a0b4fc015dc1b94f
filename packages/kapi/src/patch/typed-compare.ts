/**
 * What changed between two values, as field sets (structured-merge-diff "compare"): added, modified and
 * removed paths. Duplicate items of associative lists, which stored objects may hold, count as one item that
 * is compared as a whole.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import { equalJson, own } from "../schema/json-value.ts";
import { FieldSetBuilder, onlySubtrees, withoutSubtrees, type FieldSet } from "./field-set.ts";
import { itemStep } from "./fields-v1.ts";
import {
  entryType,
  itemType,
  shapeOf,
  type GranularList,
  type GranularMap,
  type Shape,
} from "./typed-value.ts";

/** Paths that differ. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** The same place in the three sets being built. */
class Place {
  readonly added: FieldSetBuilder;
  readonly modified: FieldSetBuilder;
  readonly removed: FieldSetBuilder;

  constructor(added: FieldSetBuilder, modified: FieldSetBuilder, removed: FieldSetBuilder) {
    this.added = added;
    this.modified = modified;
    this.removed = removed;
  }

  at(step: string): Place {
    return new Place(this.added.at(step), this.modified.at(step), this.removed.at(step));
  }
}

const isEmptyContainer = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0);

function compareLeaf(left: unknown, right: unknown, place: Place): void {
  if (left === undefined) place.added.isMember = true;
  else if (right === undefined) place.removed.isMember = true;
  else if (!equalJson(left, right)) place.modified.isMember = true;
}

function shapeOfEither(type: TypeNode, value: unknown): Shape | undefined {
  return value === undefined || value === null ? undefined : shapeOf(type, value);
}

const isUnchanged = (left: unknown, right: unknown): boolean =>
  left === undefined || right === undefined ? left === right : equalJson(left, right);

/** Of two values that differ ({@link isUnchanged}): asked before a place is made, as most fields of a write are as before. */
function compareValues(type: TypeNode, left: unknown, right: unknown, place: Place): void {
  const leftShape = shapeOfEither(type, left);
  const rightShape = shapeOfEither(type, right);
  const shape = rightShape ?? leftShape;
  if (!shape || shape.shape === "leaf") {
    // A container that became a scalar: its content is gone, the place itself has a new value.
    if (leftShape && leftShape.shape !== "leaf") compareContent(leftShape, left, undefined, place);
    return compareLeaf(left, right, place);
  }
  if (leftShape && leftShape.shape !== shape.shape) {
    compareContent(shape, undefined, right, place);
    return compareLeaf(left, right, place);
  }
  if (isEmptyContainer(left) && isEmptyContainer(right)) return compareLeaf(left, right, place);
  compareContent(shape, left, right, place);
  if (left === undefined) place.added.isMember = true;
  else if (right === undefined) place.removed.isMember = true;
}

function compareContent(shape: Shape, left: unknown, right: unknown, place: Place): void {
  if (shape.shape === "map") compareMaps(shape, asObject(left), asObject(right), place);
  else if (shape.shape === "list") compareLists(shape, asArray(left), asArray(right), place);
}

const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {});
const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function compareMaps(shape: GranularMap, left: JsonObject, right: JsonObject, place: Place): void {
  for (const name of Object.keys(left)) {
    const [before, after] = [left[name], own(right, name)];
    if (!isUnchanged(before, after))
      compareValues(entryType(shape, name), before, after, place.at(`f:${name}`));
  }
  for (const name of Object.keys(right)) {
    if (!Object.hasOwn(left, name) && right[name] !== undefined)
      compareValues(entryType(shape, name), undefined, right[name], place.at(`f:${name}`));
  }
}

function itemsByStep(shape: GranularList, items: readonly unknown[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  for (const item of items) {
    const step = itemStep(shape.list, item);
    if (typeof step !== "string") continue;
    const same = found.get(step);
    if (same) same.push(item);
    else found.set(step, [item]);
  }
  return found;
}

function compareLists(
  shape: GranularList,
  left: readonly unknown[],
  right: readonly unknown[],
  place: Place,
): void {
  const leftItems = itemsByStep(shape, left);
  const rightItems = itemsByStep(shape, right);
  const type = itemType(shape);
  const none: readonly unknown[] = [];
  for (const step of new Set([...leftItems.keys(), ...rightItems.keys()])) {
    const before = leftItems.get(step) ?? none;
    const after = rightItems.get(step) ?? none;
    if (before.length <= 1 && after.length <= 1) {
      if (!isUnchanged(before[0], after[0])) compareValues(type, before[0], after[0], place.at(step));
      continue;
    }
    const item = place.at(step);
    if (before.length >= 2 && after.length >= 2) {
      if (!equalJson(before, after)) item.modified.isMember = true;
    } else if (before.length >= 2) {
      if (after.length > 0) compareValues(type, undefined, after[0], item);
      item.removed.isMember = true;
    } else {
      if (before.length > 0) compareValues(type, before[0], undefined, item);
      item.added.isMember = true;
    }
  }
}

/** What turns `left` into `right`. */
export function compareTyped(type: TypeNode, left: unknown, right: unknown): Comparison {
  const place = new Place(new FieldSetBuilder(), new FieldSetBuilder(), new FieldSetBuilder());
  if (!isUnchanged(left, right)) compareValues(type, left, right, place);
  return { added: place.added.build(), modified: place.modified.build(), removed: place.removed.build() };
}

/** Which paths of a set a writer may own at all; the rest is left out of every comparison and entry. */
export interface FieldScope {
  /** Only these and what is below them, when set. */
  readonly only?: FieldSet;
  /** Not these nor what is below them. */
  readonly without?: FieldSet;
}

/** The paths of `set` inside `scope`. */
export function scoped(set: FieldSet, scope: FieldScope): FieldSet {
  const kept = scope.only ? onlySubtrees(set, scope.only) : set;
  return scope.without ? withoutSubtrees(kept, scope.without) : kept;
}

/** {@link compareTyped} inside `scope`. */
export function compareScoped(type: TypeNode, left: unknown, right: unknown, scope: FieldScope): Comparison {
  const { added, modified, removed } = compareTyped(type, left, right);
  return { added: scoped(added, scope), modified: scoped(modified, scope), removed: scoped(removed, scope) };
}
