/**
 * The whole server in memory: its edges attacked, its parsers fed with noise, its start and stop.
 */
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { at, isObject, seededRandom, systemEdges, type JsonObject } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import type { Transport } from "@kontinuum/controller";
import { staticTokens } from "./auth/authenticators.ts";
import type { ApiServer, Authenticator } from "./contract.ts";
import { createServer } from "./server.ts";

let store: Store;
let server: ApiServer;
let admin: Transport;

before(async () => {
  store = await openStore("memory://", systemEdges());
  server = createServer({
    storage: store,
    auth: { authenticators: [], authorizers: [] },
    listen: { port: 0 },
    kinds: [
      "namespaces",
      "configmaps",
      "secrets",
      "serviceaccounts",
      "customresourcedefinitions.apiextensions.k8s.io",
      "deployments.apps",
    ],
  });
  await server.start();
  admin = server.transport(server.loopback);
});
after(async () => {
  await server.stop(2000);
  await store.close();
});

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly text: string;
}

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await admin({
    method,
    path,
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined
      ? {}
      : { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) }),
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  return { status: response.status, headers: response.headers, body: parsed, text };
}

/** One request over a bare socket; answers the status line and everything after it. */
function raw(text: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(server.port, "127.0.0.1", () => socket.write(text));
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      socket.end();
    });
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
    socket.on("error", reject);
    socket.setTimeout(3000, () => socket.destroy());
  });
}

const cms = "/api/v1/namespaces/default/configmaps";

test("without authentication only this machine is answered, and no page of another site", async () => {
  const get = (headers: string): Promise<string> =>
    raw(`GET ${cms} HTTP/1.1\r\n${headers}connection: close\r\n\r\n`);
  assert.match(await get("host: localhost\r\n"), /^HTTP\/1\.1 200/);
  assert.match(await get("host: 127.0.0.1:8080\r\n"), /^HTTP\/1\.1 200/);
  assert.match(await get("host: evil.example\r\n"), /^HTTP\/1\.1 403/);
  assert.match(await get("host: localhost.evil.example\r\n"), /^HTTP\/1\.1 403/);
  const post = (headers: string): Promise<string> =>
    raw(
      `POST ${cms} HTTP/1.1\r\nhost: localhost\r\n${headers}content-length: 2\r\nconnection: close\r\n\r\n{}`,
    );
  assert.match(
    await post("origin: https://evil.example\r\ncontent-type: application/json\r\n"),
    /^HTTP\/1\.1 403/,
  );
  assert.match(await post("origin: null\r\ncontent-type: application/json\r\n"), /^HTTP\/1\.1 403/);
  assert.match(await post("sec-fetch-site: same-origin\r\ncontent-type: text/plain\r\n"), /^HTTP\/1\.1 400/);
  assert.match(
    await post("origin: http://localhost:3000\r\ncontent-type: application/json\r\n"),
    /^HTTP\/1\.1 403/,
  );
  assert.match(
    await post("origin: http://localhost\r\ncontent-type: application/json\r\n"),
    /^HTTP\/1\.1 422/,
  );
});

test("a wrong credential is 401, and many are 429 before they are looked at", async () => {
  const own = await openStore("memory://", systemEdges());
  const closed = createServer({
    storage: own,
    auth: {
      authenticators: [staticTokens([{ token: "right", user: { name: "a", groups: ["system:masters"] } }])],
      authorizers: [],
    },
    listen: { port: 0 },
    kinds: ["namespaces", "configmaps"],
  });
  await closed.start();
  try {
    const status = async (token: string | undefined): Promise<number> => {
      const answer = await fetch(`${closed.url}/api/v1/namespaces`, {
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    assert.equal(await status("right"), 200);
    assert.equal(await status(undefined), 403);
    assert.equal(await status("wrong"), 401);
    const many = await Promise.all(Array.from({ length: 40 }, () => status("wrong")));
    assert.ok(many.includes(429));
  } finally {
    await closed.stop(1000);
    await own.close();
  }
});

test("noise on the wire never ends the server", async () => {
  const random = seededRandom(7);
  const inputs: Buffer[] = [
    Buffer.from([0x16, 3, 1, 0, 5]),
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame"),
    Buffer.from("GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: nope\r\n\r\n"),
    Buffer.from("GET /%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    Buffer.from(`GET /${"a".repeat(100_000)} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`),
    Buffer.from("GET http://x/y HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ...Array.from({ length: 30 }, () => Buffer.from(random.bytes(1 + random.integer(200)))),
  ];
  await Promise.all(
    inputs.map(
      (input) =>
        new Promise<void>((resolve) => {
          const socket = net.connect(server.port, "127.0.0.1", () => {
            socket.write(input);
            setImmediate(() => (random.integer(2) === 0 ? socket.resetAndDestroy() : socket.end()));
          });
          socket.on("error", () => {});
          socket.on("close", () => resolve());
          socket.resume();
        }),
    ),
  );
  assert.equal((await ask("GET", "/livez")).text, "ok");
});

test("any request is answered with an object, a Status or a short text", async () => {
  const random = seededRandom(11);
  const pick = <T>(items: readonly T[]): T => items[random.integer(items.length)] as T;
  const segments = [
    "api",
    "v1",
    "apis",
    "apps",
    "namespaces",
    "default",
    "configmaps",
    "deployments",
    "a",
    "status",
    "scale",
    "watch",
    "..",
    "%2e%2e",
    "%00",
    "é",
    "",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    "openapi",
    "v3",
  ];
  const queries = [
    "",
    "?limit=1",
    "?limit=-1",
    "?continue=%00",
    "?labelSelector=a%20in%20(b",
    "?fieldSelector=%5C",
    "?resourceVersion=9".padEnd(60, "9"),
    "?dryRun=All",
    "?fieldValidation=Strict",
    "?watch=1&timeoutSeconds=0",
    "?pretty=1",
    "?fieldManager=%00&force=true",
    "?resourceVersionMatch=Exact&resourceVersion=1",
  ];
  const types = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    ";;;",
  ];
  const bodies: (string | Uint8Array)[] = [
    "",
    "{}",
    "[]",
    "null",
    "{",
    '{"metadata":null}',
    '{"metadata":{"name":5}}',
    '{"metadata":{"name":"a","labels":[]},"data":{"a":1}}',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}',
    '[{"op":"move","from":"","path":"/a/b"}]',
    '[{"op":"add","path":"/metadata/labels/-","value":1}]',
    '{"spec":{"$patch":"replace"}}',
    "a: &a [*a]\n",
    "[".repeat(5000),
    '{"a":1e999}',
    new Uint8Array([0x6b, 0x38, 0x73, 0, 0xff, 0xff, 0xff]),
    random.bytes(50),
  ];
  for (let i = 0; i < 1500; i++) {
    const path = `/${Array.from({ length: 1 + random.integer(7) }, () => pick(segments)).join("/")}${pick(queries)}`;
    const method = pick(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]);
    const answer = await ask(method, path, method === "GET" || method === "HEAD" ? undefined : pick(bodies), {
      "content-type": pick(types),
      accept: pick([
        "",
        "*/*",
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf, */*",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
      ]),
    });
    assert.ok(answer.status >= 200 && answer.status < 600);
    assert.notEqual(answer.status, 500, `${method} ${path}: ${answer.text.slice(0, 300)}`);
    if (answer.status >= 400 && method !== "HEAD" && answer.body !== undefined)
      assert.equal(at(answer.body, "kind"), "Status", `${method} ${path}`);
  }
});

test("bytes of strangers in the store are left out, named and deletable", async () => {
  await ask("POST", cms, { metadata: { name: "good" } });
  await store.txn({
    success: [{ type: "put", key: "/registry/configmaps/default/bad", value: "\u0000garbage" }],
  });
  const list = await ask("GET", cms);
  assert.equal(list.status, 200);
  assert.match(list.text, /"name":"good"/);
  assert.match(list.headers["warning"] ?? "", /configmaps\/default\/bad/);
  const get = await ask("GET", `${cms}/bad`);
  assert.equal(get.status, 500);
  assert.equal(at(get.body, "reason"), "StorageReadError");
  const option = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
  assert.equal((await ask("DELETE", `${cms}/bad?${option}`)).status, 200);
  assert.equal((await ask("GET", `${cms}/bad`)).status, 404);
});

test("a compressed body is 415 and says so, whatever the verb", async () => {
  const body = gzipSync('{"metadata":{"name":"zipped"}}');
  const send = (method: string, path: string, headers: Record<string, string>): Promise<Reply> =>
    ask(method, path, body, headers);
  for (const coding of ["gzip", "GZIP", "br", "deflate, gzip"]) {
    const answer = await send("POST", cms, { "content-encoding": coding });
    assert.equal(answer.status, 415, coding);
    assert.equal(at(answer.body, "reason"), "UnsupportedMediaType");
    assert.match(String(at(answer.body, "message")), /send it without a content-encoding/);
  }
  const patch = { "content-encoding": "gzip", "content-type": "application/merge-patch+json" };
  assert.equal((await send("PATCH", `${cms}/good`, patch)).status, 415);
  assert.equal((await send("DELETE", `${cms}/good`, { "content-encoding": "gzip" })).status, 415);
  const plain = await ask("POST", cms, { metadata: { name: "plain" } }, { "content-encoding": "identity" });
  assert.equal(plain.status, 201);
});

test("a taken port is an error that names what to do", async () => {
  const own = await openStore("memory://", systemEdges());
  const second = createServer({
    storage: own,
    auth: { authenticators: [], authorizers: [] },
    listen: { port: server.port },
    kinds: ["namespaces"],
  });
  await assert.rejects(
    second.start(),
    /cannot listen on 127\.0\.0\.1:\d+: the port is in use; .*choose another/,
  );
  await second.stop(100);
  await own.close();
});

test("whoever may do everything is told so", async () => {
  const rules = async (of: ApiServer, groups: readonly string[]): Promise<JsonObject> => {
    const response = await of.transport({ name: "u", groups: [...groups] })({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
      headers: { "content-type": "application/json" },
      body: '{"spec":{"namespace":"default"}}',
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    const status = at(JSON.parse(Buffer.concat(chunks).toString("utf8")), "status");
    assert.ok(isObject(status));
    return status;
  };
  const everything = {
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
    incomplete: false,
  };
  const own = await openStore("memory://", systemEdges());
  const make = (authenticators: Authenticator[]): ApiServer =>
    createServer({ storage: own, auth: { authenticators, authorizers: [] } });
  const open = make([]);
  const closed = make([staticTokens([{ token: "t", user: { name: "a", groups: [] } }])]);
  await open.start();
  await closed.start();
  assert.deepEqual(await rules(open, []), everything);
  assert.deepEqual(await rules(closed, ["system:masters"]), everything);
  const some = await rules(closed, ["system:authenticated"]);
  assert.ok(!JSON.stringify(some["resourceRules"]).includes('"resources":["*"]'));
  assert.equal(some["incomplete"], false);
  await open.stop(1000);
  await closed.stop(1000);
  await own.close();
});

test("secrets stay out of audit events", async () => {
  const events: JsonObject[] = [];
  const own = await openStore("memory://", systemEdges());
  const audited = createServer({
    storage: own,
    auth: { authenticators: [], authorizers: [] },
    kinds: ["namespaces", "secrets"],
    audit: (event) => events.push(event),
  });
  await audited.start();
  const transport = audited.transport(audited.loopback);
  const response = await transport({
    method: "POST",
    path: "/api/v1/namespaces/default/secrets",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ metadata: { name: "s" }, stringData: { password: "hunter2" } }),
  });
  for await (const _ of response.body);
  assert.equal(response.status, 201);
  await audited.stop(1000);
  await own.close();
  const event = events.find((item) => at(item, "objectRef", "resource") === "secrets");
  assert.equal(at(event, "verb"), "create");
  assert.equal(at(event, "responseStatus", "code"), 201);
  assert.ok(!JSON.stringify(events).includes("hunter2"));
});

test("stopping ends watches without an error and leaves no server behind", async () => {
  const own = await openStore("memory://", systemEdges());
  const short = createServer({
    storage: own,
    auth: { authenticators: [], authorizers: [] },
    listen: { port: 0 },
    kinds: ["namespaces", "configmaps"],
  });
  await short.start();
  await assert.rejects(short.start(), /already started/);
  const answer = await fetch(`${short.url}/api/v1/configmaps?watch=1`);
  const text = answer.text();
  await short.stop(2000);
  assert.ok(!(await text).includes('"type":"ERROR"'));
  await assert.rejects(fetch(`${short.url}/livez`));
  await own.close();
});
