/**
 * The `paths` of a document: every operation of every resource, with what clients read of them:
 * `x-kubernetes-action`, `x-kubernetes-group-version-kind`, parameters and patch types.
 */
import type { JsonObject } from "@kontinuum/std";
import type { GroupVersionKind, ResourceDefinition, SubresourceDefinition, Verb } from "../resource.ts";
import { meta, reference } from "./definitions.ts";
import { parametersOf, pathParameter, pretty } from "./parameters.ts";

/** `apps` → `Apps`, `rbac.authorization.k8s.io` → `RbacAuthorization`, core → `Core`. */
function groupName(group: string): string {
  if (group === "") return "Core";
  return group
    .replace(/\.k8s\.io$/, "")
    .split(/[.-]/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join("");
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

interface Operation {
  readonly action: string;
  /** First word of the operation id. */
  readonly verb: string;
  readonly id: string;
  readonly description: string;
  readonly kind: GroupVersionKind;
  /** Name of the schema that is answered. */
  readonly answer: string;
  /** Name of the schema that is sent. */
  readonly body?: string;
  readonly patchTypes?: readonly string[];
  readonly media: readonly string[];
}

const tagOf = (group: string, version: string): string =>
  `${groupName(group).charAt(0).toLowerCase()}${groupName(group).slice(1)}_${version}`;

function operation(resource: ResourceDefinition, op: Operation): JsonObject {
  const content = (media: readonly string[], name: string): JsonObject =>
    Object.fromEntries(media.map((type) => [type, { schema: reference(name) }]));
  const answered = content(op.media, op.answer);
  const responses: JsonObject = { "200": { description: "OK", content: answered } };
  if (op.action === "post" || op.action === "put" || op.action === "patch") {
    responses["201"] = { description: "Created", content: answered };
  }
  if (op.action === "post" || op.action === "delete")
    responses["202"] = { description: "Accepted", content: answered };
  responses["401"] = { description: "Unauthorized" };
  const { group, version, kind } = op.kind;
  // Upstream's own reader does not keep an empty list.
  const parameters = parametersOf[op.action];
  return {
    tags: [tagOf(resource.group, resource.version)],
    description: op.description,
    operationId: op.id,
    ...(parameters === undefined ? {} : { parameters }),
    ...(op.body === undefined
      ? {}
      : {
          requestBody: {
            content: content(op.patchTypes ?? ["*/*"], op.body),
            ...(op.action === "delete" || op.action === "deletecollection" ? {} : { required: true }),
          },
        }),
    responses,
    "x-kubernetes-action": op.action,
    "x-kubernetes-group-version-kind": { group, version, kind },
  };
}

/** Adds the paths of a resource. `schemaOf` names the schema of a kind. */
export function addPaths(
  paths: JsonObject,
  resource: ResourceDefinition,
  schemaOf: (kind: GroupVersionKind) => string,
): void {
  const builtin = resource.origin === "builtin";
  const media = builtin
    ? ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"]
    : ["application/json", "application/yaml"];
  const patchTypes = builtin
    ? [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
      ]
    : ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
  const { group, version, kind, plural } = resource;
  const own: GroupVersionKind = { group, version, kind };
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = resource.namespaced ? "Namespaced" : "";
  const base = resource.namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
  const idBase = `${groupName(group)}${capital(version)}`;
  const schema = schemaOf(own);
  const list = schemaOf({ group, version, kind: resource.listKind });
  const can = (verb: Verb): boolean => resource.verbs.includes(verb);
  const namespace = pathParameter("namespace", "object name and auth scope, such as for teams and projects");
  const make = (
    op: Omit<Operation, "id" | "kind" | "media"> & { id?: string; kind?: GroupVersionKind; suffix?: string },
  ): JsonObject =>
    operation(resource, {
      ...op,
      id: op.id ?? `${op.verb}${idBase}${scope}${kind}${op.suffix ?? ""}`,
      kind: op.kind ?? own,
      media:
        op.action === "list"
          ? [
              ...media,
              "application/json;stream=watch",
              ...(builtin ? ["application/vnd.kubernetes.protobuf;stream=watch"] : []),
            ]
          : media,
      ...(op.action === "patch" ? { patchTypes } : {}),
    });

  const collection: JsonObject = {};
  if (can("list")) {
    collection.get = make({
      action: "list",
      verb: "list",
      description: `list or watch objects of kind ${kind}`,
      answer: list,
    });
  }
  if (can("create")) {
    const description = `create ${/^[AEIOU]/.test(kind) ? "an" : "a"} ${kind}`;
    collection.post = make({ action: "post", verb: "create", description, answer: schema, body: schema });
  }
  if (can("deletecollection")) {
    collection.delete = make({
      action: "deletecollection",
      verb: "delete",
      id: `delete${idBase}Collection${scope}${kind}`,
      description: `delete collection of ${kind}`,
      answer: meta("Status"),
      body: meta("DeleteOptions"),
    });
  }
  if (Object.keys(collection).length > 0) {
    collection.parameters = resource.namespaced ? [namespace, pretty] : [pretty];
    paths[base] = collection;
  }
  if (resource.namespaced && can("list")) {
    paths[`${root}/${plural}`] = {
      get: make({
        action: "list",
        verb: "list",
        id: `list${idBase}${kind}ForAllNamespaces`,
        description: `list or watch objects of kind ${kind}`,
        answer: list,
      }),
      parameters: [pretty],
    };
  }

  const nameParameters = [
    pathParameter("name", `name of the ${kind}`),
    ...(resource.namespaced ? [namespace] : []),
    pretty,
  ];
  const item: JsonObject = {};
  if (can("get"))
    item.get = make({
      action: "get",
      verb: "read",
      description: `read the specified ${kind}`,
      answer: schema,
    });
  if (can("update")) {
    item.put = make({
      action: "put",
      verb: "replace",
      description: `replace the specified ${kind}`,
      answer: schema,
      body: schema,
    });
  }
  if (can("delete")) {
    item.delete = make({
      action: "delete",
      verb: "delete",
      description: `delete ${/^[AEIOU]/.test(kind) ? "an" : "a"} ${kind}`,
      answer: meta("Status"),
      body: meta("DeleteOptions"),
    });
  }
  if (can("patch")) {
    item.patch = make({
      action: "patch",
      verb: "patch",
      description: `partially update the specified ${kind}`,
      answer: schema,
      body: meta("Patch"),
    });
  }
  if (Object.keys(item).length > 0) paths[`${base}/{name}`] = { ...item, parameters: nameParameters };
  for (const sub of resource.subresources) {
    paths[`${base}/{name}/${sub.name}`] = {
      ...subresourceOperations(sub, own, schemaOf, make),
      parameters: nameParameters,
    };
  }
}

function subresourceOperations(
  sub: SubresourceDefinition,
  parent: GroupVersionKind,
  schemaOf: (kind: GroupVersionKind) => string,
  make: (
    op: Omit<Operation, "id" | "kind" | "media"> & { kind?: GroupVersionKind; suffix?: string },
  ) => JsonObject,
): JsonObject {
  const kind = sub.kind ?? parent;
  const schema = schemaOf(kind);
  const suffix = capital(sub.name);
  const of = `${sub.name} of the specified ${parent.kind}`;
  const made: JsonObject = {};
  const common = { kind, suffix, answer: schema };
  if (sub.verbs.includes("get"))
    made.get = make({ ...common, action: "get", verb: "read", description: `read ${of}` });
  if (sub.verbs.includes("update")) {
    made.put = make({
      ...common,
      action: "put",
      verb: "replace",
      description: `replace ${of}`,
      body: schema,
    });
  }
  if (sub.verbs.includes("create")) {
    made.post = make({
      ...common,
      action: "post",
      verb: "create",
      description: `create ${of}`,
      body: schema,
    });
  }
  if (sub.verbs.includes("patch")) {
    made.patch = make({
      ...common,
      action: "patch",
      verb: "patch",
      description: `partially update ${of}`,
      body: meta("Patch"),
    });
  }
  return made;
}
