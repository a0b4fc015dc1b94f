import assert from "node:assert/strict";
import { test } from "node:test";
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { compileCrd } from "../crd/index.ts";
import { builtinResources } from "../kinds/index.ts";
import type { ResourceDefinition } from "../resource.ts";
import { WireReader } from "../codec/wire.ts";
import { encodeOpenapiV2, openapiV2Document, openapiV3Document, openapiV3VersionDocument } from "./index.ts";

const builtin = builtinResources();
const widgets: readonly ResourceDefinition[] = compileCrd({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.io" },
  spec: {
    group: "example.io",
    scope: "Namespaced",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
        },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                required: ["size", "note"],
                properties: {
                  replicas: { type: "integer" },
                  size: { type: "string", description: "how large", anyOf: [{ minLength: 1 }] },
                  note: { type: "string", nullable: true },
                  free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                },
              },
            },
          },
        },
      },
    ],
  },
});
const open = compileCrd({
  metadata: { name: "opens.example.io" },
  spec: {
    group: "example.io",
    scope: "Cluster",
    names: { plural: "opens", kind: "Open" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
});
const resources = [...builtin, ...widgets];
const versions = [
  ...new Set(resources.map(({ group, version }) => (group === "" ? version : `${group}/${version}`))),
];
const object = (value: unknown): JsonObject => (isObject(value) ? value : assert.fail("not an object"));
const schemasOf = (document: JsonObject): JsonObject => object(at(document, "components", "schemas"));

/** Every `$ref` of a document. */
function references(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const item of value) references(item, found);
  else if (isObject(value)) {
    if (typeof value["$ref"] === "string") found.add(value["$ref"]);
    for (const inner of Object.values(value)) references(inner, found);
  }
  return found;
}

test("no reference dangles, in either dialect", () => {
  for (const version of versions) {
    const document = openapiV3Document(version, resources);
    const schemas = schemasOf(document);
    for (const reference of references(document)) {
      assert.ok(
        Object.hasOwn(schemas, reference.replace("#/components/schemas/", "")),
        `${version}: ${reference}`,
      );
    }
  }
  const document = openapiV2Document(resources);
  for (const reference of references(document)) {
    assert.ok(
      Object.hasOwn(object(document["definitions"]), reference.replace("#/definitions/", "")),
      reference,
    );
  }
});

test("kubectl finds a patch that lets the server validate, for every kind it can patch", () => {
  for (const resource of resources) {
    if (!resource.verbs.includes("patch")) continue;
    const version = resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
    const paths = object(openapiV3Document(version, resources)["paths"]);
    const patches = Object.values(paths)
      .map((path) => at(path, "patch"))
      .filter((patch) => stringAt(patch, "x-kubernetes-group-version-kind", "kind") === resource.kind);
    const patch = patches[0];
    assert.ok(patch, resource.kind);
    const parameters = at(patch, "parameters");
    assert.ok(
      Array.isArray(parameters) && parameters.some((item) => stringAt(item, "name") === "fieldValidation"),
    );
    const types = Object.keys(object(at(patch, "requestBody", "content")));
    assert.equal(
      types.includes("application/strategic-merge-patch+json"),
      resource.origin === "builtin",
      resource.kind,
    );
    assert.ok(types.includes("application/apply-patch+yaml"));
  }
});

test("operations are named once", () => {
  const names = new Set<string>();
  for (const version of versions) {
    for (const path of Object.values(object(openapiV3Document(version, resources)["paths"]))) {
      for (const operation of Object.values(object(path))) {
        const id = stringAt(operation, "operationId");
        if (id === undefined || id === "getAPIResources") continue;
        assert.ok(!names.has(id), id);
        names.add(id);
      }
    }
  }
  for (const id of [
    "createCoreV1NamespacedPod",
    "listAppsV1DeploymentForAllNamespaces",
    "readAppsV1NamespacedDeploymentScale",
    "deleteCoreV1CollectionNamespacedConfigMap",
    "patchCoreV1Namespace",
    "listExampleIoV1NamespacedWidget",
    "replaceRbacAuthorizationV1ClusterRole",
  ]) {
    assert.ok(names.has(id), id);
  }
});

test("a built-in kind is described as upstream describes it", () => {
  const schemas = schemasOf(openapiV3Document("apps/v1", resources));
  const deployment = object(schemas["io.k8s.api.apps.v1.Deployment"]);
  assert.deepEqual(deployment["x-kubernetes-group-version-kind"], [
    { group: "apps", kind: "Deployment", version: "v1" },
  ]);
  assert.deepEqual(at(deployment, "properties", "spec"), {
    allOf: [{ $ref: "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec" }],
    default: {},
    description: "Specification of the desired behavior of the Deployment.",
  });
  const containers = object(at(schemas["io.k8s.api.core.v1.PodSpec"], "properties", "containers"));
  assert.equal(containers["x-kubernetes-patch-merge-key"], "name");
  assert.deepEqual(containers["x-kubernetes-list-map-keys"], ["name"]);
  assert.deepEqual(at(schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"], "oneOf"), [
    { type: "integer" },
    { type: "string" },
  ]);
  for (const name of [
    "io.k8s.api.apps.v1.DeploymentList",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
  ]) {
    assert.ok(Object.hasOwn(schemas, name), name);
  }
  assert.ok(
    !Object.hasOwn(object(at(schemas["io.k8s.api.core.v1.PodSpec"], "properties")), "schedulingGroup"),
  );
});

test("a custom kind has its fields, the standard metadata and its scale", () => {
  const document = openapiV3Document("example.io/v1", resources);
  const widget = object(schemasOf(document)["io.example.v1.Widget"]);
  assert.equal(at(widget, "properties", "spec", "properties", "size", "description"), "how large");
  assert.ok(at(widget, "properties", "metadata"));
  const scale = at(
    document,
    "paths",
    "/apis/example.io/v1/namespaces/{namespace}/widgets/{name}/scale",
    "get",
  );
  assert.deepEqual(at(scale, "x-kubernetes-group-version-kind"), {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
  });
});

test("v2 leaves out what it cannot say", () => {
  const document = openapiV2Document(resources);
  const definitions = object(document["definitions"]);
  const spec = object(at(definitions["io.example.v1.Widget"], "properties", "spec"));
  assert.deepEqual(spec["required"], ["size"]);
  assert.deepEqual(at(spec, "properties", "size"), { type: "string", description: "how large" });
  assert.deepEqual(at(spec, "properties", "note"), {});
  assert.deepEqual(at(spec, "properties", "free"), { "x-kubernetes-preserve-unknown-fields": true });
  // A kind that is open as a whole says no more than that it is an object.
  assert.deepEqual(at(openapiV2Document(open), "definitions", "io.example.v1.Open"), {
    type: "object",
    "x-kubernetes-group-version-kind": [{ group: "example.io", version: "v1", kind: "Open" }],
  });
  assert.deepEqual(
    definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] &&
      at(definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"], "type"),
    "string",
  );
  assert.deepEqual(at(definitions["io.k8s.api.apps.v1.Deployment"], "properties", "spec"), {
    $ref: "#/definitions/io.k8s.api.apps.v1.DeploymentSpec",
    description: "Specification of the desired behavior of the Deployment.",
  });
  assert.equal(
    at(definitions["io.k8s.api.core.v1.PodSpec"], "properties", "containers", "x-kubernetes-patch-merge-key"),
    "name",
  );
  const post = at(document, "paths", "/api/v1/namespaces/{namespace}/pods", "post");
  const parameters = at(post, "parameters");
  assert.ok(Array.isArray(parameters));
  assert.deepEqual(parameters[0], {
    name: "body",
    in: "body",
    required: true,
    schema: { $ref: "#/definitions/io.k8s.api.core.v1.Pod" },
  });
});

test("the version document", () => {
  const document = openapiV3VersionDocument();
  assert.ok(at(document, "paths", "/version/", "get"));
  assert.ok(Object.hasOwn(schemasOf(document), "io.k8s.apimachinery.pkg.version.Info"));
});

/** Reads a protobuf message into its fields, without knowing its type. */
function fieldsOf(bytes: Uint8Array): { readonly number: number; readonly value: Uint8Array | number }[] {
  const reader = new WireReader(bytes);
  const found: { number: number; value: Uint8Array | number }[] = [];
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    if ((tag & 7) === 2) found.push({ number: tag >>> 3, value: reader.view() });
    else if ((tag & 7) === 1) found.push({ number: tag >>> 3, value: reader.double() });
    else found.push({ number: tag >>> 3, value: Number(reader.int64()) });
  }
  return found;
}

const bytesAt = (bytes: Uint8Array, ...path: readonly number[]): Uint8Array[] =>
  path.reduce<Uint8Array[]>(
    (level, number) =>
      level.flatMap((item) =>
        fieldsOf(item).flatMap((field) =>
          field.number === number && typeof field.value !== "number" ? [field.value] : [],
        ),
      ),
    [bytes],
  );

test("the protobuf form of v2 says the same", () => {
  const document = openapiV2Document(resources);
  const bytes = encodeOpenapiV2(document);
  const textOf = (value: Uint8Array | undefined): string => Buffer.from(value ?? []).toString();
  assert.equal(textOf(bytesAt(bytes, 1)[0]), "2.0");
  const names = bytesAt(bytes, 9, 1, 1).map(textOf);
  assert.deepEqual(names, Object.keys(object(document["definitions"])));
  assert.deepEqual(bytesAt(bytes, 8, 2, 1).map(textOf), Object.keys(object(document["paths"])));
  const widget = bytesAt(bytes, 9, 1).find(
    (entry) => textOf(bytesAt(entry, 1)[0]) === "io.example.v1.Widget",
  );
  assert.ok(widget);
  assert.deepEqual(bytesAt(widget, 2, 25, 1, 1).map(textOf), ["spec", "apiVersion", "kind", "metadata"]);
  assert.deepEqual(
    bytesAt(widget, 2, 31).map((extension) => [
      textOf(bytesAt(extension, 1)[0]),
      textOf(bytesAt(extension, 2, 2)[0]),
    ]),
    [["x-kubernetes-group-version-kind", '[{"group":"example.io","version":"v1","kind":"Widget"}]']],
  );
});

test("no document holds an empty list, which Go clients do not keep", () => {
  const empty = (value: unknown, path: string): string[] => {
    if (Array.isArray(value))
      return value.length === 0 ? [path] : value.flatMap((item, i) => empty(item, `${path}[${i}]`));
    if (!isObject(value)) return [];
    return Object.entries(value).flatMap(([key, item]) =>
      // Defaults and examples are values of the schema, not words of the document.
      key === "default" ? [] : empty(item, `${path}.${key}`),
    );
  };
  for (const version of versions) {
    const found = empty(openapiV3Document(version, resources), version);
    assert.deepEqual(found.slice(0, 3), []);
  }
});

test("properties say what their Go fields say: enumerations and values that are always there", () => {
  const schemas = schemasOf(openapiV3Document("apps/v1", resources));
  const property = (type: string, ...path: string[]): unknown => {
    const { description: _description, ...rest } = object(
      at(schemas, `io.k8s.api.${type}`, "properties", ...path),
    );
    return rest;
  };
  const pull = { type: "string", enum: ["Always", "IfNotPresent", "Never"] };
  assert.deepEqual(property("core.v1.Container", "imagePullPolicy"), pull);
  assert.deepEqual(property("core.v1.Container", "name"), { type: "string", default: "" });
  assert.deepEqual(property("core.v1.Container", "command", "items"), { type: "string", default: "" });
  assert.equal(at(property("core.v1.Container", "livenessProbe"), "default"), undefined);
  assert.deepEqual(at(property("core.v1.Container", "resources"), "default"), {});
  const protocol = { type: "string", default: "TCP", enum: ["SCTP", "TCP", "UDP"] };
  assert.deepEqual(property("core.v1.ContainerPort", "protocol"), protocol);
  // Types with constants that are no closed set list nothing.
  assert.equal(at(property("apps.v1.DeploymentCondition", "status"), "enum"), undefined);
});
