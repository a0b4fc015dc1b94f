import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isObject } from "@kontinuum/std";
import { mismatch } from "../client/conformance.ts";
import { describedRoutes } from "../client/generate.ts";
import { openApiDocument } from "./openapi.ts";
import { call, machineBody, start, type Answered, type Fixture } from "../kryton.fixture.ts";

const document = openApiDocument(await describedRoutes());
const components = isObject(document["components"]) ? document["components"] : {};
const schemas = isObject(components["schemas"]) ? components["schemas"] : {};

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly responses: Record<string, unknown>;
}

function operations(): Operation[] {
  const found: Operation[] = [];
  const paths = isObject(document["paths"]) ? document["paths"] : {};
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(isObject(item) ? item : {})) {
      if (!isObject(operation) || path.endsWith("/stream")) continue;
      const request = operation["requestBody"];
      const content = isObject(request) ? request["content"] : undefined;
      const json = isObject(content) ? content["application/json"] : undefined;
      found.push({
        method: method.toUpperCase(),
        path,
        body: isObject(json) ? json["schema"] : undefined,
        responses: isObject(operation["responses"]) ? operation["responses"] : {},
      });
    }
  }
  return found;
}

function resolved(schema: unknown): Record<string, unknown> {
  if (!isObject(schema)) return {};
  const reference = schema["$ref"];
  return typeof reference === "string" ? resolved(schemas[reference.split("/").at(-1) ?? ""]) : schema;
}

/** A value the schema allows. */
function sample(schema: unknown): unknown {
  const found = resolved(schema);
  const [choice] = Array.isArray(found["enum"]) ? found["enum"] : [];
  if (choice !== undefined) return choice;
  switch (found["type"]) {
    case "object": {
      const properties = isObject(found["properties"]) ? found["properties"] : {};
      return Object.fromEntries(
        Object.entries(properties).map(([name, property]) => [name, sample(property)]),
      );
    }
    case "array":
      return [sample(found["items"])];
    case "integer":
    case "number":
      return typeof found["minimum"] === "number" ? found["minimum"] : 1;
    case "boolean":
      return true;
    default:
      return "a";
  }
}

/** Paths of every field of a schema. */
function fields(schema: unknown, prefix: string[] = []): string[][] {
  const found = resolved(schema);
  const properties = isObject(found["properties"]) ? found["properties"] : {};
  return Object.entries(properties).flatMap(([name, property]) => [
    [...prefix, name],
    ...fields(property, [...prefix, name]),
  ]);
}

function withField(value: unknown, path: readonly string[], replacement: unknown): unknown {
  const [head, ...rest] = path;
  if (head === undefined) return replacement;
  const object = isObject(value) ? value : {};
  if (rest.length === 0 && replacement === undefined) {
    return Object.fromEntries(Object.entries(object).filter(([name]) => name !== head));
  }
  return { ...object, [head]: withField(object[head], rest, replacement) };
}

const hostile: readonly unknown[] = [
  undefined,
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  2 ** 53,
  "",
  "a".repeat(70_000),
  "ünïcödé-\u{1f4a5}-\u0000-\ud800",
  "../../etc/passwd",
  "$(reboot)`id`",
  "<script>alert(1)</script>",
  [],
  [[[[[]]]]],
  {},
  { __proto__: { admin: true }, constructor: 1 },
  JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`),
];

function urlOf(path: string, id: string): string {
  return path
    .replaceAll("{id}", encodeURIComponent(id))
    .replaceAll("{sid}", encodeURIComponent(id))
    .replaceAll("{rest}", "x");
}

function checkAnswer(answer: Answered, operation: Operation, what: string): void {
  const name = `${operation.method} ${operation.path} with ${what} answered ${answer.status} ${answer.text.slice(0, 200)}`;
  assert.notEqual(answer.status, 500, name);
  assert.ok(
    answer.status < 500 || answer.status === 501 || answer.status === 502 || answer.status === 503,
    name,
  );
  const described = operation.responses[String(answer.status)];
  if (isObject(described)) {
    const content = described["content"];
    const json = isObject(content) ? content["application/json"] : undefined;
    const schema = isObject(json) ? json["schema"] : undefined;
    if (schema !== undefined) assert.equal(mismatch(answer.json, schema, schemas), undefined, name);
  } else if (answer.status !== 302) {
    assert.equal(mismatch(answer.json, schemas["Error"], schemas), undefined, name);
  }
}

async function attack(
  api: Fixture,
  operation: Operation,
  id: string,
  body: unknown,
  what: string,
): Promise<void> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  checkAnswer(await call(api.url, operation.method, urlOf(operation.path, id), text), operation, what);
}

test("every field missing, wrong, huge, in unicode or duplicated is refused or harmless, never a 500", async () => {
  await using api = await start();
  const { id } = await api.machine("target");
  for (const operation of operations().filter(({ body }) => body !== undefined)) {
    const valid = operation.path === "/api/v1/machines" ? machineBody("x") : sample(operation.body);
    for (const path of fields(operation.body)) {
      await Promise.all(
        hostile.map((value) =>
          attack(
            api,
            operation,
            id,
            withField(valid, path, value),
            `${path.join(".")}=${String(JSON.stringify(value)).slice(0, 60)}`,
          ),
        ),
      );
      const [name = ""] = path;
      await attack(
        api,
        operation,
        id,
        `{"${name}":1,"${name}":"x","${name.toUpperCase()}":null}`,
        `duplicated ${name}`,
      );
    }
  }
});

test("any JSON at all as a body is refused or harmless, never a 500", async () => {
  await using api = await start();
  const { id } = await api.machine("target");
  const withBodies = operations().filter(({ body }) => body !== undefined);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...withBodies),
      fc.jsonValue({ maxDepth: 4 }),
      async (operation, body) => {
        await attack(api, operation, id, body, JSON.stringify(body));
      },
    ),
    { seed: 20_261_130, numRuns: 150 },
  );
});

test("hostile ids, queries and cursors are refused or harmless, never a 500", async () => {
  await using api = await start();
  const ids = ["nope", "..", "%00", "a/b", "ü".repeat(300), "'; drop table", "machine:x", " "];
  const queries = [
    "",
    "?project=",
    "?project=%ff",
    "?project=..%2F..",
    `?project=${"x".repeat(5_000)}`,
    "?limit=-1&cursor=%00",
    "?limit=99999999999999999999",
    "?cursor=..%2F",
    "?label=%00&label==&label=a=b=c",
    "?state=&force=",
    "?console_ticket=x.y",
    "?format=html&project=default&project=other",
  ];
  for (const operation of operations().filter(({ path }) => path.startsWith("/api/"))) {
    const body = operation.body === undefined ? undefined : "{}";
    const targets = operation.path.includes("{") ? ids : ["-"];
    for (const id of targets) {
      await Promise.all(
        queries.map(async (query) => {
          const answer = await call(api.url, operation.method, `${urlOf(operation.path, id)}${query}`, body);
          if (operation.path !== "/api/openapi.yaml")
            checkAnswer(answer, operation, `${id} ${query.slice(0, 60)}`);
        }),
      );
    }
  }
});

/** Names of the query parameters that the document gives an operation. */
function queryNames({ path, method }: Operation): string[] {
  const paths = isObject(document["paths"]) ? document["paths"] : {};
  const item = paths[path];
  const operation = isObject(item) ? item[method.toLowerCase()] : undefined;
  const parameters =
    isObject(operation) && Array.isArray(operation["parameters"]) ? operation["parameters"] : [];
  const shared = isObject(components["parameters"]) ? components["parameters"] : {};
  return parameters.flatMap((parameter: unknown) => {
    const reference = isObject(parameter) ? parameter["$ref"] : undefined;
    const found = typeof reference === "string" ? shared[reference.split("/").at(-1) ?? ""] : parameter;
    return isObject(found) && found["in"] === "query" ? [String(found["name"])] : [];
  });
}

test("every documented parameter and header missing, wrong, huge, in unicode or duplicated is refused or harmless", async () => {
  await using api = await start();
  const { id } = await api.machine("target");
  const values = [
    "",
    "0",
    "-1",
    "1e9",
    "true",
    "null",
    "%00",
    "%ff%fe",
    "ü".repeat(500),
    "a".repeat(8_000),
    "../..",
    "' OR 1=1",
    "[]",
    "\u{1f4a5}",
  ];
  const headers: Record<string, string>[] = [
    { "idempotency-key": "k".repeat(255) },
    { "idempotency-key": "k".repeat(256) },
    { "idempotency-key": "a b" },
    { "last-event-id": "'; drop" },
    { "x-request-id": "x".repeat(10_000) },
    { accept: "text/html" },
    { "content-encoding": "gzip" },
    { range: "bytes=0-" },
    { expect: "nothing" },
  ];
  for (const operation of operations().filter(({ path }) => path.startsWith("/api/v1"))) {
    const body = operation.body === undefined ? undefined : "{}";
    const target = urlOf(operation.path, id);
    const ask = async (query: string, more: Record<string, string>, what: string): Promise<void> => {
      const answer = await call(api.url, operation.method, `${target}${query}`, body, more).catch(
        () => undefined,
      );
      if (answer && answer.headers.get("content-type")?.startsWith("application/json")) {
        checkAnswer(answer, operation, what);
      }
    };
    const names = queryNames(operation);
    await Promise.all([
      ...names.flatMap((name) =>
        values.flatMap((value) => {
          const text = value.startsWith("%") ? value : encodeURIComponent(value);
          return [
            ask(`?${name}=${text}`, {}, `${name}=${value.slice(0, 40)}`),
            ask(`?${name}=${text}&${name}=1`, {}, `${name} twice`),
          ];
        }),
      ),
      ...headers.map((more) => ask("", more, JSON.stringify(more).slice(0, 60))),
    ]);
  }
  assert.equal((await api.call("GET", "/api/v1/machines")).status, 200, "it still serves");
});

test("answers of a living machine conform to the document on every route", async () => {
  await using api = await start();
  const machine = await api.machine("alive", { ttlMinutes: 5, labels: { a: "b" } });
  const snapshot = (await api.call("POST", `/api/v1/machines/${machine.id}/snapshot`, { name: "s" })).json;
  const [operation] = (await api.call("GET", "/api/v1/operations")).json.items;
  let seen = 0;
  for (const described of operations().filter(({ method }) => method === "GET")) {
    const id = described.path.startsWith("/api/v1/operations") ? operation.id : machine.id;
    const answer = await call(api.url, "GET", urlOf(described.path, id).replace("{sid}", snapshot.id));
    if (answer.status === 200) seen++;
    if (answer.headers.get("content-type")?.startsWith("application/json"))
      checkAnswer(answer, described, "nothing");
  }
  assert.ok(seen >= 22, `only ${seen} routes answered 200`);
});
