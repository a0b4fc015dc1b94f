/**
 * Streams into aggregated APIs: a WebSocket and a SPDY-style upgrade pass through the server, with the user named to
 * the backend and the client's token kept from it; a refusal comes back as it is.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import https from "node:https";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { after, before, describe, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { waitFor } from "../services/service.ts";
import { adminToken, Cluster, selfSigned, userToken } from "./cluster.ts";

const root = "/apis/stream.io/v1";

/** An aggregated API that echoes: WebSocket messages at `/ws`, raw bytes at `/raw`; it refuses `/no`. */
async function startBackend(seen: IncomingMessage[]) {
  const server = https.createServer(await selfSigned(), (request, response) => {
    response.statusCode = request.url === root ? 200 : 404;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ kind: "APIResourceList", groupVersion: "stream.io/v1", resources: [] }));
  });
  const webSockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request: IncomingMessage, socket, head) => {
    seen.push(request);
    if (request.url?.startsWith(`${root}/ws`)) {
      webSockets.handleUpgrade(request, socket, head, (opened) =>
        opened.on("message", (data, isBinary) => opened.send(data, { binary: isBinary })),
      );
    } else if (request.url?.startsWith(`${root}/raw`)) {
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello;",
      );
      socket.pipe(socket);
    } else {
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nnope");
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    stop: () =>
      new Promise<void>((resolve) => {
        for (const opened of webSockets.clients) opened.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

describe("upgrades through aggregated APIs", () => {
  const seen: IncomingMessage[] = [];
  let backend: Awaited<ReturnType<typeof startBackend>>;
  let c: Cluster;
  before(async () => {
    backend = await startBackend(seen);
    c = await Cluster.start({
      outboundAllowed: ["127.0.0.0/8"],
      resolveService: () => Promise.resolve({ host: "127.0.0.1", port: backend.port }),
    });
    const body = {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v1.stream.io" },
      spec: {
        group: "stream.io",
        version: "v1",
        groupPriorityMinimum: 1000,
        versionPriority: 15,
        service: { namespace: "default", name: "stream" },
        insecureSkipTLSVerify: true,
      },
    };
    const made = await c.ask("POST", "/apis/apiregistration.k8s.io/v1/apiservices", { body });
    assert.equal(made.status, 201, made.text);
    await waitFor("the backend", async () => (await c.ask("GET", root)).status === 200);
  });
  after(async () => {
    await c.stop();
    await backend.stop();
  });

  /** Asks for another protocol. */
  const upgrade = (path: string, token: string): Promise<Upgraded> =>
    new Promise((resolve, reject) => {
      const request = https.request(`${c.server.url}${path}`, {
        method: "POST",
        rejectUnauthorized: false,
        agent: false,
        headers: { authorization: `Bearer ${token}`, connection: "Upgrade", upgrade: "SPDY/3.1" },
      });
      request.on("error", reject);
      request.on("upgrade", (answer, socket, head) => resolve({ answer, socket, head }));
      request.on("response", (answer) => resolve({ answer, socket: undefined, head: Buffer.alloc(0) }));
      request.end();
    });

  test("a WebSocket, the token as a sub-protocol", async () => {
    const hidden = `base64url.bearer.authorization.k8s.io.${Buffer.from(adminToken).toString("base64url")}`;
    const socket = new WebSocket(
      `${c.server.url.replace("https", "wss")}${root}/ws?a=b`,
      ["v5.channel", hidden],
      {
        rejectUnauthorized: false,
      },
    );
    await once(socket, "open");
    assert.equal(socket.protocol, "v5.channel");
    const long = "x".repeat(300_000);
    for (const text of ["one", long]) {
      const answered = once(socket, "message");
      socket.send(text);
      assert.equal(String((await answered)[0]), text);
    }
    socket.close(1000);
    assert.equal((await once(socket, "close"))[0], 1000);
    const request = seen.at(-1);
    assert.equal(request?.url, `${root}/ws?a=b`);
    assert.equal(request.headers["x-remote-user"], "admin");
    assert.equal(request.headers["sec-websocket-protocol"], "v5.channel");
    assert.equal(request.headers.authorization, undefined);
  });

  test("any other protocol: bytes both ways, and the end is passed on", async () => {
    const { answer, socket, head } = await upgrade(`${root}/raw`, adminToken);
    assert.equal(answer.statusCode, 101);
    assert.equal(answer.headers.upgrade, "SPDY/3.1");
    assert.ok(socket);
    socket.unshift(head);
    socket.setEncoding("utf8");
    socket.write("world");
    let text = "";
    for await (const chunk of socket) {
      text += String(chunk);
      if (text.length >= "hello;world".length) socket.end();
    }
    assert.equal(text, "hello;world");
    assert.equal(seen.at(-1)?.method, "POST");
  });

  test("a backend's refusal comes back; whoever may not ask never gets there", async () => {
    const refused = await upgrade(`${root}/no`, adminToken);
    assert.equal(refused.answer.statusCode, 403);
    let text = "";
    for await (const chunk of refused.answer) text += String(chunk);
    assert.equal(text, "nope");
    const count = seen.length;
    const forbidden = await upgrade(`${root}/raw`, userToken);
    assert.equal(forbidden.answer.statusCode, 403);
    forbidden.answer.resume();
    const unknown = await upgrade(`${root}/raw`, "wrong");
    assert.equal(unknown.answer.statusCode, 401);
    unknown.answer.resume();
    assert.equal(seen.length, count);
  });

  test("the server stops although a stream is open", async () => {
    const { socket } = await upgrade(`${root}/raw`, adminToken);
    assert.ok(socket);
    socket.on("error", () => {});
    socket.resume();
    const closed = once(socket, "close");
    await c.server.stop(2000);
    await closed;
  });
});

interface Upgraded {
  readonly answer: IncomingMessage;
  /** Absent when the answer was an ordinary one. */
  readonly socket: Duplex | undefined;
  readonly head: Buffer;
}
