/**
 * A value seen through its merge structure (structured-merge-diff "typed"): what shape it has there, which
 * fields it holds, and whether it may be applied at all.
 */
import { isObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import { isNumber } from "../schema/json-value.ts";
import { FieldSetBuilder, type FieldSet } from "./field-set.ts";
import { itemStep, printStep } from "./fields-v1.ts";

const untyped: TypeNode = { type: "untyped" };

/** A map whose entries have owners of their own. */
export interface GranularMap {
  readonly shape: "map";
  /** The type of an entry, `undefined` when the type has no such field. */
  entry(name: string): TypeNode | undefined;
  /** True for a declared field; false for a key of an open map, which exists by being set. */
  isDeclared(name: string): boolean;
}

/** A list whose items have owners of their own. */
export interface GranularList {
  readonly shape: "list";
  readonly list: Extract<TypeNode, { readonly type: "list" }>;
}

/** How a value is taken: as a whole, by entries or by items. */
export type Shape = { readonly shape: "leaf" } | GranularMap | GranularList;

const leafShape: Shape = { shape: "leaf" };

const untypedMap: GranularMap = { shape: "map", entry: () => untyped, isDeclared: () => false };

/** A name no real field has: a type that knows it takes any key. */
const probe = "\u0000";

const mapShapes = new WeakMap<TypeNode, GranularMap>();

function mapShape(type: Extract<TypeNode, { readonly type: "map" }>): GranularMap {
  const known = mapShapes.get(type);
  if (known) return known;
  const isOpen = type.field(probe) !== undefined;
  const made: GranularMap = {
    shape: "map",
    entry: (name) => type.field(name),
    isDeclared: (name) => type.declares?.(name) ?? !isOpen,
  };
  mapShapes.set(type, made);
  return made;
}

/** The shape of a present, non-null value at a place of type `type`. */
export function shapeOf(type: TypeNode, value: unknown): Shape {
  switch (type.type) {
    case "scalar":
      return leafShape;
    case "untyped":
      return isObject(value) ? untypedMap : leafShape;
    case "map":
      return type.atomic || !isObject(value) ? leafShape : mapShape(type);
    case "list":
      return type.listType === "atomic" || !Array.isArray(value) ? leafShape : { shape: "list", list: type };
  }
}

/** The item type of a granular list. */
export const itemType = (list: GranularList): TypeNode => list.list.item();

/** The type of an entry; an entry the type does not know is untyped. */
export const entryType = (map: GranularMap, name: string): TypeNode => map.entry(name) ?? untyped;

const isEmptyMap = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

/** True where an entry itself is a path of its own, beside its content. */
export function isOwnPath(map: GranularMap, name: string, value: unknown): boolean {
  return value === null || isEmptyMap(value) || !map.isDeclared(name);
}

function collect(type: TypeNode, value: unknown, set: FieldSetBuilder): void {
  if (value === undefined) return;
  const shape = shapeOf(type, value);
  if (value === null) {
    // A null map or list has no content; its parent records the entry.
    if (type.type === "scalar" || type.type === "untyped") set.isMember = true;
    return;
  }
  if (shape.shape === "leaf") set.isMember = true;
  else if (shape.shape === "map" && isObject(value)) {
    for (const name of Object.keys(value)) {
      const entry = set.at(`f:${name}`);
      collect(entryType(shape, name), value[name], entry);
      if (isOwnPath(shape, name, value[name])) entry.isMember = true;
    }
  } else if (shape.shape === "list" && Array.isArray(value)) {
    for (const item of value) {
      const step = itemStep(shape.list, item);
      if (typeof step !== "string") continue;
      const entry = set.at(step);
      collect(itemType(shape), item, entry);
      entry.isMember = true;
    }
  }
}

/** Every field `value` holds. */
export function fieldsOf(type: TypeNode, value: unknown): FieldSet {
  const set = new FieldSetBuilder();
  collect(type, value, set);
  return set.build();
}

function collectContainers(type: TypeNode, value: unknown, set: FieldSetBuilder): void {
  if (value === undefined || value === null) return;
  const shape = shapeOf(type, value);
  if (shape.shape === "leaf") return;
  set.isMember = true;
  if (shape.shape === "map" && isObject(value)) {
    for (const name of Object.keys(value))
      collectContainers(entryType(shape, name), value[name], set.at(`f:${name}`));
  } else if (shape.shape === "list" && Array.isArray(value)) {
    for (const item of value) {
      const step = itemStep(shape.list, item);
      if (typeof step === "string") collectContainers(itemType(shape), item, set.at(step));
    }
  }
}

/** Every granular map and list in `value`, empty ones included. */
export function containersOf(type: TypeNode, value: unknown): FieldSet {
  const set = new FieldSetBuilder();
  collectContainers(type, value, set);
  return set.build();
}

/** Most problems reported for one configuration. */
const maxTypedErrors = 50;

function jsonKind(value: unknown): string {
  return value === null
    ? "null"
    : Array.isArray(value)
      ? "list"
      : isObject(value)
        ? "map"
        : isNumber(value)
          ? "number"
          : typeof value;
}

function check(type: TypeNode, value: unknown, path: string, errors: string[]): void {
  if (value === null || value === undefined || errors.length >= maxTypedErrors) return;
  const fail = (expected: string): void => {
    errors.push(`${path || "."}: expected ${expected}, got ${jsonKind(value)}`);
  };
  switch (type.type) {
    case "untyped":
      return;
    case "scalar":
      if (isObject(value) || Array.isArray(value)) fail("scalar");
      return;
    case "map": {
      if (!isObject(value)) return fail("map");
      for (const name of Object.keys(value)) {
        const entry = type.field(name);
        if (entry) check(entry, value[name], `${path}.${name}`, errors);
        else errors.push(`${path}.${name}: field not declared in schema`);
      }
      return;
    }
    case "list": {
      if (!Array.isArray(value)) return fail("list");
      checkItems(type, value, path, errors);
    }
  }
}

function checkItems(
  type: Extract<TypeNode, { readonly type: "list" }>,
  items: readonly unknown[],
  path: string,
  errors: string[],
): void {
  const seen = new Set<string>();
  for (let i = 0; i < items.length; i++) {
    let place = `${path}[${i}]`;
    if (type.listType !== "atomic") {
      const step = itemStep(type, items[i]);
      if (typeof step !== "string") {
        errors.push(`${path}: element ${i}: ${step.error}`);
        continue;
      }
      place = path + printStep(step);
      if (seen.has(step)) errors.push(`${path}: duplicate entries for key ${printStep(step)}`);
      seen.add(step);
    }
    check(type.item(), items[i], place, errors);
  }
}

/** What keeps `value` from being applied, one text per problem; empty when nothing does. */
export function typedErrors(type: TypeNode, value: unknown): readonly string[] {
  const errors: string[] = [];
  check(type, value, "", errors);
  return errors;
}

/** Problems in one text, as the API server words it. */
export function joinTypedErrors(errors: readonly string[]): string {
  const [first = ""] = errors;
  return errors.length === 1 ? first : `errors:\n${errors.map((error) => `  ${error}`).join("\n")}`;
}
