import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { CloudEvent, HTTP } from "cloudevents";
import { bearer, hurriedSleep, start, until } from "../kryton.fixture.ts";
import { Receiver } from "./receiver.fixture.ts";

const allowed = { KRYTON_OUTBOUND_ALLOW: "127.0.0.0/8" };

test("every event is delivered signed, in the CloudEvents form, outside the request", async () => {
  await using receiver = await Receiver.open();
  await using api = await start({
    env: { ...allowed, KRYTON_EVENT_WEBHOOK_URL: receiver.url, KRYTON_EVENT_WEBHOOK_SECRET: "s3cret" },
  });
  await api.machine("a");
  const delivery = await until(() => receiver.deliveries[0]);
  assert.equal(delivery.headers["content-type"], "application/cloudevents+json");
  const expected = createHmac("sha256", "s3cret").update(delivery.body).digest("hex");
  assert.equal(delivery.headers["x-kryton-signature"], `sha256=${expected}`);
  const [, seconds = "", timed = ""] =
    /^t=(\d+),sha256=([0-9a-f]+)$/.exec(String(delivery.headers["x-kryton-signature-timestamped"])) ?? [];
  assert.equal(timed, createHmac("sha256", "s3cret").update(`${seconds}.${delivery.body}`).digest("hex"));
  assert.equal(delivery.headers["x-kryton-timestamp"], seconds);
  const parsed = HTTP.toEvent({ headers: delivery.headers, body: delivery.body });
  assert.ok(parsed instanceof CloudEvent);
  assert.equal(parsed.validate(), true);
  assert.equal(delivery.headers["x-kryton-delivery"], parsed.id);
});

test("the configured secret signs for the origin it was configured for, and for no other", async () => {
  await using receiver = await Receiver.open();
  await using other = await Receiver.open();
  await using api = await start({
    env: { ...allowed, KRYTON_EVENT_WEBHOOK_URL: receiver.url, KRYTON_EVENT_WEBHOOK_SECRET: "s3cret" },
  });
  const to = async (eventWebhookUrl: string): Promise<boolean> => {
    assert.equal((await api.call("PUT", "/api/v1/settings", { eventWebhookUrl })).status, 200);
    return (await api.call("GET", "/api/v1/webhooks")).json.items[0].signed;
  };
  assert.equal(await to(`${receiver.url}/elsewhere`), true, "another path of the same receiver");
  await api.machine("a");
  const signed = await until(() => receiver.deliveries.find(({ body }) => body.includes('"a"')));
  assert.ok(signed.headers["x-kryton-signature"]);
  assert.equal(await to(other.url), false);
  await api.machine("b");
  const unsigned = await until(() => other.deliveries.find(({ body }) => body.includes('"b"')));
  assert.equal(unsigned.headers["x-kryton-signature"], undefined);
  assert.equal(unsigned.headers["x-kryton-signature-timestamped"], undefined);
  assert.equal(await to(receiver.url), true);
});

test("a failing sink is tried again, in order per machine, and nothing is lost", async () => {
  await using receiver = await Receiver.open();
  let failures = 3;
  receiver.answer = () => (failures-- > 0 ? 500 : 204);
  await using api = await start({
    edges: { ...systemEdges(), clock: hurriedSleep },
    env: { ...allowed, KRYTON_EVENT_WEBHOOK_URL: receiver.url },
  });
  const { id } = await api.machine("a");
  await api.call("POST", `/api/v1/machines/${id}/stop`);
  await api.call("POST", `/api/v1/machines/${id}/start`);
  await until(() => (receiver.deliveries.length >= 3 ? true : undefined));
  const types = receiver.deliveries.map(({ body }) => JSON.parse(body).type);
  assert.deepEqual(types, [
    "io.kryton.machine.created",
    "io.kryton.machine.stopped",
    "io.kryton.machine.started",
  ]);
});

test("what cannot be delivered becomes a dead letter, and a replay delivers it", async () => {
  await using receiver = await Receiver.open();
  receiver.answer = ({ body }) => (JSON.parse(body).data?.name === "bad" ? 503 : 204);
  await using api = await start({
    edges: { ...systemEdges(), clock: hurriedSleep },
    env: allowed,
    keys: { boss: { role: "admin", projects: ["*"] }, op: { role: "operator", projects: ["*"] } },
  });
  const admin = bearer("boss");
  assert.equal((await api.call("GET", "/api/v1/webhooks", undefined, bearer("op"))).status, 403);
  const made = await api.call("POST", "/api/v1/webhooks", { url: receiver.url, secret: "x" }, admin);
  assert.equal(made.status, 201, made.text);
  assert.equal(made.json.secret, undefined);
  assert.equal(made.json.signed, true);
  for (const name of ["good", "bad", "fine"]) await api.machine(name, {}, admin);
  await until(() => (receiver.names().includes("fine") ? true : undefined));
  const letters = `/api/v1/webhooks/${made.json.id}/dead-letters`;
  const [letter] = await until(async () => {
    const { items } = (await api.call("GET", letters, undefined, admin)).json;
    return items.length > 0 ? items : undefined;
  }, 90_000);
  assert.equal(letter.event.data.name, "bad");
  assert.equal(letter.lastError, "answered 503");
  receiver.answer = () => 204;
  const replayed = await api.call("POST", `/api/v1/webhooks/${made.json.id}/replay`, { after: "" }, admin);
  assert.equal(replayed.status, 202, replayed.text);
  await until(() => (receiver.names().includes("bad") ? true : undefined));
  const [sink] = (await api.call("GET", "/api/v1/webhooks", undefined, admin)).json.items;
  assert.equal(sink.url, receiver.url);
  assert.equal((await api.call("DELETE", `/api/v1/webhooks/${made.json.id}`, undefined, admin)).status, 204);
  assert.deepEqual((await api.call("GET", "/api/v1/webhooks", undefined, admin)).json.items, []);
});

test("addresses of this machine are refused unless allowed, and the answer's body is never shown", async () => {
  await using receiver = await Receiver.open();
  await using api = await start({ env: { KRYTON_EVENT_WEBHOOK_URL: receiver.url } });
  await api.machine("a");
  const sink = await until(async () => {
    const [first] = (await api.call("GET", "/api/v1/webhooks")).json.items;
    return first.delivery.lastError ? first : undefined;
  });
  assert.match(sink.delivery.lastError, /refused/);
  assert.equal(receiver.deliveries.length, 0);
});

test("delivery goes on where it stopped after a restart", async () => {
  await using receiver = await Receiver.open();
  const env = { ...allowed, KRYTON_EVENT_WEBHOOK_URL: receiver.url };
  await using first = await start({ env });
  await first.machine("a");
  await until(() => (receiver.names().includes("a") ? true : undefined));
  await first.kryton.stop();
  await using second = await start({ env, store: first.store, sealer: first.sealer });
  await second.machine("b");
  await until(() => (receiver.names().includes("b") ? true : undefined));
  assert.ok(
    receiver.names().filter((name) => name === "a").length <= 2,
    "at least once, not again and again",
  );
  await second.stop();
});
