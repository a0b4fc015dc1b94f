import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { systemEdges, systemNetwork } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage/client";
import { WebSocket, WebSocketServer } from "ws";
import { bearer, keysFile, start, until, type Fixture } from "../kryton.fixture.ts";
import type { ConsoleTarget, Provider } from "../provider-contract/contract.ts";
import { DemoProvider } from "../providers/demo/demo-provider.ts";
import { ViewOnlyFilter } from "./rfb-filter.ts";

const keys = {
  op: { role: "operator", projects: ["*"] },
  view: { role: "viewer", projects: ["*"] },
} as const satisfies Record<string, { role: "operator" | "viewer"; projects: readonly string[] }>;

/** A server with machines whose console is `target`. */
async function withConsole(
  target: ConsoleTarget,
  work: (api: Fixture, id: string) => Promise<void>,
): Promise<void> {
  const edges = systemEdges();
  const store = await openStore("memory://", edges);
  const demo = new DemoProvider({ store, edges });
  const provider: Provider = Object.assign(demo, { console: { target: () => Promise.resolve(target) } });
  const api = await start({
    store,
    edges,
    provider,
    env: { KRYTON_PROJECTS: "default,ci" },
    keys: { op: { ...keys.op, projects: ["*"] }, view: { ...keys.view, projects: ["*"] } },
  });
  try {
    const { id } = await api.machine("m", { project: "ci" }, bearer("op"));
    await work(api, id);
  } finally {
    await api.stop();
    await store.close();
  }
}

test("a web console is proxied in a sandbox, without our credentials and without its cookies", async () => {
  const seen: { url: string; headers: http.IncomingHttpHeaders }[] = [];
  const upstream = http.createServer((incoming, outgoing) => {
    seen.push({ url: incoming.url ?? "", headers: incoming.headers });
    outgoing.writeHead(200, {
      "set-cookie": "evil=1",
      "content-type": "text/html",
      "x-frame-options": "DENY",
    });
    outgoing.end("<script src=app.js></script>");
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  await withConsole({ kind: "web", upstreamUrl }, async (api, id) => {
    const path = `/api/v1/machines/${id}/console/?project=ci&format=html&x=1`;
    const entrance = await api.call("GET", path, undefined, bearer("view"));
    assert.equal(entrance.status, 302);
    const location = entrance.headers.get("location") ?? "";
    assert.match(location, new RegExp(`^/api/v1/machines/${id}/console/~[^/]+/\\?x=1$`));
    const page = await api.call("GET", location, undefined, { cookie: "a=b" });
    assert.equal(page.status, 200);
    assert.match(page.headers.get("content-security-policy") ?? "", /^sandbox allow-scripts allow-forms/);
    assert.doesNotMatch(page.headers.get("content-security-policy") ?? "", /allow-same-origin/);
    assert.equal(page.headers.get("set-cookie"), null);
    const script = new URL("app.js", `http://x${location}`).pathname;
    assert.equal((await api.call("GET", script)).status, 200, "the project comes from the ticket");
    assert.deepEqual(
      seen.map(({ url }) => url),
      ["/?x=1", "/app.js"],
    );
    assert.equal(seen[0]?.headers.authorization, undefined);
    assert.equal(seen[0]?.headers.cookie, undefined);
    assert.equal(seen[0]?.headers.host, upstreamUrl.slice(7));
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
    const gone = await api.call("GET", script);
    assert.equal(gone.status, 502);
    assert.equal(gone.json.error.code, "CONSOLE_UNAVAILABLE");
  });
});

test("what a web console's page changes is passed on for operators; its WebSocket goes both ways, for viewers only outwards", async () => {
  const seen: { method: string; url: string; body: string; authorization: string | undefined }[] = [];
  const received: string[] = [];
  const upstream = http.createServer((incoming, outgoing) => {
    let body = "";
    incoming.on("data", (chunk: Buffer) => (body += chunk.toString()));
    incoming.on("end", () => {
      const { method = "", url = "", headers } = incoming;
      seen.push({ method, url, body, authorization: headers.authorization });
      outgoing.writeHead(201).end("made");
    });
  });
  const sockets = new WebSocketServer({
    server: upstream,
    handleProtocols: (offered) => (offered.has("binary") ? "binary" : false),
  });
  sockets.on("connection", (socket, request) => {
    socket.send(Buffer.from("RFB 003.008\n"));
    socket.send(
      `hello ${request.url} ${request.headers.authorization ?? "nobody"} ${request.headers.cookie ?? ""}`,
    );
    socket.on("message", (data) => received.push(Buffer.isBuffer(data) ? data.toString("latin1") : ""));
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  await withConsole({ kind: "web", upstreamUrl }, async (api, id) => {
    const path = `/api/v1/machines/${id}/console/api/clip?project=ci&x=1`;
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const made = await api.call(method, path, "text", bearer("op"));
      assert.deepEqual([made.status, made.text], [201, "made"], method);
      assert.equal((await api.call(method, path, "text", bearer("view"))).status, 403, method);
      assert.equal((await api.call(method, path, "text")).status, 401, method);
    }
    assert.deepEqual(seen[0], {
      method: "POST",
      url: "/api/clip?x=1",
      body: "text",
      authorization: undefined,
    });
    assert.equal(seen.length, 4);

    const open = async (
      who: string,
      headers: Record<string, string> = {},
    ): Promise<{ socket: WebSocket; texts: string[] }> => {
      const { ticket } = (
        await api.call("POST", `/api/v1/machines/${id}/console-ticket?project=ci`, undefined, bearer(who))
      ).json;
      const url = `${api.url.replace("http", "ws")}/api/v1/machines/${id}/console/~${ticket}/websockify?a=b`;
      const socket = new WebSocket(url, ["binary"], {
        headers: { origin: "null", cookie: "mine=1", ...headers },
      });
      const texts: string[] = [];
      socket.on("message", (data) => texts.push(Buffer.isBuffer(data) ? data.toString() : ""));
      await new Promise((resolve, reject) => {
        socket.once("open", resolve);
        socket.once("error", reject);
      });
      return { socket, texts };
    };
    const operator = await open("op");
    assert.equal(operator.socket.protocol, "binary");
    await until(() => (operator.texts.length === 2 ? true : undefined));
    assert.deepEqual(
      operator.texts,
      ["RFB 003.008\n", "hello /websockify?a=b nobody "],
      "no credentials of ours",
    );
    operator.socket.send("text of an operator");
    await until(() => (received.includes("text of an operator") ? true : undefined));
    const viewer = await open("view");
    await until(() => (viewer.texts.length === 2 ? true : undefined));
    viewer.socket.send("text of a viewer");
    viewer.socket.send(Buffer.concat([hello, key, update]));
    const passed = Buffer.concat([hello, update]).toString("latin1");
    await until(() => (received.join("").endsWith(passed) ? true : undefined));
    assert.ok(!received.includes("text of a viewer"));
    operator.socket.close();
    viewer.socket.close();
    await assert.rejects(open("op", { origin: "https://evil.example" }));
    await new Promise((resolve) => sockets.close(resolve));
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
    await assert.rejects(open("op"), /502/);
  });
});

/** A VNC server that greets and records what it is sent. */
async function vncServer(): Promise<{ target: ConsoleTarget; received(): Buffer; close(): Promise<void> }> {
  const received: Buffer[] = [];
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.write("RFB 003.008\n");
    socket.on("data", (chunk: Buffer) => received.push(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    target: {
      kind: "vnc",
      namespace: "ns",
      name: "vm",
      connect: (signal) => systemNetwork.dial({ host: "127.0.0.1", port, signal }),
    },
    received: () => Buffer.concat(received),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const hello = Buffer.concat([Buffer.from("RFB 003.008\n"), Buffer.from([1]), Buffer.from([1])]);
const update = Buffer.from([3, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
const key = Buffer.from([4, 1, 0, 0, 0, 0, 0, 0x61]);
const pointer = Buffer.from([5, 1, 0, 1, 0, 1]);
const cut = Buffer.from([6, 0, 0, 0, 0, 0, 0, 3, 0x61, 0x62, 0x63]);

test("a VNC console relays both ways; a viewer's ticket only watches; a revoked key cuts the socket", async () => {
  const vnc = await vncServer();
  await withConsole(vnc.target, async (api, id) => {
    const json = await api.call(
      "GET",
      `/api/v1/machines/${id}/console?project=ci`,
      undefined,
      bearer("view"),
    );
    assert.deepEqual(json.json, {
      kind: "vnc",
      websocketUrl: `/api/v1/machines/${id}/vnc?project=ci`,
      namespace: "ns",
      name: "vm",
    });
    const html = await api.call("GET", `/api/v1/machines/${id}/console?project=ci`, undefined, {
      ...bearer("view"),
      accept: "text/html",
    });
    assert.match(html.text, /id="console-config">\{"machine":/);
    const url = api.url.replace("http", "ws");
    const open = async (token: string): Promise<WebSocket> => {
      const path = `/api/v1/machines/${id}/console-ticket?project=ci`;
      const { ticket } = (await api.call("POST", path, undefined, bearer(token))).json;
      const socket = new WebSocket(`${url}/api/v1/machines/${id}/vnc?console_ticket=${ticket}`, ["binary"]);
      const greeting = new Promise((resolve) => socket.once("message", resolve));
      assert.equal(String(await greeting), "RFB 003.008\n");
      return socket;
    };
    const operator = await open("op");
    operator.send(Buffer.concat([hello, key, pointer, cut, update]));
    await until(() => (vnc.received().includes(cut) ? true : undefined));
    operator.close();
    const before = vnc.received().length;
    const viewer = await open("view");
    for (const byte of Buffer.concat([hello, key, pointer, cut, update])) viewer.send(Buffer.from([byte]));
    await until(() => (vnc.received().length >= before + hello.length + update.length ? true : undefined));
    assert.deepEqual(vnc.received().subarray(before), Buffer.concat([hello, update]));
    const closed = new Promise((resolve) => viewer.once("close", resolve));
    await writeFile(
      join(api.directory, "keys.json"),
      keysFile({ op: { role: "operator", projects: ["*"] } }),
    );
    await closed;
  });
  await vnc.close();
});

test("a VNC upgrade without credentials, from another origin or to nothing is refused before it happens", async () => {
  const vnc = await vncServer();
  await withConsole(vnc.target, async (api, id) => {
    const attempt = (path: string, headers: Record<string, string>): Promise<number> =>
      new Promise((resolve) => {
        const socket = new WebSocket(`${api.url.replace("http", "ws")}${path}`, { headers });
        socket.once("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
        socket.once("open", () => (socket.close(), resolve(101)));
        socket.once("error", () => {});
      });
    const path = `/api/v1/machines/${id}/vnc?project=ci`;
    assert.equal(await attempt(path, {}), 401);
    assert.equal(await attempt(path, { ...bearer("op"), origin: "https://evil.example" }), 403);
    assert.equal(await attempt(path.replace("ci", "nope"), bearer("op")), 400);
    assert.equal(await attempt(path.replace(id, "00000000-0000-4000-8000-000000000000"), bearer("op")), 404);
    assert.equal(await attempt("/elsewhere", bearer("op")), 404);
    assert.equal(await attempt(path, { ...bearer("op"), origin: api.url }), 101);
  });
  await vnc.close();
});

test("the view-only filter passes what looks and drops what acts, however the bytes are cut", () => {
  const encodings = Buffer.from([2, 0, 0, 1, 0, 0, 0, 7]);
  const qemuKey = Buffer.from([255, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
  const all = Buffer.concat([hello, encodings, key, qemuKey, update, pointer, cut, update]);
  for (const step of [1, 3, 7, all.length]) {
    const filter = new ViewOnlyFilter();
    const passed: Buffer[] = [];
    for (let at = 0; at < all.length; at += step) passed.push(filter.push(all.subarray(at, at + step)));
    assert.deepEqual(Buffer.concat(passed), Buffer.concat([hello, encodings, update, update]));
  }
  const strange = new ViewOnlyFilter();
  strange.push(hello);
  assert.throws(() => strange.push(Buffer.from([77])), RangeError);
  assert.throws(
    () => new ViewOnlyFilter().push(Buffer.concat([hello.subarray(0, 12), Buffer.from([19])])),
    RangeError,
  );
});
