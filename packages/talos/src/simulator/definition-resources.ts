/**
 * The resources of namespace `meta`: what there is to read. They follow from the release alone, so all nodes of one
 * release share them.
 */
import type { Clock } from "@kontinuum/std";
import type { ResourceKind } from "../client/resource-kind.ts";
import {
  NamespaceSpecSchema,
  ResourceDefinitionSpec_Sensitivity as Sensitivity,
  ResourceDefinitionSpecSchema,
} from "../gen/resource/meta/meta_pb.ts";
import { describe } from "./resource-descriptions.ts";
import { ResourceStore, type ResourceDescription } from "./resource-store.ts";
import { namespaceNames, resourceTypes, type ResourceType } from "./resource-types.ts";

const namespaceKind = {
  namespace: "meta",
  type: "Namespaces.meta.cosi.dev",
  schema: NamespaceSpecSchema,
} satisfies ResourceKind;
const definitionKind = {
  namespace: "meta",
  type: "ResourceDefinitions.meta.cosi.dev",
  schema: ResourceDefinitionSpecSchema,
} satisfies ResourceKind;

const stores = new Map<number, ResourceStore>();

/** The definitions of Talos 1.`minor`. */
export function definitionStore(minor: number, clock: Clock): ResourceStore {
  const present = stores.get(minor);
  if (present) return present;
  const store = new ResourceStore(clock);
  store.replace([
    ...namespaceNames.map((id) => describe(namespaceKind, id, "", { description: id }, { description: id })),
    ...resourceTypes.filter((type) => type.minor <= minor).map(definitionOf),
  ]);
  stores.set(minor, store);
  return store;
}

function definitionOf(type: ResourceType): ResourceDescription {
  const { namespace, displayType, aliases, allAliases, columns, isSensitive } = type;
  const printColumns = columns.map(({ name, jsonPath }) => ({ name, jsonPath }));
  const spec = {
    resourceType: type.type,
    displayType,
    defaultNamespace: namespace,
    aliases: [...aliases],
    allAliases: [...allAliases],
    printColumns,
    sensitivity: isSensitive ? Sensitivity.SENSITIVE : Sensitivity.NON_SENSITIVE,
  };
  return describe(definitionKind, type.type.toLowerCase(), "", spec, {
    type: type.type,
    displayType,
    aliases: [...allAliases],
    printColumns,
    defaultNamespace: namespace,
    sensitivity: isSensitive ? "sensitive" : "",
  });
}
