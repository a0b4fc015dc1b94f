import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, isCoded, SimulatedClock, systemEdges, type ErrorCode } from "@kontinuum/std";
import { readLines, readText } from "./body.ts";
import { Client } from "./client.ts";
import {
  configMaps,
  deployments,
  namespaces,
  secrets,
  secretText,
  type ConfigMap,
} from "./core-resources.ts";
import { compareVersions, objectPath, parseKey, refKey } from "./resource.ts";
import { ScriptedApi } from "./scripted-api.fixture.ts";
import { formatSelector, matches } from "./selector.ts";
import { reasonOf, statusError } from "./status.ts";
import type { TransportRequest } from "./transport.ts";

function configMap(name: string): ConfigMap {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "n" } };
}

function setup() {
  const api = new ScriptedApi();
  const clock = new SimulatedClock();
  const sent: TransportRequest[] = [];
  const transport = (request: TransportRequest) => {
    sent.push(request);
    return api.transport(request);
  };
  return {
    api,
    clock,
    sent,
    client: new Client(transport, { edges: systemEdges({ clock }), userAgent: "me/1" }),
  };
}

test("paths", () => {
  assert.equal(objectPath(configMaps, { namespace: "n", name: "a" }), "/api/v1/namespaces/n/configmaps/a");
  assert.equal(objectPath(namespaces, { name: "n" }), "/api/v1/namespaces/n");
  assert.equal(
    objectPath(deployments, { namespace: "n", name: "a/b" }, "status"),
    "/apis/apps/v1/namespaces/n/deployments/a%2Fb/status",
  );
  assert.throws(() => objectPath(configMaps, { name: "a" }), /namespace is needed/);
  assert.deepEqual(parseKey(refKey({ namespace: "n", name: "a" })), { namespace: "n", name: "a" });
  assert.deepEqual(parseKey(refKey({ name: "a" })), { name: "a" });
});

test("resource versions are compared as numbers of any length", () => {
  assert.ok(compareVersions("9", "10") < 0);
  assert.ok(compareVersions("9007199254740993", "9007199254740992") > 0);
  assert.equal(compareVersions("7", "7"), 0);
  assert.ok(compareVersions(undefined, "1") < 0);
});

test("a list reads all pages", async () => {
  const { client, sent } = setup();
  for (let i = 0; i < 7; i++) await client.create(configMaps, configMap(`c${i}`));
  const before = sent.length;
  const list = await client.list(configMaps, { namespace: "n", pageSize: 3 });
  assert.equal(list.items.length, 7);
  assert.equal(list.items[0]?.kind, "ConfigMap");
  assert.equal(sent.length - before, 3);
});

test("a list whose snapshot is compacted between pages is read again in one go", async () => {
  const { api, client } = setup();
  for (let i = 0; i < 4; i++) await client.create(configMaps, configMap(`c${i}`));
  api.failNext(/continue=/, 410, "Expired");
  assert.equal((await client.list(configMaps, { pageSize: 2 })).items.length, 4);
});

test("apply, json and merge patches carry their type and options", async () => {
  const { client, sent } = setup();
  await client.create(configMaps, configMap("a"));
  const ref = { namespace: "n", name: "a" };
  await client.patch(configMaps, ref, { type: "merge", patch: {} });
  await client.apply(configMaps, configMap("a"), { fieldManager: "me", force: true, dryRun: true });
  await client.patch(configMaps, ref, { type: "json", operations: [] }, { subresource: "status" });
  const [merge, apply, json] = sent.slice(1);
  assert.equal(merge?.headers?.["content-type"], "application/merge-patch+json");
  assert.equal(merge?.headers?.["user-agent"], "me/1");
  assert.equal(apply?.headers?.["content-type"], "application/apply-patch+yaml");
  assert.equal(apply?.path, "/api/v1/namespaces/n/configmaps/a?fieldManager=me&dryRun=All&force=true");
  assert.equal(json?.headers?.["content-type"], "application/json-patch+json");
  assert.equal(json?.path, "/api/v1/namespaces/n/configmaps/a/status");
});

test("delete sends preconditions and propagation", async () => {
  const { client, sent } = setup();
  await client.create(configMaps, configMap("a"));
  const ref = { namespace: "n", name: "a" };
  await client.delete(configMaps, ref, { preconditions: { uid: "u" }, propagation: "Foreground" });
  assert.deepEqual(JSON.parse(String(sent.at(-1)?.body)), {
    kind: "DeleteOptions",
    apiVersion: "v1",
    preconditions: { uid: "u" },
    propagationPolicy: "Foreground",
  });
  assert.equal(await client.deleteIfExists(configMaps, ref), undefined);
});

test("a request that is turned away with Retry-After is repeated, others are not", async () => {
  const { api, client, clock } = setup();
  api.failNext(/GET/, 429, "TooManyRequests", { "retry-after": "2" });
  const found = client.find(configMaps, { namespace: "n", name: "a" });
  await clock.advance(1999);
  assert.equal(api.requests.length, 1);
  await clock.advance(1);
  assert.equal(await found, undefined);
  assert.equal(api.requests.length, 2);
  api.failNext(/GET/, 500, "InternalError");
  await assert.rejects(client.find(configMaps, { namespace: "n", name: "a" }), (error) =>
    isCoded(error, "internal"),
  );
  assert.equal(api.requests.length, 3);
});

test("retries are bounded", async () => {
  const { api, client, clock } = setup();
  for (let i = 0; i < 20; i++) api.failNext(/GET/, 503, "ServiceUnavailable", { "retry-after": "1" });
  const failed = assert.rejects(client.get(namespaces, { name: "n" }), (error) =>
    isCoded(error, "unavailable"),
  );
  await clock.advance(60_000);
  await failed;
  assert.equal(api.requests.length, 6);
});

test("status answers become codes by reason first", () => {
  const cases: [number, string, ErrorCode][] = [
    [409, "AlreadyExists", "already_exists"],
    [409, "Conflict", "conflict"],
    [410, "Expired", "gone"],
    [422, "Invalid", "unprocessable"],
    [500, "ServerTimeout", "unavailable"],
    [403, "Forbidden", "permission_denied"],
    [405, "MethodNotAllowed", "unsupported"],
    [504, "Timeout", "deadline_exceeded"],
  ];
  for (const [status, reason, code] of cases) {
    const body = {
      kind: "Status",
      reason,
      message: "m",
      details: { causes: [{ reason: "R", field: "f" }], retryAfterSeconds: 3 },
    };
    const error = statusError(status, body, "GET /");
    assert.equal(error.code, code);
    assert.equal(reasonOf(error), reason);
    assert.equal(error.retryAfterMs, 3000);
    assert.deepEqual(error.details["causes"], [{ reason: "R", field: "f" }]);
  }
  assert.equal(statusError(502, "<html>", "GET /x").message, "GET /x: HTTP status 502");
});

test("an object that is not its kind is refused", async () => {
  const parse = (value: unknown) => () => secrets.parse(value);
  assert.throws(parse(null), /not an object/);
  assert.throws(
    parse({ kind: "ConfigMap", apiVersion: "v1", metadata: { name: "x" } }),
    /it is a v1 ConfigMap/,
  );
  assert.throws(parse({ metadata: {} }), /metadata.name is not a string/);
  assert.throws(parse({ metadata: { name: "x" }, data: { a: 1 } }), /data\.a is not a string/);
  const secret = secrets.parse({ metadata: { name: "x" }, data: { a: "aGk=" }, unknown: 1 });
  assert.equal(secretText(secret, "a"), "hi");
  assert.equal(Reflect.get(secret, "unknown"), 1, "unknown fields are kept");
});

test("selectors format and match alike", () => {
  const selector = {
    matchLabels: { a: "b" },
    matchExpressions: [
      { key: "c", operator: "In" as const, values: ["d", "e"] },
      { key: "f", operator: "DoesNotExist" as const },
      { key: "g", operator: "NotIn" as const, values: ["h"] },
      { key: "i", operator: "Exists" as const },
    ],
  };
  assert.equal(formatSelector(selector), "a=b,c in (d,e),!f,g notin (h),i");
  assert.equal(matches(selector, { a: "b", c: "d", i: "" }), true);
  assert.equal(matches(selector, { a: "b", c: "d", i: "", f: "" }), false);
  assert.equal(matches(selector, { a: "b", c: "d", i: "", g: "h" }), false);
  assert.equal(matches({}, undefined), true);
});

test("lines survive any chunking, and their length is bounded", async () => {
  const text = Buffer.from('{"a":"é"}\n\n{"b":2}\n{"c":3}');
  for (const size of [1, 2, 3, 7, 100]) {
    const chunks = async function* () {
      for (let i = 0; i < text.length; i += size) yield text.subarray(i, i + size);
    };
    const lines: string[] = [];
    for await (const line of readLines(chunks(), 100)) lines.push(line);
    assert.deepEqual(lines, ['{"a":"é"}', '{"b":2}', '{"c":3}']);
  }
  const endless = async function* () {
    for (;;) yield Buffer.alloc(10, "x");
  };
  const tooLarge = (error: unknown): boolean =>
    error instanceof CodedError && error.code === "payload_too_large";
  await assert.rejects(readLines(endless(), 100).next(), tooLarge);
  await assert.rejects(readText(endless(), 100), tooLarge);
});
