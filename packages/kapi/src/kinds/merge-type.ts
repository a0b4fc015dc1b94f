/**
 * The merge structure of a built-in kind: which lists merge by which keys, which maps are atomic
 * (struct tags and markers of the published Go types).
 *
 * Rules where a type says nothing: server-side apply takes a list as atomic unless its patch strategy is
 * `merge`, which makes it associative on the merge key; maps and structs are granular.
 */
import type { TypeNode } from "../resource.ts";
import type { Field, Message, ValueType } from "../codec/messages.ts";
import { specialMessages } from "../codec/special.ts";

const scalar: TypeNode = { type: "scalar" };
const untyped: TypeNode = { type: "untyped" };
const stringList: TypeNode = { type: "list", listType: "atomic", keys: [], item: () => scalar };

const nodes = new Map<Message, TypeNode>();

/** The node of a kind's own message: its fields, and the type meta that every object carries. */
export function rootTypeOf(message: Message): TypeNode {
  return {
    type: "map",
    atomic: false,
    field(name) {
      if (name === "apiVersion" || name === "kind") return scalar;
      const field = message.byJson.get(name);
      return field === undefined ? undefined : fieldNode(field);
    },
  };
}

/** The node of a message; the same one each time. */
export function messageNode(message: Message): TypeNode {
  const known = nodes.get(message);
  if (known !== undefined) return known;
  const made = makeNode(message, message.atomic, []);
  nodes.set(message, made);
  return made;
}

function makeNode(message: Message, atomic: boolean, patch: readonly string[]): TypeNode {
  if (specialMessages.has(message.name)) {
    if (/(ExtraValue|Verbs)$/.test(message.name)) return stringList;
    return isOpen(message.name) ? untyped : scalar;
  }
  return {
    type: "map",
    atomic,
    field(name) {
      if (message.typeMeta && (name === "apiVersion" || name === "kind")) return scalar;
      const field = message.byJson.get(name);
      return field === undefined ? undefined : fieldNode(field);
    },
    ...strategies(patch),
  };
}

/** Values whose content no type describes. */
const isOpen = (name: string): boolean =>
  /(RawExtension|FieldsV1|apiextensions\.v1\.JSON|JSONSchemaPropsOr\w+)$/.test(name);

const strategies = (patch: readonly string[]): { retainKeys?: boolean; replace?: boolean } => ({
  ...(patch.includes("retainKeys") ? { retainKeys: true } : {}),
  ...(patch.includes("replace") ? { replace: true } : {}),
});

const fields = new WeakMap<Field, TypeNode>();

function fieldNode(field: Field): TypeNode {
  const known = fields.get(field);
  if (known !== undefined) return known;
  const made = makeFieldNode(field);
  fields.set(field, made);
  return made;
}

function makeFieldNode(field: Field): TypeNode {
  const { merge } = field;
  const patch = merge.patch ?? [];
  if (field.shape === "list") return listNode(field);
  if (field.shape === "map") {
    const value = valueNode(field.value);
    return { type: "map", atomic: merge.map === "atomic", field: () => value, ...strategies(patch) };
  }
  if ("scalar" in field.value) return scalar;
  const { message } = field.value;
  const atomic = merge.map === undefined ? message.atomic : merge.map === "atomic";
  return atomic === message.atomic && patch.length === 0
    ? messageNode(message)
    : makeNode(message, atomic, patch);
}

const valueNode = (type: ValueType): TypeNode => ("scalar" in type ? scalar : messageNode(type.message));

function listNode(field: Field): TypeNode {
  const { merge } = field;
  const merges = merge.patch?.includes("merge") === true;
  const implied = merges ? (merge.patchKey === undefined ? "set" : "map") : "atomic";
  const listType = merge.list ?? implied;
  const keys =
    merge.keys ?? (merge.list === undefined && merge.patchKey !== undefined ? [merge.patchKey] : []);
  return {
    type: "list",
    listType,
    keys: listType === "map" ? keys : [],
    ...(keys.includes("protocol") ? { keyDefaults: { protocol: "TCP" } } : {}),
    item: () => valueNode(field.value),
    ...(merges
      ? { patchStrategy: "merge" as const }
      : merge.patch?.includes("replace") === true
        ? { patchStrategy: "replace" as const }
        : {}),
    ...(merge.patchKey === undefined ? {} : { patchMergeKey: merge.patchKey }),
  };
}
