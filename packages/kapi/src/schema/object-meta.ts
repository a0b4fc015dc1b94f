/**
 * What custom and embedded resources share of ObjectMeta (meta.k8s.io/v1): its known fields, for pruning,
 * and its merge structure, for server-side apply.
 */
import { isObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import { child, indexed } from "./field-error.ts";

const metadataFields = new Set([
  "name",
  "generateName",
  "namespace",
  "selfLink",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "labels",
  "annotations",
  "ownerReferences",
  "finalizers",
  "managedFields",
]);
const ownerFields = new Set(["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]);
const managedFields = new Set([
  "manager",
  "operation",
  "apiVersion",
  "time",
  "fieldsType",
  "fieldsV1",
  "subresource",
]);

function keepKnown(value: unknown, known: ReadonlySet<string>, path: string, unknown: string[]): void {
  if (!isObject(value)) return;
  for (const key of Object.keys(value)) {
    if (known.has(key)) continue;
    delete value[key];
    unknown.push(child(path, key));
  }
}

/** Removes unknown fields of a `metadata` object in place and appends their paths to `unknown`. */
export function pruneObjectMeta(value: unknown, path: string, unknown: string[]): void {
  if (!isObject(value)) return;
  keepKnown(value, metadataFields, path, unknown);
  for (const [name, fields] of [
    ["ownerReferences", ownerFields],
    ["managedFields", managedFields],
  ] as const) {
    const list = value[name];
    if (!Array.isArray(list)) continue;
    for (let i = 0; i < list.length; i++) keepKnown(list[i], fields, indexed(child(path, name), i), unknown);
  }
}

const scalar: TypeNode = { type: "scalar" };
const stringMap: TypeNode = { type: "map", atomic: false, field: () => scalar };
const ownerReference: TypeNode = {
  type: "map",
  // OwnerReference is declared `+structType=atomic`.
  atomic: true,
  field: (name) => (ownerFields.has(name) ? scalar : undefined),
};
const managedEntry: TypeNode = {
  type: "map",
  atomic: false,
  field: (name) => (name === "fieldsV1" ? { type: "untyped" } : managedFields.has(name) ? scalar : undefined),
};
const structured = new Map<string, TypeNode>([
  ["labels", stringMap],
  ["annotations", stringMap],
  [
    "ownerReferences",
    {
      type: "list",
      listType: "map",
      keys: ["uid"],
      item: () => ownerReference,
      patchStrategy: "merge",
      patchMergeKey: "uid",
    },
  ],
  ["finalizers", { type: "list", listType: "set", keys: [], item: () => scalar, patchStrategy: "merge" }],
  ["managedFields", { type: "list", listType: "atomic", keys: [], item: () => managedEntry }],
]);

/** The merge structure of ObjectMeta. */
export const objectMetaType: TypeNode = {
  type: "map",
  atomic: false,
  field: (name) => structured.get(name) ?? (metadataFields.has(name) ? scalar : undefined),
};
