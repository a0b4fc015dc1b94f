import assert from "node:assert/strict";
import { test } from "node:test";
import { Hono } from "hono";
import { start } from "../kryton.fixture.ts";
import type { AppEnv } from "./pages.ts";

test("pages of an embedding program stand below the API, with its headers, ids and errors", async () => {
  const pages = new Hono<AppEnv>();
  pages.get("/", (c) => c.html(`<p>${c.env.requestId}</p>`));
  pages.get("/broken", () => {
    throw new Error("a secret of the page");
  });
  pages.get("/api/v1/machines", (c) => c.text("never"));
  await using api = await start({ pages: () => pages });
  const page = await api.call("GET", "/", undefined, { "x-request-id": "mine" });
  assert.equal(page.status, 200);
  assert.equal(page.text, "<p>mine</p>");
  assert.equal(page.headers.get("x-frame-options"), "DENY");
  assert.equal(page.headers.get("x-request-id"), "mine");
  const broken = await api.call("GET", "/broken");
  assert.deepEqual([broken.status, broken.json.error.code], [500, "INTERNAL"]);
  assert.doesNotMatch(broken.text, /secret/);
  const unknown = await api.call("GET", "/unknown");
  assert.deepEqual([unknown.status, unknown.json.error.code], [404, "NOT_FOUND"]);
  assert.deepEqual((await api.call("GET", "/api/v1/machines")).json.items, []);
  assert.equal((await api.call("GET", "/api/v1/nothing")).status, 404);
});
