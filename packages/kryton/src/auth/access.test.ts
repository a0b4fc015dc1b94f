import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { bearer, machineBody, start, type Answered, type Fixture } from "../kryton.fixture.ts";
import { roles, type Role } from "../model/principal.ts";

const ledgerSchema = z.array(
  z.object({
    route: z.string(),
    kind: z.enum(["public", "any", "global", "project", "console"]),
    role: z.enum(roles).optional(),
    from: z.enum(["query", "body"]).optional(),
  }),
);

const keys: Record<string, { role: Role; projects: string[] }> = {
  "viewer-ci": { role: "viewer", projects: ["ci"] },
  "operator-ci": { role: "operator", projects: ["ci"] },
  "admin-ci": { role: "admin", projects: ["ci"] },
  "admin-qa": { role: "admin", projects: ["qa"] },
};

/** Wrong keys tried: fewer than what an address is limited to. */
const maxGuesses = 15;

/** Calls a route of the ledger for project ci with ids of nothing. */
function attempt(api: Fixture, route: string, headers: Record<string, string>): Promise<Answered> {
  const [method = "", template = ""] = route.split(" ");
  const path = template
    .replace("{id}", "00000000-0000-4000-8000-000000000000")
    .replace("{sid}", "00000000-0000-4000-8000-000000000000")
    .replace("{rest}", "x");
  const body = method === "GET" || method === "DELETE" ? undefined : { ...machineBody("x"), project: "ci" };
  return api.call(method, `${path}?project=ci`, body, headers);
}

test("every route keeps its role and project rule", async () => {
  const text = await readFile(new URL("../../access-ledger.json", import.meta.url), "utf8");
  const ledger = ledgerSchema.parse(JSON.parse(text));
  await using api = await start({ env: { KRYTON_PROJECTS: "ci,qa" }, keys });
  let guesses = 0;
  for (const { route, kind, role } of ledger) {
    if (route.endsWith("/events/stream")) continue;
    const anonymous = await attempt(api, route, {});
    if (kind === "public") {
      assert.notEqual(anonymous.status, 401, route);
      continue;
    }
    assert.equal(anonymous.status, 401, `${route} without credentials`);
    assert.equal(anonymous.headers.get("www-authenticate"), 'Bearer realm="kryton"');
    if (guesses++ < maxGuesses) {
      assert.equal((await attempt(api, route, bearer("wrong"))).status, 401, `${route} with a wrong key`);
    }
    for (const [token, holder] of Object.entries(keys)) {
      const { status, json } = await attempt(api, route, bearer(token));
      const enough = role === undefined || roles.indexOf(holder.role) >= roles.indexOf(role);
      const inside: boolean = kind === "any" || kind === "global" || holder.projects.includes("ci");
      const refused = status === 403 && json?.error?.code === "FORBIDDEN";
      assert.equal(refused, !(enough && inside), `${route} as ${token} answered ${status}`);
      assert.notEqual(status, 500, `${route} as ${token}`);
    }
  }
});

test("no route reaches QEMU, RDP, WinRM or PowerShell", async () => {
  const text = await readFile(new URL("../../access-ledger.json", import.meta.url), "utf8");
  assert.doesNotMatch(text, /qemu|qmp|monitor|rdp|winrm|powershell|exec|shell/i);
});

test("unknown paths are 401 before they are 404, and 405 names the methods", async () => {
  await using api = await start({ keys: { k: { role: "viewer", projects: ["*"] } } });
  assert.equal((await api.call("GET", "/api/v1/nothing")).status, 401);
  const missing = await api.call("GET", "/api/v1/nothing", undefined, bearer("k"));
  assert.equal(missing.status, 404);
  assert.equal(missing.json.error.code, "NOT_FOUND");
  const wrong = await api.call("PUT", "/api/v1/machines", undefined, bearer("k"));
  assert.equal(wrong.status, 405);
  assert.equal(wrong.headers.get("allow"), "GET, HEAD, POST");
  assert.equal((await api.call("GET", "/nothing")).json.error.code, "NOT_FOUND");
  assert.equal((await api.call("HEAD", "/healthz")).status, 200);
});

test("failed sign-ins are limited per address, with Retry-After, and lock nobody out whose key has worked", async () => {
  await using api = await start({
    keys: { good: { role: "viewer", projects: ["*"] }, late: { role: "viewer", projects: ["*"] } },
  });
  const me = (token: string): Promise<Answered> => api.call("GET", "/api/v1/me", undefined, bearer(token));
  assert.equal((await me("good")).status, 200);
  let last: Answered | undefined;
  for (let i = 0; i < 40; i++) last = await me(`guess-${i}`);
  assert.equal(last?.status, 429);
  assert.ok(Number(last.headers.get("retry-after")) >= 1);
  assert.equal((await me("good")).status, 200, "a key that worked works on, whoever else shares its address");
  assert.equal((await me("late")).status, 429, "what has not worked yet waits like a guess");
  assert.equal((await api.call("GET", "/healthz")).status, 200);
});

test("a proxy that forwards people without a name is not taken for one that guesses", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-proxy-"));
  const secretFile = join(directory, "secret");
  await writeFile(secretFile, "shared");
  await using api = await start({
    env: { KRYTON_AUTH_MODE: "proxy", KRYTON_TRUST_PROXY: "true", KRYTON_PROXY_SECRET_FILE: secretFile },
  });
  const ask = (headers: Record<string, string>, secret = "shared"): Promise<Answered> =>
    api.call("GET", "/api/v1/me", undefined, { "x-kryton-proxy-secret": secret, ...headers });
  const person = { "x-kryton-user": "ann", "x-kryton-role": "viewer", "x-kryton-projects": "default" };
  assert.equal((await ask(person)).status, 200);
  for (let i = 0; i < 25; i++) assert.equal((await ask({})).status, 401);
  assert.equal((await ask(person)).status, 200);
  for (let i = 0; i < 40; i++) await ask(person, `guess-${i}`);
  assert.equal((await ask(person, "one more")).status, 429);
  await rm(directory, { recursive: true });
});

test("no answer names a project that is not the caller's", async () => {
  const text = await readFile(new URL("../../access-ledger.json", import.meta.url), "utf8");
  await using api = await start({
    env: { KRYTON_PROJECTS: "ci,hidden-one" },
    keys: { mine: { role: "operator", projects: ["ci"] }, theirs: { role: "admin", projects: ["*"] } },
  });
  await api.machine("quiet", { project: "hidden-one" }, bearer("theirs"));
  for (const { route, kind } of ledgerSchema.parse(JSON.parse(text))) {
    if (!route.startsWith("GET ") || kind === "public" || route.endsWith("/events/stream")) continue;
    const { text: body } = await attempt(api, route, bearer("mine"));
    assert.doesNotMatch(body, /hidden-one|quiet/, route);
  }
});

test("with authentication off a presented credential is 401, and nobody is locked out by it", async () => {
  await using api = await start();
  assert.equal((await api.call("GET", "/api/v1/me")).json.name, "local-demo");
  const presented: Record<string, string>[] = [
    bearer("bad"),
    { authorization: "Basic YTpi" },
    { authorization: "" },
    { "x-kryton-proxy-secret": "guess", "x-kryton-user": "root", "x-kryton-role": "admin" },
  ];
  for (const headers of presented) {
    for (const path of ["/api/v1/me", "/api/v1/machines", "/api/v1/nothing"]) {
      const refused = await api.call("GET", path, undefined, headers);
      assert.equal(refused.status, 401, JSON.stringify(headers));
      assert.equal(refused.json.error.code, "UNAUTHORIZED");
    }
  }
  const write = await api.call("POST", "/api/v1/machines", machineBody("x"), bearer("bad"));
  assert.equal(write.status, 401);
  for (let i = 0; i < 25; i++) await api.call("GET", "/api/v1/me", undefined, bearer(`guess-${i}`));
  assert.equal((await api.call("GET", "/api/v1/me")).status, 200);
});

test("a rate limit counts per caller and says when to come back", async () => {
  await using api = await start({
    env: { KRYTON_RATE_LIMIT_RPS: "0.01", KRYTON_RATE_LIMIT_BURST: "3" },
    keys: { a: { role: "viewer", projects: ["*"] }, b: { role: "viewer", projects: ["*"] } },
  });
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++)
    statuses.push((await api.call("GET", "/api/v1/me", undefined, bearer("a"))).status);
  assert.deepEqual(statuses.slice(0, 3), [200, 200, 200]);
  assert.equal(statuses[4], 429);
  const refused = await api.call("GET", "/api/v1/me", undefined, bearer("a"));
  assert.equal(refused.json.error.code, "RATE_LIMITED");
  const wait = Number(refused.headers.get("retry-after"));
  assert.ok(wait > 0 && wait <= 100, `a token comes within 100 s, not ${wait}`);
  assert.equal((await api.call("GET", "/api/v1/me", undefined, bearer("b"))).status, 200);
  for (let i = 0; i < 6; i++) assert.equal((await api.call("GET", "/healthz")).status, 200);
});
