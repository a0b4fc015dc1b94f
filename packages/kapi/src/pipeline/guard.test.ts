import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse } from "../contract.ts";
import type { RequestHeaders } from "../wire/request.ts";
import { RequestContext } from "./context.ts";
import { hostGuard } from "./guard.ts";

const response: HttpResponse = {
  headersSent: false,
  writableLength: 0,
  statusCode: 200,
  setHeader: () => {},
  writeHead: () => {},
  write: () => true,
  end: () => {},
  flushHeaders: () => {},
  on: () => {},
  destroy: () => {},
};

function verdict(
  guard: (context: RequestContext) => void,
  method: string,
  headers: RequestHeaders,
  address = "127.0.0.1",
  secure = false,
): number {
  const body = (async function* () {})();
  try {
    guard(
      new RequestContext({
        request: { method, url: "/api", headers, address, secure, body },
        response,
      }),
    );
    return 200;
  } catch (error) {
    return (error as { code: number }).code;
  }
}

test("only this machine, under its own names", () => {
  const guard = hostGuard([]);
  for (const host of ["localhost", "localhost:8080", "127.0.0.1", "127.8.8.8:1", "[::1]:8080", "LOCALHOST"])
    assert.equal(verdict(guard, "GET", { host }), 200, host);
  for (const host of [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "",
    "[::2]",
  ])
    assert.equal(verdict(guard, "GET", { host }), 403, host);
  assert.equal(verdict(guard, "GET", { host: "localhost" }, "10.1.1.1"), 403);
  assert.equal(verdict(guard, "GET", { host: "localhost" }, "::ffff:127.0.0.1"), 200);
  assert.equal(verdict(guard, "GET", {}), 403);
  assert.equal(verdict(hostGuard(["hub.example"]), "GET", { host: "hub.example:8080" }, "10.1.1.1"), 200);
});

test("nothing a page of another site can send", () => {
  const guard = hostGuard([]);
  const host = "localhost";
  const json = "application/json";
  assert.equal(verdict(guard, "POST", { host, "content-type": json, origin: "https://evil.example" }), 403);
  assert.equal(verdict(guard, "DELETE", { host, origin: "https://evil.example" }), 403);
  assert.equal(verdict(guard, "GET", { host, upgrade: "websocket", origin: "https://evil.example" }), 403);
  assert.equal(
    verdict(guard, "POST", { host, "content-type": "text/plain", "sec-fetch-site": "same-origin" }),
    400,
  );
  assert.equal(verdict(guard, "POST", { host, "content-type": "text/plain" }), 200);
});

test("an origin is this very server only with its scheme, host and port", () => {
  const guard = hostGuard(["hub.example"]);
  const post = (host: string, origin: string, secure = false): number =>
    verdict(guard, "POST", { host, origin, "content-type": "application/json" }, "127.0.0.1", secure);
  assert.equal(post("localhost:8080", "http://localhost:8080"), 200);
  assert.equal(post("localhost", "http://localhost:80"), 200);
  assert.equal(post("localhost:443", "https://localhost", true), 200);
  assert.equal(post("[::1]:8080", "http://[::1]:8080"), 200);
  assert.equal(post("hub.example", "https://hub.example", true), 200);
  for (const [host, origin] of [
    ["localhost:8080", "http://localhost:3000"],
    ["localhost:8080", "http://localhost"],
    ["localhost:8080", "https://localhost:8080"],
    ["localhost:8080", "http://127.0.0.1:8080"],
    ["hub.example", "http://localhost"],
    ["localhost", "null"],
    ["localhost", ""],
    ["localhost", "file://"],
    ["localhost:x", "null"],
  ] as const)
    assert.equal(post(host, origin), 403, `${origin} at ${host}`);
});

test("what a browser calls cross-site or same-site changes nothing here", () => {
  const guard = hostGuard([]);
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    const from = (site: string): number =>
      verdict(guard, method, {
        host: "localhost:8080",
        "content-type": "application/json",
        "sec-fetch-site": site,
      });
    assert.equal(from("cross-site"), 403, method);
    assert.equal(from("same-site"), 403, method);
    assert.equal(from("same-origin"), 200, method);
    assert.equal(from("none"), 200, method);
  }
  assert.equal(verdict(guard, "GET", { host: "localhost", "sec-fetch-site": "cross-site" }), 200);
});
