import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "../kryton.fixture.ts";
import { maxSinks } from "./sink.ts";

test("there are never more webhooks than can be served, however many are added at once", async () => {
  await using api = await start();
  const add = (n: number): Promise<number> =>
    api.call("POST", "/api/v1/webhooks", { url: `https://hooks.example/${n}` }).then(({ status }) => status);
  const statuses = await Promise.all(Array.from({ length: maxSinks + 8 }, (_, n) => add(n)));
  assert.equal(statuses.filter((status) => status === 201).length, maxSinks, statuses.join(" "));
  assert.equal(statuses.filter((status) => status === 400).length, 8, statuses.join(" "));
  const { items } = (await api.call("GET", "/api/v1/webhooks")).json;
  assert.equal(items.length, maxSinks);
  const freed = await api.call("DELETE", `/api/v1/webhooks/${items[0].id}`);
  assert.equal(freed.status, 204);
  assert.equal(await add(100), 201, "room again");
});
