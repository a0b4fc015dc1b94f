/**
 * The OpenAPI 3.1 document, from the routes themselves.
 *
 * Only the generator and its test load this module: the server answers with the committed file.
 */
import { createRoute, OpenAPIHono, z } from "@hono/zod-openapi";
import { InvariantError, isObject } from "@kontinuum/std";
import { operationIds } from "./operation-ids.ts";
import { errorSchema } from "./reply.ts";
import type { Access, Answer, Route } from "./route.ts";

/** A document as plain JSON. */
export type OpenApiDocument = Record<string, unknown>;

const idempotent = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "Makes a repeat of this request harmless for 24 hours.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" },
};

/** Names of shared path parameters: by the path up to the parameter. */
const pathParameters: readonly (readonly [prefix: string, parameter: string, component: string])[] = [
  ["/api/v1/machines/", "id", "MachineID"],
  ["/api/v1/machines/", "sid", "SnapshotID"],
  ["/api/v1/golden/", "id", "GoldenID"],
];

/** Builds the document. Throws when a route has no name. */
export function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  const app = new OpenAPIHono();
  for (const route of routes) app.openAPIRegistry.registerPath(createRoute(described(route)));
  const document: unknown = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Kryton API",
      version: "1.1.0",
      description:
        "One stable machine API over machine providers: demo now; dockur, libvirt and KubeVirt are the contract's other providers, not in this build yet.",
    },
    servers: [{ url: "/" }],
  });
  if (!isObject(document)) throw new InvariantError("the OpenAPI generator answered no object");
  return finished(document, routes);
}

function described(route: Route) {
  const key = `${route.method} ${route.path}`;
  const operationId = operationIds[key];
  if (operationId === undefined) throw new InvariantError(`route ${key} has no operation id`);
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
  return {
    method: route.method.toLowerCase() as Lowercase<Route["method"]>,
    path: route.path,
    operationId,
    summary: route.summary,
    description: accessText(route.access),
    tags: [route.group],
    security: route.access.kind === "public" ? [] : [{ bearerAuth: [] }],
    request: {
      ...(names.length > 0
        ? { params: z.object(Object.fromEntries(names.map((name) => [name, z.string()]))) }
        : {}),
      ...(route.query
        ? {
            query: z.object(
              Object.fromEntries(
                route.query.map(({ name, description, schema }) => [
                  name,
                  schema.optional().meta({ description }),
                ]),
              ),
            ),
          }
        : {}),
      ...(route.bodySchema
        ? {
            body: {
              required: route.bodyOptional !== true,
              content: { "application/json": { schema: route.bodySchema } },
            },
          }
        : {}),
    },
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, answer]) => [status, answered(answer)]),
      ),
      "4XX": refusal("The request is refused: the error says why, and what to do."),
      default: refusal("A refusal or a failure."),
    },
  };
}

function refusal(description: string) {
  return { description, content: { "application/json": { schema: errorSchema } } };
}

function answered({ description, schema, contentType = "application/json" }: Answer) {
  return schema ? { description, content: { [contentType]: { schema } } } : { description };
}

/** Who may call, in words. */
export function accessText(access: Access): string {
  switch (access.kind) {
    case "public":
      return "Needs no credentials.";
    case "any":
      return "For every authenticated caller; shows what the caller's projects allow.";
    case "global":
      return `Needs the role ${access.role}.`;
    case "project":
      return `Needs the role ${access.role} in the project.`;
    case "console":
      return `Needs the role ${access.role} in the project, or a console ticket of the machine.`;
  }
}

/** Adds what the generator cannot know: shared parameters, security schemes, idempotency. */
function finished(document: Record<string, unknown>, routes: readonly Route[]): OpenApiDocument {
  const parameters: Record<string, unknown> = {
    Project: {
      name: "project",
      in: "query",
      required: false,
      description: "A configured project. Default: the default project.",
      schema: { type: "string", maxLength: 63, pattern: "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$" },
    },
    MachineID: { name: "id", in: "path", required: true, schema: { type: "string", format: "uuid" } },
    SnapshotID: { name: "sid", in: "path", required: true, schema: { type: "string" } },
    GoldenID: {
      name: "id",
      in: "path",
      required: true,
      schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,128}$" },
    },
    IdempotencyKey: idempotent,
  };
  const paths = isObject(document["paths"]) ? document["paths"] : {};
  for (const route of routes) {
    const item = paths[route.path];
    const operation = isObject(item) ? item[route.method.toLowerCase()] : undefined;
    if (!isObject(operation)) throw new InvariantError(`${route.path} is not in the document`);
    const own = Array.isArray(operation["parameters"]) ? operation["parameters"] : [];
    const shared = own.map((parameter: unknown) => sharedParameter(parameter, route.path));
    if (route.method !== "GET") shared.push({ $ref: "#/components/parameters/IdempotencyKey" });
    if (shared.length > 0) operation["parameters"] = shared;
  }
  const components = isObject(document["components"]) ? document["components"] : {};
  const schemas = isObject(components["schemas"]) ? components["schemas"] : {};
  const { webhooks: _, ...rest } = document;
  return {
    ...rest,
    info: {
      ...(isObject(rest["info"]) ? rest["info"] : {}),
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      parameters,
      securitySchemes: { bearerAuth: { type: "http", scheme: "bearer" } },
    },
  };
}

function sharedParameter(parameter: unknown, path: string): unknown {
  if (!isObject(parameter)) return parameter;
  if (
    parameter["in"] === "query" &&
    parameter["name"] === "project" &&
    path !== "/api/v1/events" &&
    path !== "/api/v1/events/stream"
  ) {
    return { $ref: "#/components/parameters/Project" };
  }
  if (parameter["in"] !== "path") return parameter;
  const found = pathParameters.find(
    ([prefix, name]) => path.startsWith(prefix) && parameter["name"] === name,
  );
  return found ? { $ref: `#/components/parameters/${found[2]}` } : parameter;
}
