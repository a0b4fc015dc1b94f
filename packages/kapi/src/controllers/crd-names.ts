/**
 * Whether a definition's names are still free in its group.
 */
import { stringAt, type JsonObject } from "@kontinuum/std";
import { crdNames } from "../crd/index.ts";
import type { ResourceSet } from "../registry/resource-set.ts";

/** Why names are refused, as the `NamesAccepted` condition says it. */
export interface NameConflict {
  readonly reason:
    | "PluralConflict"
    | "SingularConflict"
    | "ShortNamesConflict"
    | "KindConflict"
    | "ListKindConflict";
  readonly message: string;
}

/** The first clash of a definition with accepted ones of its group, or with built-in kinds. */
export function acceptNames(
  manifest: JsonObject,
  accepted: readonly JsonObject[],
  resources: ResourceSet,
): NameConflict | undefined {
  const group = stringAt(manifest, "spec", "group") ?? "";
  const own = crdNames(manifest);
  const names = new Set<string>();
  const kinds = new Set<string>();
  const take = (other: {
    plural: string;
    singular: string;
    shortNames: readonly string[];
    kind: string;
    listKind: string;
  }): void => {
    for (const name of [other.plural, other.singular, ...other.shortNames]) names.add(name);
    kinds.add(other.kind).add(other.listKind);
  };
  for (const other of accepted) if (stringAt(other, "spec", "group") === group) take(crdNames(other));
  for (const resource of resources.all())
    if (resource.origin === "builtin" && resource.group === group) take(resource);
  const used = (name: string): string => `${JSON.stringify(name)} is already in use`;
  if (names.has(own.plural)) return { reason: "PluralConflict", message: used(own.plural) };
  if (names.has(own.singular)) return { reason: "SingularConflict", message: used(own.singular) };
  const taken = own.shortNames.filter((name) => names.has(name));
  if (taken[0] !== undefined) return { reason: "ShortNamesConflict", message: taken.map(used).join(", ") };
  if (kinds.has(own.kind)) return { reason: "KindConflict", message: used(own.kind) };
  if (kinds.has(own.listKind)) return { reason: "ListKindConflict", message: used(own.listKind) };
  return undefined;
}
