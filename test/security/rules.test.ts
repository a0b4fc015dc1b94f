/**
 * An attack on each rule of the edges, against a whole hub with its machine API, from outside.
 *
 * Rules, in the order of the tests: 1 off means loopback, and loopback is not trusted; 2 invalid credentials are 401 and
 * limited; 3 no credentials across origins; 4 the server's own calls go nowhere they should not; 5 files and
 * processes; 6 parsers are bounded before they work; 10 anonymous access is never handed on to a zone with a domain
 * (`zone.exposure.test.ts`). What one package alone can be attacked by is tested beside it.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { isCoded, systemEdges } from "@kontinuum/std";
import {
  main,
  parseConfig,
  readValues,
  startProcess,
  type RunningProcess,
  type Values,
} from "../../packages/kontinuum/src/index.ts";
import { discoverIssuer } from "../../packages/kontinuum/src/login/issuer.ts";
import { startOidcProvider, type TestProvider } from "../services/oidc-provider.ts";
import { rawRequest, type RawAnswer } from "./raw-request.ts";

const edges = systemEdges();
let dir: string;
let open: RunningProcess;
let guarded: RunningProcess;
let provider: TestProvider;
/** The open hub's two faces. */
let api: string;
let machines: string;

async function startHub(name: string, values: Partial<Values>): Promise<RunningProcess> {
  const folder = path.join(dir, name);
  await mkdir(folder);
  const database = (file: string): string => `sqlite://${encodeURI(path.join(folder, file))}`;
  const config = parseConfig(
    readValues({
      KONTINUUM_SERVER_ADDR: "127.0.0.1:0",
      KONTINUUM_SERVER_NAME: name,
      KONTINUUM_SERVER_STORAGE: database("hub.db"),
      ...values,
    }),
  );
  return startProcess(config, {
    edges,
    environment: {
      KRYTON_PROVIDER: "demo",
      KRYTON_ADDR: "127.0.0.1:0",
      KRYTON_STORAGE: database("kryton.db"),
    },
  });
}

before(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-rules-"));
  provider = await startOidcProvider("kontinuum", "http://127.0.0.1:1/app");
  open = await startHub("open", { KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true" });
  guarded = await startHub("guarded", {
    KONTINUUM_OIDC_ISSUER_URL: provider.issuerUrl,
    KONTINUUM_OIDC_ADMIN_GROUPS: "admins",
  });
  api = open.server.url;
  machines = open.machineApi ?? "";
});
after(async () => {
  await open.stop();
  await guarded.stop();
  await provider.stop();
  await rm(dir, { recursive: true, force: true });
});

/** What the command line says to somebody with this token. */
async function zoneList(token: string): Promise<{ code: number; err: string }> {
  const kubeconfig = path.join(dir, "kubeconfig.json");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: guarded.server.url } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  };
  await writeFile(kubeconfig, JSON.stringify(config), { mode: 0o600 });
  let err = "";
  const code = await main(["zone", "list", "--kubeconfig", kubeconfig], {
    stdout: { write: () => true },
    stderr: { write: (text) => (err += text) },
    stdin: Readable.from([]),
    environment: {},
    edges,
    signal: new AbortController().signal,
  });
  return { code, err };
}

const configMap = (name: string, data: object = {}): string =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
const configMaps = "/api/v1/namespaces/default/configmaps";
const json = { "content-type": "application/json" };
const post = (to: string, body: string | Uint8Array, headers: http.OutgoingHttpHeaders): Promise<RawAnswer> =>
  rawRequest(api, "POST", to, headers, body);
const exists = async (name: string): Promise<boolean> =>
  (await rawRequest(api, "GET", `${configMaps}/${name}`)).status === 200;

test("the table of rules names tests that are there", async () => {
  const root = path.resolve(import.meta.dirname, "../..");
  const table = await readFile(path.join(root, "docs/security.md"), "utf8");
  const named = [...table.matchAll(/`([a-z]+\/[^`]+\.ts)`/g)].map(([, file = ""]) => file);
  assert.ok(named.length > 20);
  for (const file of new Set(named)) assert.ok((await stat(path.join(root, file))).isFile(), file);
});

test("rule 1: another host name does not reach a hub without authentication", async () => {
  for (const host of [
    "evil.example",
    "evil.example:8080",
    "10.0.0.1",
    "localhost.evil.example",
    "[2001:db8::1]",
  ]) {
    for (const [base, to] of [
      [api, "/api/v1/namespaces"],
      [api, "/app/topology"],
      [machines, "/api/v1/machines"],
    ] as const) {
      const { status, body } = await rawRequest(base, "GET", to, { host });
      assert.equal(status, 403, `${host} ${to}`);
      assert.doesNotMatch(body, /kube-system|hub/i);
    }
  }
  for (const host of ["localhost", "127.0.0.1:9", "[::1]:8080"])
    assert.equal((await rawRequest(api, "GET", "/api/v1/namespaces", { host })).status, 200, host);
});

test("rule 1: a page of another site changes nothing, whatever it sends", async () => {
  const own = new URL(api).origin;
  const attacks: [string, http.OutgoingHttpHeaders, string][] = [
    ["origin", { ...json, origin: "https://evil.example" }, configMap("csrf-origin")],
    ["opaque", { ...json, origin: "null" }, configMap("csrf-opaque")],
    ["port", { ...json, origin: "http://127.0.0.1:1" }, configMap("csrf-port")],
    ["metadata", { ...json, "sec-fetch-site": "cross-site" }, configMap("csrf-metadata")],
    ["form", { "content-type": "text/plain", origin: own }, configMap("csrf-form")],
    ["untyped", { "sec-fetch-site": "same-origin" }, configMap("csrf-untyped")],
  ];
  for (const [name, headers, body] of attacks) {
    const { status } = await post(configMaps, body, headers);
    assert.ok(status >= 400 && status < 500, `${name}: ${status}`);
    assert.equal(await exists(`csrf-${name}`), false, name);
  }
  const machine = JSON.stringify({ name: "csrf", image: "ubuntu-24.04" });
  for (const headers of [
    { ...json, origin: "https://evil.example" },
    { ...json, "sec-fetch-site": "cross-site" },
    { "content-type": "text/plain", origin: new URL(machines).origin },
  ]) {
    const { status } = await rawRequest(machines, "POST", "/api/v1/machines", headers, machine);
    assert.ok(status >= 400 && status < 500, JSON.stringify(headers));
  }
  assert.deepEqual(JSON.parse((await rawRequest(machines, "GET", "/api/v1/machines")).body).items, []);
  const form = await rawRequest(
    api,
    "POST",
    "/app/kontinuum.sh/namespaces/kontinuum-system/zones",
    { "content-type": "application/x-www-form-urlencoded", origin: "https://evil.example" },
    "region=evil&zone=a&talosAddress=192.0.2.1",
  );
  assert.equal(form.status, 403);
});

test("rule 1: an upgrade of another site is refused on both ports", async () => {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    origin: "https://evil.example",
  };
  assert.equal((await rawRequest(api, "GET", "/api/v1/namespaces?watch=1", headers)).status, 403);
  const { status } = await rawRequest(machines, "GET", "/api/v1/machines/x/vnc", headers);
  assert.ok(status === 403 || status === 401, String(status));
});

test("rule 1: without authentication nothing but an explicit address is open to the network", () => {
  const listening = (values: Partial<Values>) =>
    parseConfig(readValues({ KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true", ...values }));
  assert.equal(listening({}).listen.host, "127.0.0.1");
  assert.ok(
    listening({ KONTINUUM_SERVER_ADDR: "0.0.0.0:8080" }).warnings.some((text) =>
      /open to the network/.test(text),
    ),
  );
  assert.throws(
    () => parseConfig(readValues({})),
    (error) => isCoded(error, "invalid_argument"),
  );
});

test("rule 2: an invalid credential is 401 on every face, never anonymous, and failures are limited", async () => {
  const wrong = [
    { authorization: "Bearer wrong" },
    { authorization: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9." },
    { authorization: "Basic YWRtaW46YWRtaW4=" },
    { authorization: "Bearer" },
  ];
  for (const headers of wrong) {
    // Health is open to everybody, but not to somebody who says who they are and is not.
    for (const to of ["/api/v1/namespaces", "/version", "/readyz"])
      assert.equal(
        (await rawRequest(guarded.server.url, "GET", to, headers)).status,
        401,
        `${headers.authorization} ${to}`,
      );
    const { status } = await rawRequest(guarded.machineApi ?? "", "GET", "/api/v1/machines", headers);
    assert.equal(status, 401, headers.authorization);
  }
  const said = await zoneList("a-token-that-nobody-may-read-back");
  assert.equal(said.code, 4);
  assert.match(said.err, /^kontinuum: Unauthorized; [^\n]*renew the credential in your kubeconfig\n$/);
  assert.doesNotMatch(said.err, /nobody-may-read-back/);
  assert.equal((await rawRequest(guarded.server.url, "GET", "/readyz")).status, 200);
  const secret = "a-guess-that-nobody-may-read-back";
  const seen = new Set<number>();
  let limited: RawAnswer | undefined;
  for (let attempt = 0; attempt < 100 && !limited; attempt++) {
    const answer = await rawRequest(guarded.server.url, "GET", "/api/v1/namespaces", {
      authorization: `Bearer ${secret}${attempt}`,
    });
    seen.add(answer.status);
    assert.doesNotMatch(answer.body, new RegExp(secret));
    if (answer.status === 429) limited = answer;
  }
  assert.deepEqual([...seen].sort(), [401, 429]);
  assert.ok(Number(limited?.headers["retry-after"]) >= 1);
});

test("rule 3: no answer allows another origin to use a visitor's credentials", async () => {
  for (const [base, to] of [
    [api, "/api/v1/namespaces"],
    [api, "/app/topology"],
    [machines, "/api/v1/machines"],
  ] as const) {
    for (const method of ["GET", "OPTIONS"]) {
      const { headers } = await rawRequest(base, method, to, {
        origin: "https://evil.example",
        "access-control-request-method": "POST",
      });
      assert.equal(headers["access-control-allow-credentials"], undefined, `${method} ${to}`);
      assert.equal(headers["access-control-allow-origin"], undefined, `${method} ${to}`);
    }
  }
});

test("rule 4: a webhook that points into this machine is not called", async () => {
  let called = 0;
  const inside = http.createServer((_request, response) => {
    called++;
    response.end("a-secret-of-a-neighbour");
  });
  inside.on("connection", () => called++);
  await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
  const address = inside.address();
  assert.ok(typeof address === "object" && address);
  const hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const places = [
    `https://127.0.0.1:${address.port}/x`,
    `https://localhost:${address.port}/x`,
    `https://[::ffff:127.0.0.1]:${address.port}/x`,
    `https://2130706433:${address.port}/x`,
    `https://127.0.0.1:${open.server.port}/api/v1/namespaces/kontinuum-system/secrets`,
    "https://169.254.169.254/latest/meta-data",
  ];
  for (const url of places) {
    const made = await post(
      hooks,
      JSON.stringify({
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingWebhookConfiguration",
        metadata: { name: "inside" },
        webhooks: [
          {
            name: "v.example.io",
            clientConfig: { url },
            rules: [
              { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] },
            ],
            failurePolicy: "Fail",
            sideEffects: "None",
            admissionReviewVersions: ["v1"],
          },
        ],
      }),
      json,
    );
    if (made.status !== 201) {
      assert.equal(made.status, 422, made.body);
      continue;
    }
    const { status, body } = await post(configMaps, configMap("hooked"), json);
    assert.equal(status, 500, `${url}: ${body}`);
    assert.match(body, /are refused/, url);
    assert.doesNotMatch(body, /a-secret-of-a-neighbour|signing-key/);
    assert.equal((await rawRequest(api, "DELETE", `${hooks}/inside`)).status, 200);
  }
  assert.equal(called, 0);
  await new Promise((resolve) => inside.close(resolve));
});

test("rule 4: an OpenID provider can't send this hub to another service of this machine", async () => {
  let called = 0;
  const inside = http.createServer((_request, response) => response.end("{}"));
  inside.on("connection", () => called++);
  await new Promise<void>((resolve) => inside.listen(0, "127.0.0.2", resolve));
  const hostile = http.createServer((_request, response) => {
    const place = inside.address();
    const target = typeof place === "object" && place ? `http://127.0.0.2:${place.port}` : "";
    response.writeHead(302, { location: `${target}/.well-known/openid-configuration` }).end();
  });
  await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
  const address = hostile.address();
  assert.ok(typeof address === "object" && address);
  const options = { clientId: "k", redirectUrl: "http://127.0.0.1:1/app" };
  await assert.rejects(
    discoverIssuer({ ...options, issuerUrl: `http://127.0.0.1:${address.port}` }, edges),
    (error) => isCoded(error, "unavailable"),
  );
  assert.equal(called, 0);
  for (const server of [inside, hostile]) await new Promise((resolve) => server.close(resolve));
});

test("rule 5: what a hub writes is its owner's alone, and no name leads out of its place", async () => {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isFile()) assert.equal((await stat(file)).mode & 0o077, 0, file);
    if (entry.isFile()) assert.ok(!(await readFile(file)).includes("PRIVATE KEY-----"), file);
  }
  for (const name of ["..%2f..%2fetc%2fpasswd", "..", "%00", "a%2fb", "-rf", "x".repeat(300)]) {
    for (const [base, to] of [
      [api, `${configMaps}/${name}`],
      [api, `/app/assets/${name}`],
      [machines, `/api/v1/machines/${name}`],
    ] as const) {
      const { status, body } = await rawRequest(base, "GET", to);
      assert.ok(status >= 300 && status < 500, `${to}: ${status}`);
      assert.doesNotMatch(body, /root:|\n\s+at /);
    }
  }
  for (const name of ["../x", "A_B", "-x", "x/y", "x\u0000"])
    assert.equal((await post(configMaps, configMap(name), json)).status, 422, name);
});

/** A definition whose field `spec.text` has this schema. */
const definition = (schema: object, group = "attack.example.com"): string =>
  JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `things.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: "object",
              properties: { spec: { type: "object", properties: { text: schema } } },
            },
          },
        },
      ],
    },
  });
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const nested = (depth: number): object =>
  depth === 0 ? { type: "string" } : { type: "object", properties: { a: nested(depth - 1) } };

test("rule 6: bodies are bounded before they are read as anything", { timeout: 60_000 }, async () => {
  const yaml = { "content-type": "application/yaml" };
  const protobuf = { "content-type": "application/vnd.kubernetes.protobuf" };
  const aliases = ["a: &a [x,x,x,x,x,x,x,x,x,x]"];
  for (let level = 0; level < 9; level++) {
    const name = String.fromCharCode(98 + level);
    const before = `*${String.fromCharCode(97 + level)}`;
    aliases.push(`${name}: &${name} [${Array(10).fill(before).join(",")}]`);
  }
  const attacks: [string, http.OutgoingHttpHeaders, string | Uint8Array][] = [
    ["too large", json, configMap("large", { a: "x".repeat(4 * 1024 * 1024) })],
    [
      "deep JSON",
      json,
      `{"apiVersion":"v1","kind":"ConfigMap","data":${'{"a":'.repeat(100_000)}1${"}".repeat(100_001)}`,
    ],
    ["deep array", json, `${"[".repeat(500_000)}`],
    ["YAML aliases", yaml, `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n${aliases.join("\n")}`],
    ["deep YAML", yaml, `a: ${"[".repeat(50_000)}`],
    ["gzip bomb", { ...json, "content-encoding": "gzip" }, gzipSync(Buffer.alloc(100 * 1024 * 1024, 0x20))],
    ["protobuf length", protobuf, Buffer.from("6b3873000aff ff ff ff 0f".replaceAll(" ", ""), "hex")],
    ["protobuf noise", protobuf, Buffer.concat([Buffer.from("k8s\0"), Buffer.alloc(1024 * 1024, 0x0a)])],
    ["no JSON", json, "\u0000\u0001"],
  ];
  for (const [name, headers, body] of attacks) {
    const { status, body: text } = await measured(name, () => post(configMaps, body, headers));
    assert.ok(status >= 400 && status < 500, `${name}: ${status} ${text.slice(0, 200)}`);
    assert.doesNotMatch(text, /\n\s+at /, name);
  }
  for (const [name, headers, body] of [
    ["large", json, JSON.stringify({ name: "x".repeat(8 * 1024 * 1024) })],
    ["deep", json, `${"[".repeat(200_000)}`],
  ] as const) {
    const { status } = await measured(name, () =>
      rawRequest(machines, "POST", "/api/v1/machines", headers, body),
    );
    assert.ok(status >= 400 && status < 500, `${name}: ${status}`);
  }
});

test(
  "rule 6: schemas, patterns and rules are bounded before anything compiles them",
  { timeout: 60_000 },
  async () => {
    const text = { type: "string" };
    const rule = (expression: string, schema: object = text): object => ({
      ...schema,
      "x-kubernetes-validations": [{ rule: expression }],
    });
    const unbounded = { type: "array", items: { type: "array", items: text } };
    const attacks: [string, object][] = [
      ["$ref", { $ref: "#/definitions/x" }],
      ["id", { ...text, id: "https://evil.example/schema" }],
      ["deep", nested(500)],
      [
        "wide",
        {
          type: "object",
          properties: Object.fromEntries(Array.from({ length: 100_001 }, (_, i) => [i.toString(36), text])),
        },
      ],
      ["pattern that is none", { ...text, pattern: "(" }],
      ["back reference", { ...text, pattern: "(a)\\1" }],
      ["costly rule", rule("self.all(a, self.all(b, a.all(c, b.all(d, c == d))))", unbounded)],
      ["rule that is none", rule("self.")],
      ["deep rule", rule(`${"(".repeat(5000)}true${")".repeat(5000)}`)],
    ];
    for (const [name, schema] of attacks) {
      const { status, body } = await measured(name, () => post(definitions, definition(schema), json));
      assert.ok(status >= 400 && status < 500, `${name}: ${status} ${body.slice(0, 300)}`);
      assert.doesNotMatch(body, /\n\s+at /, name);
    }
  },
);

test("rule 6: a field that is none of a schema's is not kept", async () => {
  const made = await post(
    definitions,
    definition({ type: "string", $id: "https://evil.example/schema" }, "id.example.com"),
    json,
  );
  assert.equal(made.status, 201);
  assert.doesNotMatch(JSON.stringify(JSON.parse(made.body).spec), /evil/);
});

test("rule 6: a pattern that explodes elsewhere takes linear time here", { timeout: 60_000 }, async () => {
  const group = "patterns.example.com";
  const made = await post(
    definitions,
    definition({ type: "string", pattern: "^(a+)+$", maxLength: 100_000 }, group),
    json,
  );
  assert.equal(made.status, 201, made.body);
  const things = `/apis/${group}/v1/namespaces/default/things`;
  const thing = (value: string): string =>
    JSON.stringify({
      apiVersion: `${group}/v1`,
      kind: "Thing",
      metadata: { name: "x" },
      spec: { text: value },
    });
  const answer = async (): Promise<RawAnswer> => post(things, thing(`${"a".repeat(50_000)}!`), json);
  let seen = await answer();
  // Served a moment after it was accepted.
  for (let tries = 0; seen.status === 404 && tries < 100; tries++) {
    await edges.clock.sleep(20);
    seen = await answer();
  }
  assert.equal(seen.status, 422);
  assert.equal((await measured("pattern", answer)).status, 422);
});

/** Most processor time one hostile request may cost, milliseconds: generous, because other work of this process counts too. */
const maxCpuMs = 3000;

/** Runs an attack and asserts that the hub did not work on it for long, and still answers. */
async function measured(name: string, attack: () => Promise<RawAnswer>): Promise<RawAnswer> {
  const start = process.cpuUsage();
  const answer = await attack();
  const { user, system } = process.cpuUsage(start);
  assert.ok((user + system) / 1000 < maxCpuMs, `${name} took ${(user + system) / 1000} ms of processor time`);
  assert.equal((await rawRequest(api, "GET", "/livez")).status, 200, name);
  return answer;
}
