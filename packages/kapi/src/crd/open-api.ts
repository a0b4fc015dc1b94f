/**
 * OpenAPI v3 schemas of a custom resource: its own, with the standard object fields and the
 * `x-kubernetes-group-version-kind` mark that kubectl looks kinds up by, and its list.
 *
 * ObjectMeta and ListMeta are referred to by their public names; whoever builds the document adds them.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { SchemaNode } from "../schema/schema-node.ts";

const metaPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1";

const apiVersionSchema: JsonObject = {
  type: "string",
  description:
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
};
const kindSchema: JsonObject = {
  type: "string",
  description:
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
};
const reference = (name: string): JsonObject => ({
  allOf: [{ $ref: `#/components/schemas/${name}` }],
  default: {},
});

/** The name of a custom kind's schema: the reversed group, the version and the kind. */
export function customSchemaName(group: string, version: string, kind: string): string {
  return [...group.split(".").reverse(), version, kind].join(".");
}

/** The schemas of one version; the second is the list's. */
export function customOpenApi(
  group: string,
  version: string,
  names: { readonly kind: string; readonly listKind: string; readonly plural: string },
  schema: SchemaNode,
): { readonly name: string; readonly schemas: Readonly<Record<string, JsonObject>> } {
  const name = customSchemaName(group, version, names.kind);
  const own = isObject(schema.raw["properties"]) ? schema.raw["properties"] : {};
  return {
    name,
    schemas: {
      [name]: {
        ...schema.raw,
        properties: {
          ...own,
          apiVersion: apiVersionSchema,
          kind: kindSchema,
          metadata: {
            ...reference(`${metaPrefix}.ObjectMeta`),
            description:
              "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
          },
        },
        "x-kubernetes-group-version-kind": [{ group, version, kind: names.kind }],
      },
      [customSchemaName(group, version, names.listKind)]: {
        type: "object",
        description: `${names.listKind} is a list of ${names.kind}`,
        required: ["items"],
        properties: {
          apiVersion: apiVersionSchema,
          kind: kindSchema,
          metadata: {
            ...reference(`${metaPrefix}.ListMeta`),
            description:
              "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
          },
          items: {
            type: "array",
            description: `List of ${names.plural}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md`,
            items: { allOf: [{ $ref: `#/components/schemas/${name}` }], default: {} },
          },
        },
        "x-kubernetes-group-version-kind": [{ group, version, kind: names.listKind }],
      },
    },
  };
}
