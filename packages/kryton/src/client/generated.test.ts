import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { isObject, OutboundClient, systemClock, systemNetwork } from "@kontinuum/std";
import { parse } from "yaml";
import { bearer, start } from "../kryton.fixture.ts";
import { openapiFile } from "../http/routes/discovery.ts";
import { createKrytonClient, KrytonClientError } from "./index.ts";
import { generated } from "./generate.ts";

const outbound = new OutboundClient(systemNetwork, systemClock, { allow: ["127.0.0.0/8"] });

test("the committed document, client and ledger are what the routes generate", async () => {
  for (const { url, text } of await generated()) {
    assert.equal(await readFile(url, "utf8"), text, `${url.pathname} is stale: run src/client/generate.ts`);
  }
});

test("the document has no dangling references and describes every answer", async () => {
  const text = await readFile(openapiFile, "utf8");
  const document: unknown = parse(text);
  assert.ok(isObject(document));
  assert.equal(document["openapi"], "3.1.0");
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(walk);
    if (!isObject(value)) return;
    const reference = value["$ref"];
    if (typeof reference === "string") {
      let target: unknown = document;
      for (const part of reference.slice(2).split("/")) target = isObject(target) ? target[part] : undefined;
      assert.ok(target, reference);
    }
    Object.values(value).forEach(walk);
  };
  walk(document);
});

test("the typed client drives the API from creation to deletion", async () => {
  await using api = await start();
  const client = createKrytonClient(api.url, outbound);
  const created = await client.createMachine(
    { name: "typed", image: "debian-13", compute: { cpu: 1, memoryMiB: 1024 }, disk: { sizeGiB: 20 } },
    { idempotencyKey: "once" },
  );
  assert.equal(created.state, "running");
  assert.equal((await client.listMachines({ project: "default", limit: 5 })).items.length, 1);
  assert.equal((await client.stopMachine(created.id)).state, "stopped");
  assert.equal((await client.diagnose()).healthy, true);
  await client.deleteMachine(created.id);
  await assert.rejects(client.getMachine(created.id), (error) => {
    assert.ok(error instanceof KrytonClientError);
    assert.equal(error.status, 404);
    assert.equal(error.code, "NOT_FOUND");
    assert.ok(error.requestId);
    return true;
  });
});

test("the typed client sends its token and tells refusals from lost connections", async () => {
  await using api = await start({ keys: { secret: { role: "viewer", projects: ["*"] } } });
  const client = createKrytonClient(api.url, outbound, () => "secret");
  assert.equal((await client.whoAmI()).role, "viewer");
  await assert.rejects(createKrytonClient(api.url, outbound).whoAmI(), { status: 401 });
  await assert.rejects(createKrytonClient("http://127.0.0.1:1", outbound).whoAmI(), {
    status: 0,
    retryable: true,
  });
  assert.equal((await api.call("GET", "/api/v1/me", undefined, bearer("secret"))).status, 200);
});
