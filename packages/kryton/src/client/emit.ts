/**
 * Turns an OpenAPI document into the source of a typed client.
 *
 * Covers what our own document uses: component schemas of objects, arrays, records, enumerations and
 * references; operations with path and query parameters, JSON bodies and one JSON success answer.
 */
import { InvariantError, isObject, stringAt, at } from "@kontinuum/std";
import type { OpenApiDocument } from "../http/openapi.ts";

/** The source of a document's schemas: types, and the schemas themselves for checking answers. */
export function schemasSource(document: OpenApiDocument): string {
  const schemas = schemasOf(document);
  const types = Object.entries(schemas).map(
    ([name, schema]) =>
      `/** Schema \`${name}\` of the machine API. */\nexport type ${name} = ${typeOf(schema)};\n`,
  );
  const index = Object.keys(schemas)
    .map((name) => `  readonly ${name}: ${name};\n`)
    .join("");
  return `/**
 * The schemas of the machine API. Generated from its routes by \`client/generate.ts\`; do not edit.
 */

${types.join("\n")}
/** Every named schema, by name. */
export interface Schemas {
${index}}

/** The schemas as the document has them. */
export const schemas: Readonly<Record<keyof Schemas, unknown>> = ${JSON.stringify(schemas, null, 2)};
`;
}

/** The source of the client: one method per operation. */
export function clientSource(document: OpenApiDocument): string {
  const methods = operationsOf(document).map(methodSource).join("");
  const used = Object.keys(schemasOf(document)).filter((name) => new RegExp(`\\b${name}\\b`).test(methods));
  return `/**
 * A typed client of the machine API. Generated from its routes by \`client/generate.ts\`; do not edit.
 */
import { encodeQuery, encodeSegment, type CallOptions, type Exchange } from "../exchange.ts";
import type {
${used.map((name) => `  ${name},\n`).join("")}} from "./schemas.ts";

/** The operations of the machine API. Failures are \`KrytonClientError\`s. */
export class KrytonClient {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }
${methods}}
`;
}

function schemasOf(document: OpenApiDocument): Record<string, unknown> {
  const schemas = at(document, "components", "schemas");
  if (!isObject(schemas)) throw new InvariantError("the document has no schemas");
  return schemas;
}

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly pathNames: readonly string[];
  readonly query: readonly { readonly name: string; readonly type: string }[];
  readonly body: { readonly type: string; readonly required: boolean } | undefined;
  readonly answer: { readonly schema: unknown; readonly statuses: readonly number[] };
}

/** Operations with a JSON answer, or none; streams, documents and sockets have clients of their own. */
function operationsOf(document: OpenApiDocument): Operation[] {
  const operations: Operation[] = [];
  const paths = at(document, "paths");
  if (!isObject(paths)) return operations;
  for (const [path, item] of Object.entries(paths)) {
    if (!isObject(item)) continue;
    for (const [method, operation] of Object.entries(item)) {
      const read = readOperation(document, method, path, operation);
      if (read) operations.push(read);
    }
  }
  return operations;
}

function readOperation(
  document: OpenApiDocument,
  method: string,
  path: string,
  operation: unknown,
): Operation | undefined {
  const id = stringAt(operation, "operationId");
  const responses = at(operation, "responses");
  if (id === undefined || !isObject(responses) || path.includes("{rest}")) return undefined;
  const statuses = Object.keys(responses)
    .filter((status) => /^\d+$/.test(status))
    .map(Number);
  const success = statuses.find((status) => status >= 200 && status < 300);
  if (success === undefined) return undefined;
  const content = at(responses, String(success), "content");
  const schema = at(content, "application/json", "schema");
  if (isObject(content) && schema === undefined) return undefined;
  const listed = at(operation, "parameters");
  const parameters = (Array.isArray(listed) ? listed : []).map((parameter: unknown) =>
    resolve(document, parameter),
  );
  const bodySchema = at(operation, "requestBody", "content", "application/json", "schema");
  return {
    id,
    method: method.toUpperCase(),
    path,
    summary: stringAt(operation, "summary") ?? "",
    pathNames: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? ""),
    query: parameters
      .filter((parameter) => stringAt(parameter, "in") === "query")
      .map((parameter) => ({
        name: stringAt(parameter, "name") ?? "",
        type: typeOf(at(parameter, "schema")),
      })),
    body:
      bodySchema === undefined
        ? undefined
        : { type: typeOf(bodySchema), required: at(operation, "requestBody", "required") === true },
    answer: { schema, statuses: statuses.filter((status) => status === success || status === 503) },
  };
}

function resolve(document: OpenApiDocument, value: unknown): unknown {
  const reference = stringAt(value, "$ref");
  return reference === undefined ? value : at(document, ...reference.slice(2).split("/"));
}

function methodSource(operation: Operation): string {
  const { id, method, path, summary, pathNames, query, body, answer } = operation;
  const parameters = pathNames.map((name) => `${name}: string`);
  if (body) parameters.push(body.required ? `body: ${body.type}` : `body: ${body.type} | undefined`);
  if (query.length > 0) {
    const fields = query.map(({ name, type }) => `${name}?: ${type} | readonly (${type})[]`).join("; ");
    parameters.push(`query: { ${fields} } = {}`);
  }
  parameters.push("options: CallOptions = {}");
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `\${encodeSegment(${name})}`);
  const target = query.length > 0 ? `\`${url}\${encodeQuery(query)}\`` : `\`${url}\``;
  const named = stringAt(answer.schema, "$ref")?.split("/").at(-1);
  const type = answer.schema === undefined ? "void" : (named ?? typeOf(answer.schema));
  const request = `{ method: ${JSON.stringify(method)}, path: ${target}, accepted: ${JSON.stringify(answer.statuses)}${body ? ", body" : ""}, options }`;
  const call =
    answer.schema === undefined
      ? `await this.#exchange.send(${request});`
      : `return this.#exchange.read(${request}, ${named ? JSON.stringify(named) : "undefined"});`;
  return `
  /** ${summary} */
  async ${id}(${parameters.join(", ")}): Promise<${type}> {
    ${call}
  }
`;
}

/** The TypeScript type of a schema. */
export function typeOf(schema: unknown): string {
  const reference = stringAt(schema, "$ref");
  if (reference !== undefined) return reference.split("/").at(-1) ?? "unknown";
  if (!isObject(schema)) return "unknown";
  const choices = schema["enum"];
  if (Array.isArray(choices)) return choices.map((choice: unknown) => JSON.stringify(choice)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema["const"]);
  const anyOf = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(anyOf)) return anyOf.map(typeOf).join(" | ");
  const allOf = schema["allOf"];
  if (Array.isArray(allOf)) return allOf.map(typeOf).join(" & ");
  switch (schema["type"]) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return `readonly (${typeOf(schema["items"])})[]`;
    case "object":
      return objectType(schema);
    default:
      return "unknown";
  }
}

function objectType(schema: Record<string, unknown>): string {
  const properties = schema["properties"];
  if (isObject(properties) && Object.keys(properties).length > 0) {
    const required = Array.isArray(schema["required"]) ? schema["required"] : [];
    const fields = Object.entries(properties).map(([name, property]) => {
      const optional = !required.includes(name) || (isObject(property) && "default" in property);
      const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
      return `readonly ${key}${optional ? "?" : ""}: ${typeOf(property)}${optional ? " | undefined" : ""}`;
    });
    return `{ ${fields.join("; ")} }`;
  }
  const extra = schema["additionalProperties"];
  return `{ readonly [key: string]: ${isObject(extra) ? typeOf(extra) : "unknown"} }`;
}
