/**
 * The contract's HTTP fundamentals that no other test shows: limits of the listener, logs, HEAD, order of checks, bodies.
 */
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import type { Log, LogFields } from "@kontinuum/std";
import { createServer } from "../http/listener.ts";
import { bearer, machineBody, start, until, type Parsed } from "../kryton.fixture.ts";
import { DemoProvider } from "../providers/demo/demo-provider.ts";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";

/** A log that keeps what it is told, by level. */
function keptLog(): { log: Log; lines: { level: string; message: string; fields: LogFields }[] } {
  const lines: { level: string; message: string; fields: LogFields }[] = [];
  const keep =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push({ level, message, fields });
  const log: Log = {
    debug: keep("debug"),
    info: keep("info"),
    warn: keep("warn"),
    error: keep("error"),
    with: () => log,
  };
  return { log, lines };
}

/** A provider whose host is down. */
class DeadProvider extends DemoProvider {
  override health(): Promise<void> {
    return Promise.reject(new Error("the host is gone"));
  }
}

test("the listener has the contract's limits", async () => {
  const server = createServer(undefined, () => {});
  assert.deepEqual(
    [server.headersTimeout, server.requestTimeout, server.keepAliveTimeout, server.timeout],
    [5_000, 30_000, 120_000, 0],
  );
  await using api = await start();
  const large = { "x-large": "a".repeat(900_000) };
  assert.equal((await api.call("GET", "/healthz", undefined, large)).status, 200, "under 1 MiB of headers");
  const status = await new Promise<number>((resolve) => {
    const request = http.request(
      `${api.url}/healthz`,
      { agent: false, headers: { "x-large": "a".repeat(1_100_000) } },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      },
    );
    request.once("error", () => resolve(431));
    request.end();
  });
  assert.equal(status, 431);
});

test("the access log has method, path, status, duration and request id, never a query; errors are errors", async () => {
  const { log, lines } = keptLog();
  const edges = systemEdges({ log });
  const store = await openStore("memory://", edges);
  await using api = await start({ edges, store, provider: new DeadProvider({ store, edges }) });
  await api.call("GET", "/api/v1/machines?project=default&console_ticket=s3cret", undefined, {
    "x-request-id": "r1",
  });
  await api.call("GET", "/readyz", undefined, { "x-request-id": "r2" });
  const found = await until(() => {
    const records = lines.filter(({ message }) => message === "http request");
    return records.length >= 2 ? records : undefined;
  });
  const [list, ready] = ["r1", "r2"].map((id) => found.find(({ fields }) => fields["request_id"] === id));
  assert.equal(list?.level, "info");
  assert.deepEqual(Object.keys(list.fields), ["method", "path", "status", "duration_ms", "request_id"]);
  assert.deepEqual(
    [list.fields["method"], list.fields["path"], list.fields["status"]],
    ["GET", "/api/v1/machines", 200],
  );
  assert.deepEqual([ready?.level, ready?.fields["status"]], ["error", 503]);
  assert.doesNotMatch(JSON.stringify(lines), /s3cret/);
  await store.close();
});

test("a dead provider is 503 for readyz, doctor and settings test, each with its body", async () => {
  const edges = systemEdges();
  const store = await openStore("memory://", edges);
  await using api = await start({ edges, store, provider: new DeadProvider({ store, edges }) });
  const ready = await api.call("GET", "/readyz");
  assert.deepEqual([ready.status, ready.json], [503, { provider: "demo", status: "not-ready" }]);
  const doctor = await api.call("GET", "/api/v1/doctor");
  assert.equal(doctor.status, 503);
  assert.equal(doctor.json.healthy, false);
  const failed = doctor.json.findings.find((finding: Parsed) => finding.status === "fail");
  assert.deepEqual([failed.check, typeof failed.hint], ["provider-health", "string"]);
  const tested = await api.call("POST", "/api/v1/settings/test");
  assert.deepEqual(
    [tested.status, tested.json.healthy, tested.json.connection.probes[0].status],
    [503, false, "fail"],
  );
  await store.close();
});

test("GET routes answer HEAD; 204 is empty; JSON ends with a newline and is neither compressed nor tagged", async () => {
  await using api = await start();
  const { id } = await api.machine("m");
  for (const path of [
    "/healthz",
    "/api/v1/machines",
    `/api/v1/machines/${id}`,
    "/api/v1/events",
    "/openapi.yaml",
  ]) {
    const head = await api.call("HEAD", path);
    assert.deepEqual([head.status, head.text], [200, ""], path);
  }
  const list = await api.call("GET", "/api/v1/machines", undefined, {
    "accept-encoding": "gzip, br",
    "if-none-match": "*",
  });
  assert.equal(list.headers.get("content-type"), "application/json; charset=utf-8");
  assert.deepEqual([list.headers.get("content-encoding"), list.headers.get("etag")], [null, null]);
  assert.ok(list.text.endsWith("}\n"));
  const gone = await api.call("DELETE", `/api/v1/machines/${id}`);
  assert.deepEqual([gone.status, gone.text, gone.headers.get("content-type")], [204, "", null]);
});

test("the content type of a request is not checked when callers are recognised", async () => {
  await using api = await start({ keys: { op: { role: "operator", projects: ["default"] } } });
  const made = await api.call("POST", "/api/v1/machines", JSON.stringify(machineBody("m")), {
    ...bearer("op"),
    "content-type": "text/plain",
  });
  assert.equal(made.status, 201);
});

test("a creation is checked in the contract's order", async () => {
  await using api = await start({
    env: { KRYTON_PROJECTS: "ci,qa" },
    keys: { op: { role: "operator", projects: ["ci"] }, v: { role: "viewer", projects: ["ci"] } },
  });
  const post = async (body: unknown, who = "op"): Promise<string> => {
    const { json } = await api.call("POST", "/api/v1/machines", body, bearer(who));
    return `${json.error.code}: ${json.error.message}`;
  };
  const broken = {
    name: "Bad Name",
    image: "debian-13",
    compute: { cpu: 0, memoryMiB: 1 },
    disk: { sizeGiB: 1 },
  };
  assert.match(await post("{", "v"), /^INVALID_REQUEST: the request body/, "decoding comes first");
  assert.match(
    await post({ ...broken, project: "nope" }, "v"),
    /^INVALID_REQUEST: project "nope" is not configured/,
  );
  assert.match(await post({ ...broken, project: "ci" }, "v"), /^FORBIDDEN/, "then role and project");
  assert.match(await post({ ...broken, project: "qa" }), /^FORBIDDEN/);
  assert.match(
    await post({ ...broken, project: "ci", image: "no-such" }),
    /compute\.cpu .*; .*name /,
    "then the whole spec at once",
  );
  assert.match(
    await post(machineBody("m", { project: "ci", image: "no-such" })),
    /image no-such is not in the catalog/,
  );
  const key = { initialization: { username: "ci" } };
  assert.match(
    await post(machineBody("m", { project: "ci", image: "windows-11-pro", ...key })),
    /initialization/,
    "before the minimums",
  );
  assert.match(
    await post(machineBody("m", { project: "ci", image: "windows-11-pro" })),
    /at least 4/,
    "then the minimums",
  );
  assert.deepEqual((await api.call("GET", "/api/v1/machines?project=ci", undefined, bearer("op"))).json, {
    items: [],
  });
});

test("limits clamp instead of falling back; a page of events is 50 by default", async () => {
  await using api = await start();
  await Promise.all(Array.from({ length: 60 }, (_, i) => api.machine(`m${i}`)));
  const count = async (path: string): Promise<number> => (await api.call("GET", path)).json.items.length;
  for (const [limit, expected] of [
    ["", 50],
    ["?limit=0", 50],
    ["?limit=x", 50],
    ["?limit=7", 7],
    ["?limit=1000", 60],
  ] as const) {
    assert.equal(await count(`/api/v1/machines${limit}`), expected, limit);
    assert.equal(await count(`/api/v1/events${limit}`), expected, limit);
  }
  assert.equal((await api.call("GET", "/api/v1/machines?cursor=%21")).status, 400);
});

test("projects are the caller's, in configured order; capabilities have every key", async () => {
  await using api = await start({
    env: { KRYTON_PROJECTS: "zeta,alpha,beta", KRYTON_DEFAULT_PROJECT: "beta" },
    keys: {
      all: { role: "viewer", projects: ["*"] },
      some: { role: "viewer", projects: ["beta", "zeta", "gone"] },
    },
  });
  const projects = async (who: string): Promise<unknown> =>
    (await api.call("GET", "/api/v1/projects", undefined, bearer(who))).json.items;
  assert.deepEqual(await projects("all"), ["zeta", "alpha", "beta"]);
  assert.deepEqual(await projects("some"), ["zeta", "beta"]);
  assert.deepEqual((await api.call("GET", "/api/v1/me", undefined, bearer("some"))).json, {
    name: "some",
    role: "viewer",
    projects: ["beta", "zeta", "gone"],
  });
  const capabilities = (await api.call("GET", "/api/v1/capabilities", undefined, bearer("some"))).json;
  const { provider, snapshots, networks, ttl, liveMigration, console, goldenImages } = capabilities;
  assert.deepEqual(
    { provider, snapshots, networks, ttl, liveMigration, console, goldenImages },
    {
      provider: "demo",
      snapshots: true,
      networks: true,
      ttl: true,
      liveMigration: false,
      console: false,
      goldenImages: false,
    },
  );
});

test("the metrics clients know are counted for successes only, by name, and expiries beside them", async () => {
  await using api = await start();
  const { id } = await api.machine("m");
  await api.call("POST", `/api/v1/machines/${id}/stop`);
  await api.call("POST", `/api/v1/machines/${id}/start`);
  const snapshot = (await api.call("POST", `/api/v1/machines/${id}/snapshot`)).json;
  await api.call("POST", `/api/v1/machines/${id}/snapshots/${snapshot.id}/restore`);
  await api.call("DELETE", `/api/v1/machines/${id}/snapshots/${snapshot.id}`);
  await api.call("PUT", "/api/v1/settings", { defaultProject: "default" });
  await api.call("PUT", "/api/v1/settings", { defaultProject: "nope" });
  await api.call("DELETE", `/api/v1/machines/${id}`);
  const { text } = await api.call("GET", "/metrics");
  const counted = [...text.matchAll(/^kryton_operations_total\{operation="([^"]+)"\} (\d+)$/gm)].map(
    (match) => `${match[1]} ${match[2]}`,
  );
  assert.deepEqual(counted, [
    "create 1",
    "delete 1",
    "settings-config 1",
    "snapshot 1",
    "snapshot-delete 1",
    "snapshot-restore 1",
    "start 1",
    "stop 1",
  ]);
  assert.ok(Number(/^kryton_http_requests_total (\d+)$/m.exec(text)?.[1]) >= 9);
  assert.equal(/^kryton_http_errors_total (\d+)$/m.exec(text)?.[1], "1");
});

test("the document has the contract's names", async () => {
  await using api = await start();
  const { text } = await api.call("GET", "/openapi.yaml");
  for (const name of [
    "CreateMachine",
    "DockurOptions",
    "SettingsUpdate",
    "StorageSetup",
    "AtlasConfig",
    "Error",
  ])
    assert.match(text, new RegExp(`^    ${name}:$`, "m"));
  for (const name of ["Project", "MachineID", "SnapshotID", "GoldenID"])
    assert.match(text, new RegExp(`^    ${name}:$`, "m"));
  assert.match(text, /^openapi: 3\.1\.0\ninfo:\n {2}title: Kryton API\n {2}version: 1\.1\.0$/m);
  assert.match(text, /bearerAuth:\n {6}type: http\n {6}scheme: bearer/);
  assert.equal((await api.call("GET", "/openapi.yaml")).headers.get("access-control-allow-origin"), null);
});
