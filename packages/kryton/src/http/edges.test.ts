import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import http from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { bearer, machineBody, start, type Fixture } from "../kryton.fixture.ts";

/** A raw request, for headers that a client library would not send. */
function raw(
  api: Fixture,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<{ status: number; headers: http.IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${api.url}${path}`, { method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    });
    request.once("error", reject);
    request.end(body);
  });
}

test("with authentication off, other host names, other origins and form posts are refused", async () => {
  await using api = await start();
  const body = JSON.stringify(machineBody("x"));
  const json = { "content-type": "application/json" };
  const post = async (headers: Record<string, string>): Promise<number> =>
    (await raw(api, "POST", "/api/v1/machines", headers, body)).status;
  assert.equal(
    (await raw(api, "GET", "/api/v1/machines", { host: "evil.example" })).status,
    403,
    "DNS rebinding",
  );
  assert.equal((await raw(api, "GET", "/api/v1/machines", { host: "localhost:1" })).status, 200);
  assert.equal(await post({ ...json, origin: "https://evil.example" }), 403);
  assert.equal(await post({ ...json, origin: "null" }), 403);
  assert.equal(await post({ ...json, "sec-fetch-site": "cross-site" }), 403);
  assert.equal(await post({ "content-type": "text/plain", "sec-fetch-site": "same-origin" }), 403);
  assert.equal(await post({ origin: api.url }), 403, "a browser must say application/json");
  assert.equal(await post({ ...json, origin: api.url }), 201);
  const empty = await raw(api, "POST", "/api/v1/settings/test", { origin: api.url, "content-length": "0" });
  assert.equal(empty.status, 200);
});

test("request ids are kept when harmless and replaced when not", async () => {
  await using api = await start();
  const kept = await api.call("GET", "/api/v1/nothing", undefined, { "x-request-id": "my-id" });
  assert.equal(kept.headers.get("x-request-id"), "my-id");
  assert.equal(kept.json.error.requestId, "my-id");
  for (const bad of ["x".repeat(129), "a b"]) {
    const replaced = await api.call("GET", "/healthz", undefined, { "x-request-id": bad });
    assert.match(replaced.headers.get("x-request-id") ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  }
});

test("security headers stand on every answer, with frames only for consoles", async () => {
  await using api = await start();
  const plain = await api.call("GET", "/healthz");
  assert.equal(plain.headers.get("x-frame-options"), "DENY");
  assert.match(plain.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
  const console = await api.call("GET", "/api/v1/machines/x/console");
  assert.equal(console.headers.get("x-frame-options"), "SAMEORIGIN");
  assert.match(console.headers.get("content-security-policy") ?? "", /connect-src 'self' ws: wss:/);
});

test("CORS: listed origins with credentials, a star without, others nothing", async () => {
  await using api = await start({ env: { KRYTON_CORS_ORIGINS: "https://portal.example, *" } });
  const origin = (value: string) => ({ origin: value });
  const listed = await api.call("GET", "/healthz", undefined, origin("https://PORTAL.example"));
  assert.equal(listed.headers.get("access-control-allow-origin"), "https://PORTAL.example");
  assert.equal(listed.headers.get("access-control-allow-credentials"), "true");
  assert.equal(listed.headers.get("vary"), "Origin");
  const star = await api.call("GET", "/healthz", undefined, origin("https://evil.example"));
  assert.equal(star.headers.get("access-control-allow-origin"), "*");
  assert.equal(star.headers.get("access-control-allow-credentials"), null);
  const preflight = await api.call(
    "OPTIONS",
    "/api/v1/machines",
    undefined,
    origin("https://portal.example"),
  );
  assert.equal(preflight.status, 204);
  assert.match(
    preflight.headers.get("access-control-allow-headers") ?? "",
    /^Authorization, Content-Type, Accept/,
  );
  assert.equal(preflight.headers.get("x-frame-options"), null);
  await using off = await start();
  const none = await off.call("GET", "/healthz", undefined, origin("https://portal.example"));
  assert.equal(none.headers.get("access-control-allow-origin"), null);
});

test("the proxy mode trusts headers only with its secret", async () => {
  await using probe = await start();
  const file = join(probe.directory, "proxy-secret");
  await writeFile(file, "  hush\n");
  await using api = await start({
    env: { KRYTON_AUTH_MODE: "proxy", KRYTON_TRUST_PROXY: "true", KRYTON_PROXY_SECRET_FILE: file },
  });
  const headers = {
    "x-kryton-proxy-secret": " hush ",
    "x-kryton-user": "ann",
    "x-kryton-role": "OPERATOR",
    "x-kryton-projects": "default, qa",
  };
  assert.deepEqual((await api.call("GET", "/api/v1/me", undefined, headers)).json, {
    name: "ann",
    role: "operator",
    projects: ["default", "qa"],
  });
  for (const change of [
    { "x-kryton-proxy-secret": "wrong" },
    { "x-kryton-user": "" },
    { "x-kryton-role": "root" },
    { "x-kryton-projects": " , " },
  ]) {
    assert.equal((await api.call("GET", "/api/v1/me", undefined, { ...headers, ...change })).status, 401);
  }
});

test("lab bootstrap hands its token only to a direct local browser", async () => {
  await using off = await start();
  assert.deepEqual((await off.call("GET", "/api/v1/lab/bootstrap")).json, { autoAuth: false });
  const tokenFile = join(off.directory, "lab.token");
  await writeFile(tokenFile, "lab-secret\n");
  await using api = await start({
    keys: { "lab-secret": { role: "admin", projects: ["*"] } },
    env: { KRYTON_LAB_AUTO_AUTH: "true", KRYTON_ALLOW_INSECURE: "true", KRYTON_LAB_TOKEN_FILE: tokenFile },
  });
  const path = "/api/v1/lab/bootstrap";
  assert.deepEqual((await api.call("GET", path)).json, { autoAuth: true, token: "lab-secret" });
  for (const headers of [
    { "x-forwarded-for": "10.0.0.1" },
    { forwarded: "for=1.2.3.4" },
    { "sec-fetch-site": "cross-site" },
    { host: "evil.example" },
  ]) {
    assert.deepEqual(JSON.parse((await raw(api, "GET", path, headers)).text), { autoAuth: false });
  }
  assert.equal((await api.call("GET", "/api/v1/me", undefined, bearer("lab-secret"))).status, 200);
});

test("discovery, OpenAPI, health and metrics are public and as described", async () => {
  await using api = await start({ keys: { k: { role: "viewer", projects: ["*"] } } });
  const { json } = await api.call("GET", "/api/v1");
  assert.equal(json.name, "kryton");
  assert.equal(json.version, "1.0.0");
  assert.deepEqual(json.auth, { mode: "apikey", schemes: ["bearer", "proxy"], header: "Authorization" });
  assert.deepEqual(json.health, { live: "/healthz", ready: "/readyz", metrics: "/metrics" });
  const listed = json.endpoints.map((e: { method: string; path: string }) => `${e.method} ${e.path}`);
  for (const route of ["GET /api/v1/machines", "POST /api/v1/machines", "GET /api/v1/machines/{id}/vnc"]) {
    assert.ok(listed.includes(route), route);
  }
  assert.ok(
    !listed.some((route: string) => route.includes("lab/bootstrap") || route.includes("console-ticket")),
  );
  for (const path of ["/openapi.yaml", "/api/openapi.yaml"]) {
    const document = await api.call("GET", path);
    assert.equal(document.headers.get("content-type"), "application/yaml; charset=utf-8");
    assert.equal(document.headers.get("cache-control"), "public, max-age=300");
    assert.match(document.text, /title: Kryton API/);
  }
  assert.deepEqual((await api.call("GET", "/healthz")).json, { status: "ok" });
  assert.deepEqual((await api.call("GET", "/readyz")).json, { provider: "demo", status: "ready" });
  const { text, headers } = await api.call("GET", "/metrics");
  assert.equal(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  assert.match(text, /^kryton_http_requests_total \d+$/m);
  assert.match(
    text,
    /kryton_http_request_duration_seconds_bucket\{method="GET",route="\/healthz",status="200",le="0.005"\} \d/,
  );
});
