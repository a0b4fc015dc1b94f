/**
 * OpenAPI v3 documents, one per group version (contract of `/openapi/v3`): what kubectl reads to create,
 * apply, edit and explain.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { kindFacts } from "../codec/messages.ts";
import type { GroupVersionKind, ResourceDefinition } from "../resource.ts";
import { close, eachReference, meta, reference } from "./definitions.ts";
import { addPaths } from "./paths.ts";

/** Release whose API is described. */
const apiRelease = "v1.35.0";

/** Schemas that every document has, whatever its kinds refer to. */
const always = [
  meta("APIResourceList"),
  meta("DeleteOptions"),
  meta("ObjectMeta"),
  meta("ListMeta"),
  meta("Patch"),
  meta("Status"),
  meta("WatchEvent"),
];

const info = { title: "Kubernetes", version: apiRelease };
const securitySchemes = {
  BearerToken: {
    type: "apiKey",
    description: "Bearer Token authentication",
    name: "authorization",
    in: "header",
  },
};

/**
 * The document of one group version (`v1`, `apps/v1`), from the resources served there. Resources of other
 * group versions are ignored.
 */
export function openapiV3Document(
  groupVersion: string,
  resources: readonly ResourceDefinition[],
): JsonObject {
  const schemas: Record<string, JsonObject> = {};
  const paths: JsonObject = {};
  const mine = resources.filter((resource) => apiVersionOf(resource) === groupVersion);
  const root = groupVersion.includes("/") ? `/apis/${groupVersion}/` : `/api/${groupVersion}/`;
  paths[root] = {
    get: {
      description: "get available resources",
      operationId: `getAPIResources`,
      responses: {
        "200": {
          description: "OK",
          content: { "application/json": { schema: reference(meta("APIResourceList")) } },
        },
        "401": { description: "Unauthorized" },
      },
    },
  };
  for (const resource of mine) addResource(resource, schemas, paths);
  const referred: string[] = [...always];
  eachReference(paths, (name) => referred.push(name));
  close(schemas, referred);
  return { openapi: "3.0.0", info, paths, components: { schemas: sorted(schemas), securitySchemes } };
}

/** The document of `/version/`, the one path outside the groups that clients describe. */
export function openapiV3VersionDocument(): JsonObject {
  const name = "io.k8s.apimachinery.pkg.version.Info";
  const answer = { description: "OK", content: { "application/json": { schema: reference(name) } } };
  return {
    openapi: "3.0.0",
    info,
    paths: {
      "/version/": {
        get: {
          tags: ["version"],
          description: "get the version information for this server",
          operationId: "getCodeVersion",
          responses: { "200": answer, "401": { description: "Unauthorized" } },
        },
      },
    },
    components: { schemas: close({}, [name]), securitySchemes },
  };
}

function addResource(
  resource: ResourceDefinition,
  schemas: Record<string, JsonObject>,
  paths: JsonObject,
): void {
  const own = resource.openapi();
  Object.assign(schemas, own.schemas);
  const schemaOf = (kind: GroupVersionKind): string => {
    if (kind.kind === resource.kind && kind.group === resource.group) return own.name;
    const published = kindFacts(apiVersionOf(kind), kind.kind);
    if (published !== undefined) return `io.k8s.${published.message}`;
    return customName(kind, own.schemas) ?? own.name;
  };
  addPaths(paths, resource, schemaOf);
}

/** The schema of a custom kind is found by its mark, so its naming stays with whoever made it. */
function customName(
  kind: GroupVersionKind,
  schemas: Readonly<Record<string, JsonObject>>,
): string | undefined {
  for (const [name, schema] of Object.entries(schemas)) {
    const marks = schema["x-kubernetes-group-version-kind"];
    if (!Array.isArray(marks)) continue;
    if (
      marks.some(
        (mark) =>
          isObject(mark) &&
          mark.kind === kind.kind &&
          mark.group === kind.group &&
          mark.version === kind.version,
      )
    ) {
      return name;
    }
  }
  return undefined;
}

const apiVersionOf = ({ group, version }: { group: string; version: string }): string =>
  group === "" ? version : `${group}/${version}`;

const sorted = (schemas: Record<string, JsonObject>): JsonObject =>
  Object.fromEntries(Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1)));
