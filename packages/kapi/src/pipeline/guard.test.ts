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
): number {
  const body = (async function* () {})();
  try {
    guard(
      new RequestContext({
        request: { method, url: "/api", headers, address, secure: false, body },
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
    verdict(guard, "POST", { host, "content-type": "text/plain", "sec-fetch-site": "cross-site" }),
    400,
  );
  assert.equal(
    verdict(guard, "POST", {
      host,
      "content-type": json,
      origin: "http://localhost:3000",
      "sec-fetch-site": "same-site",
    }),
    200,
  );
  assert.equal(verdict(guard, "POST", { host, "content-type": "text/plain" }), 200);
});
