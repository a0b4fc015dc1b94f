/**
 * Removes a set of paths from a value (structured-merge-diff "remove"): a member goes with all that is below
 * it; a container emptied by removals below it stays, empty.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import { put } from "../schema/json-value.ts";
import type { FieldSet } from "./field-set.ts";
import { itemStep } from "./fields-v1.ts";
import { entryType, itemType, shapeOf } from "./typed-value.ts";

function removeBelow(type: TypeNode, value: unknown, set: FieldSet): unknown {
  if (set.children.size === 0 || value === null || value === undefined) return value;
  const shape = shapeOf(type, value);
  if (shape.shape === "map" && isObject(value)) {
    const out: JsonObject = {};
    for (const name of Object.keys(value)) {
      const node = set.children.get(`f:${name}`);
      if (node?.isMember) continue;
      put(out, name, node ? removeBelow(entryType(shape, name), value[name], node) : value[name]);
    }
    return out;
  }
  if (shape.shape === "list" && Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      const step = itemStep(shape.list, item);
      const node = typeof step === "string" ? set.children.get(step) : undefined;
      if (node?.isMember) return [];
      return [node ? removeBelow(itemType(shape), item, node) : item];
    });
  }
  return value;
}

/** `value` without the paths of `set`. */
export function removeFields(type: TypeNode, value: JsonObject, set: FieldSet): JsonObject {
  const kept = removeBelow(type, value, set);
  return isObject(kept) ? kept : {};
}

/**
 * `set` with every declared field on the way to a member added: removing all fields of a struct then removes
 * the struct, while entries of open maps go only when they were recorded themselves.
 */
export function withNamedFields(type: TypeNode, set: FieldSet, isRoot = true): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [step, child] of set.children) {
    const below = childType(type, step);
    const named = withNamedFields(below.type, child, false);
    const isMember = child.isMember || (child.children.size > 0 && below.isDeclared);
    children.set(step, isMember === named.isMember ? named : { isMember, children: named.children });
  }
  return { isMember: set.isMember && !isRoot, children };
}

const unknownChild = { type: { type: "untyped" } as TypeNode, isDeclared: false };

function childType(type: TypeNode, step: string): { readonly type: TypeNode; readonly isDeclared: boolean } {
  if (type.type === "map" && step.startsWith("f:")) {
    const name = step.slice(2);
    const entry = type.field(name);
    const shape = shapeOf(type, {});
    return entry
      ? { type: entry, isDeclared: shape.shape === "map" && shape.isDeclared(name) }
      : unknownChild;
  }
  return type.type === "list" ? { type: type.item(), isDeclared: false } : unknownChild;
}
