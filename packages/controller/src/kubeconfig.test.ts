import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import { fetchTransport } from "./fetch-transport.ts";
import { readText } from "./body.ts";
import { readKubeconfig } from "./kubeconfig.ts";

const b64 = (text: string): string => Buffer.from(text).toString("base64");
const pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

function kubeconfig(cluster: object, user: object): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
    clusters: [
      {
        name: "k",
        cluster: { server: "https://10.0.0.1:6443", "certificate-authority-data": b64(pem), ...cluster },
      },
    ],
    users: [
      { name: "u", user: { "client-certificate-data": b64(pem), "client-key-data": b64(pem), ...user } },
    ],
  });
}

test("takes server, CA and client certificate", () => {
  assert.deepEqual(readKubeconfig(kubeconfig({}, {})), {
    server: "https://10.0.0.1:6443",
    insecure: false,
    ca: pem,
    cert: pem,
    key: pem,
  });
});

const refused: [string, object, object][] = [
  ["exec", {}, { exec: { command: "sh" } }],
  ["auth-provider", {}, { "auth-provider": { name: "x" } }],
  ["client-certificate", {}, { "client-certificate": "/etc/x" }],
  ["client-key", {}, { "client-key": "/etc/x" }],
  ["tokenFile", {}, { tokenFile: "/etc/x" }],
  ["username", {}, { username: "x" }],
  ["as", {}, { as: "system:admin" }],
  ["certificate-authority", { "certificate-authority": "/etc/x" }, {}],
  ["proxy-url", { "proxy-url": "http://evil" }, {}],
  ["tls-server-name", { "tls-server-name": "evil" }, {}],
  ["insecure-skip-tls-verify", { "insecure-skip-tls-verify": true }, {}],
  ["a server without TLS", { server: "http://10.0.0.1" }, {}],
];
for (const [name, cluster, user] of refused) {
  test(`rule 11: refuses ${name}`, () => {
    assert.throws(
      () => readKubeconfig(kubeconfig(cluster, user)),
      (error) => isCoded(error, "permission_denied") && error.message.includes(name),
    );
  });
}

test("insecure only when explicitly allowed", () => {
  const config = readKubeconfig(kubeconfig({ "insecure-skip-tls-verify": true }, {}), {
    allowInsecure: true,
  });
  assert.equal(config.insecure, true);
});

test("says what is wrong with an unreadable one, without its content", () => {
  const bad: [string, RegExp][] = [
    ["a: [", /not YAML/],
    ["a: &x [1]\nb: *x", /aliases/],
    ["{}", /no context named/],
    [kubeconfig({ server: "nonsense" }, {}), /server is not a URL/],
    [kubeconfig({}, { "client-key-data": "secret" }), /client-key-data is not base64 of PEM/],
    ["x".repeat(2 * 1024 * 1024), /larger than/],
  ];
  for (const [text, message] of bad) {
    assert.throws(
      () => readKubeconfig(text),
      (error) =>
        isCoded(error, "invalid_argument") &&
        message.test(error.message) &&
        !error.message.includes("secret"),
    );
  }
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

test("the network transport sends, streams, and names failures", async (t) => {
  const server = createServer((request, response) => {
    if (request.url === "/base/slow") return;
    if (request.url === "/base/stream") {
      response.writeHead(200).write("one\n");
      return;
    }
    response.writeHead(request.url === "/base/redirect" ? 302 : 200, {
      location: "http://127.0.0.1:1/",
      "X-Seen": request.headers.authorization,
    });
    response.end(`${request.method} ${request.url}`);
  });
  const url = await listen(server);
  const transport = fetchTransport({
    baseUrl: `${url}/base/`,
    edges: systemEdges(),
    token: () => "t0",
    headTimeoutMs: 1500,
  });
  t.after(async () => {
    await transport.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const plain = await transport({ method: "GET", path: "/x?y=1" });
  assert.equal(await readText(plain.body, 100), "GET /base/x?y=1");
  assert.equal(plain.headers["x-seen"], "Bearer t0");
  const redirect = await transport({ method: "GET", path: "/redirect" });
  assert.equal(redirect.status, 302, "redirects are not followed");
  await readText(redirect.body, 100);
  const abort = new AbortController();
  const stream = await transport({ method: "GET", path: "/stream", signal: abort.signal });
  await assert.rejects(
    async () => {
      for await (const chunk of stream.body) {
        assert.equal(Buffer.from(chunk).toString(), "one\n");
        abort.abort();
      }
    },
    (error) => isCoded(error, "cancelled"),
  );
  await assert.rejects(transport({ method: "BREW", path: "/" }), (error) =>
    isCoded(error, "invalid_argument"),
  );
});

test("nobody there is unavailable", async (t) => {
  const server = createServer();
  const url = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  const transport = fetchTransport({ baseUrl: url, edges: systemEdges() });
  t.after(() => transport.close());
  await assert.rejects(transport({ method: "GET", path: "/" }), (error) => isCoded(error, "unavailable"));
  assert.throws(
    () => fetchTransport({ baseUrl: "https://u:p@host", edges: systemEdges() }),
    /without user info/,
  );
});
