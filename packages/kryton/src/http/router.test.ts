import assert from "node:assert/strict";
import { test } from "node:test";
import type { Method, Route } from "./route.ts";
import { Router } from "./router.ts";

function served(...named: string[]): Router {
  return new Router(
    named.map((name): Route => {
      const [method = "", path = ""] = name.split(" ");
      const route = { method: method as Method, path, group: "", summary: "", access: { kind: "any" } };
      return Object.assign(Object.create(null), route);
    }),
  );
}

function found(router: Router, method: string, path: string): unknown {
  const result = router.find(method, path);
  if (result?.kind !== "route") return result && result.allow;
  return [`${result.route.method} ${result.route.path}`, { ...result.params }];
}

test("a literal goes before a parameter, whatever the order, and HEAD is GET", () => {
  const router = served("GET /m/{id}", "DELETE /m/{id}", "GET /m/summary", "GET /m/{id}/s/{sid}", "GET /");
  assert.deepEqual(found(router, "GET", "/m/summary"), ["GET /m/summary", {}]);
  assert.deepEqual(found(router, "DELETE", "/m/summary"), ["DELETE /m/{id}", { id: "summary" }]);
  assert.deepEqual(found(router, "HEAD", "/m/7"), ["GET /m/{id}", { id: "7" }]);
  assert.deepEqual(found(router, "GET", "/m/7/s/8"), ["GET /m/{id}/s/{sid}", { id: "7", sid: "8" }]);
  assert.deepEqual(found(router, "GET", "/"), ["GET /", {}]);
});

test("what nobody serves is nothing, and what is served otherwise says how", () => {
  const router = served("GET /m/{id}", "PUT /m/{id}", "GET /m");
  for (const path of ["/", "", "/x", "/m/", "/m/1/2", "//m", "/M", "m", "http://host/m"]) {
    assert.equal(found(router, "GET", path), undefined, path);
  }
  assert.deepEqual(found(router, "POST", "/m/1"), ["GET", "HEAD", "PUT"]);
  assert.deepEqual(found(router, "PROPFIND", "/m"), ["GET", "HEAD"]);
});

test("parameters are decoded once, and what is badly encoded stands for itself", () => {
  const router = served("GET /m/{id}", "GET /c/{id}/{rest}");
  assert.deepEqual(found(router, "GET", "/m/a%2Fb%20c"), ["GET /m/{id}", { id: "a/b c" }]);
  assert.deepEqual(found(router, "GET", "/m/%25zz"), ["GET /m/{id}", { id: "%zz" }]);
  assert.deepEqual(found(router, "GET", "/m/%zz"), ["GET /m/{id}", { id: "%zz" }]);
  assert.deepEqual(found(router, "GET", "/m/__proto__"), ["GET /m/{id}", { id: "__proto__" }]);
  assert.deepEqual(found(router, "GET", "/c/1/a/b/"), ["GET /c/{id}/{rest}", { id: "1" }]);
  assert.deepEqual(found(router, "GET", "/c/1/"), ["GET /c/{id}/{rest}", { id: "1" }]);
  assert.equal(found(router, "GET", "/c/1"), undefined);
});
