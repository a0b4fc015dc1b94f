/**
 * The OpenAPI v2 document (contract of `/openapi/v2`): all groups in one, in the older dialect.
 *
 * Made from the v3 documents. What v2 cannot say is left out, as upstream does: `oneOf`, `anyOf`, `allOf`,
 * `not` and `nullable` of custom schemas; a nullable or open value loses its type so that old clients do not
 * refuse what the server accepts.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { ResourceDefinition } from "../resource.ts";
import { schemaPrefix } from "./definitions.ts";
import { openapiV3Document, openapiV3VersionDocument } from "./v3.ts";

/** The v2 document of every given resource. */
export function openapiV2Document(resources: readonly ResourceDefinition[]): JsonObject {
  const paths: JsonObject = {};
  const definitions: JsonObject = {};
  const versions = new Set(
    resources.map(({ group, version }) => (group === "" ? version : `${group}/${version}`)),
  );
  const documents = [
    ...[...versions].map((version) => openapiV3Document(version, resources)),
    openapiV3VersionDocument(),
  ];
  for (const document of documents) {
    const { schemas } = isObject(document.components) ? document.components : {};
    for (const [name, schema] of Object.entries(isObject(schemas) ? schemas : {})) {
      if (!Object.hasOwn(definitions, name)) definitions[name] = definitionV2(schema);
    }
    for (const [path, item] of Object.entries(isObject(document.paths) ? document.paths : {})) {
      if (isObject(item)) paths[path] = pathV2(item);
    }
  }
  return {
    swagger: "2.0",
    info: { title: "Kubernetes", version: "v1.35.0" },
    paths,
    definitions: Object.fromEntries(Object.entries(definitions).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    securityDefinitions: {
      BearerToken: {
        description: "Bearer Token authentication",
        type: "apiKey",
        name: "authorization",
        in: "header",
      },
    },
    security: [{ BearerToken: [] }],
  };
}

const junctors: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf", "not", "nullable"]);

/** One definition: a kind whose whole object is open says no more than that it is an object, as upstream. */
function definitionV2(schema: unknown): JsonObject {
  const kinds = "x-kubernetes-group-version-kind";
  if (
    isObject(schema) &&
    schema[kinds] !== undefined &&
    schema["x-kubernetes-preserve-unknown-fields"] === true
  )
    return { type: "object", [kinds]: schema[kinds] };
  return schemaV2(schema);
}

/** One schema in v2 terms. */
function schemaV2(schema: unknown): JsonObject {
  if (!isObject(schema)) return {};
  const target = referenceOf(schema);
  if (target !== undefined) {
    const { $ref: _ref, allOf: _allOf, default: _default, ...rest } = schema;
    return { $ref: `#/definitions/${target.slice(schemaPrefix.length)}`, ...rest };
  }
  const made: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (junctors.has(key)) continue;
    if (key === "properties" && isObject(value)) made.properties = mapValues(value, schemaV2);
    else if (key === "items") made.items = schemaV2(value);
    else if (key === "additionalProperties" && isObject(value)) made.additionalProperties = schemaV2(value);
    else made[key] = value;
  }
  const choices = Array.isArray(schema.oneOf) ? schema.oneOf : [];
  if (made.type === undefined && choices.length > 0 && isPublishedUnion(schema)) made.type = "string";
  if (schema.nullable === true || schema["x-kubernetes-preserve-unknown-fields"] === true) {
    delete made.type;
    delete made.items;
    delete made.properties;
  }
  dropNullableRequired(schema, made);
  return made;
}

/** Quantity and IntOrString: a string for v2. */
function isPublishedUnion(schema: JsonObject): boolean {
  const { oneOf } = schema;
  return (
    Array.isArray(oneOf) &&
    oneOf.every(
      (choice) => isObject(choice) && Object.keys(choice).length === 1 && typeof choice.type === "string",
    )
  );
}

/** v2 has no null, so a nullable field may not be required. */
function dropNullableRequired(schema: JsonObject, made: JsonObject): void {
  const { required, properties } = schema;
  if (!Array.isArray(required) || !isObject(properties)) return;
  const kept = required.filter((name: unknown) => {
    const property =
      typeof name === "string" && Object.hasOwn(properties, name) ? properties[name] : undefined;
    return !(isObject(property) && property.nullable === true);
  });
  if (kept.length > 0) made.required = kept;
  else delete made.required;
}

function referenceOf(schema: JsonObject): string | undefined {
  if (typeof schema.$ref === "string") return schema.$ref;
  const { allOf } = schema;
  if (!Array.isArray(allOf) || allOf.length !== 1) return undefined;
  const [only] = allOf as unknown[];
  return isObject(only) && typeof only.$ref === "string" ? only.$ref : undefined;
}

const mapValues = (object: JsonObject, change: (value: unknown) => unknown): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));

const methods: ReadonlySet<string> = new Set(["get", "put", "post", "patch", "delete"]);

function pathV2(item: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(item).map(([key, value]) => {
      if (key === "parameters" && Array.isArray(value)) return [key, value.map(parameterV2)];
      return [key, methods.has(key) && isObject(value) ? operationV2(value) : value];
    }),
  );
}

function parameterV2(parameter: unknown): unknown {
  if (!isObject(parameter)) return parameter;
  const { schema, ...rest } = parameter;
  return { ...rest, ...(isObject(schema) ? schema : {}) };
}

function operationV2(operation: JsonObject): JsonObject {
  const { requestBody, responses, parameters, ...rest } = operation;
  const made: JsonObject = { ...rest, schemes: ["https"] };
  const list = Array.isArray(parameters) ? parameters.map(parameterV2) : [];
  const body = isObject(requestBody) && isObject(requestBody.content) ? requestBody.content : undefined;
  if (body !== undefined) {
    made.consumes = Object.keys(body);
    list.unshift({
      name: "body",
      in: "body",
      ...(isObject(requestBody) && requestBody.required === true ? { required: true } : {}),
      schema: schemaV2(contentSchema(body)),
    });
  } else made.consumes = ["*/*"];
  if (list.length > 0) made.parameters = list;
  made.produces = ["application/json"];
  made.responses = mapValues(isObject(responses) ? responses : {}, (response) => {
    if (!isObject(response)) return response;
    const { content, ...described } = response;
    if (!isObject(content)) return described;
    made.produces = Object.keys(content);
    return { ...described, schema: schemaV2(contentSchema(content)) };
  });
  return made;
}

function contentSchema(content: JsonObject): unknown {
  const [first] = Object.values(content);
  return isObject(first) ? first.schema : undefined;
}
