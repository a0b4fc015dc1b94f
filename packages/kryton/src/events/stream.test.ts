import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { bearer, keysFile, start, until } from "../kryton.fixture.ts";
import { openStream, received } from "../sse.fixture.ts";
import { EventLog } from "./event-log.ts";
import { maxBacklogBytes, StreamHub } from "./stream-hub.ts";

test("a stream begins with a preamble, then carries events as cloudevent frames, and ends on disconnect", async () => {
  await using api = await start();
  await api.machine("before");
  {
    await using stream = await openStream(`${api.url}/api/v1/events/stream`);
    assert.equal(stream.status, 200);
    assert.equal(stream.headers["content-type"], "text/event-stream");
    assert.equal(stream.headers["cache-control"], "no-cache");
    assert.equal(stream.headers["x-content-type-options"], "nosniff");
    assert.ok(stream.headers["x-request-id"]);
    await until(() => (stream.text().startsWith(": kryton event stream\n") ? true : undefined));
    const { id } = await api.machine("during");
    await received(stream, 1);
    const [event] = stream.events();
    assert.equal(event?.type, "io.kryton.machine.created");
    assert.equal(event.data?.["machineId"], id);
    assert.match(stream.text(), /\nid: [0-9a-f-]{36}\nevent: cloudevent\ndata: \{.*\}\n\n$/);
    assert.equal(stream.events().length, 1, "what happened before is not replayed unasked");
  }
  await until(() => (api.kryton.services.streams.size === 0 ? true : undefined));
});

test("Last-Event-ID resumes exactly: nothing missing, nothing twice", async () => {
  await using api = await start();
  for (const name of ["a", "b", "c"]) await api.machine(name);
  const all = (await api.call("GET", "/api/v1/events")).json.items.toReversed();
  await using stream = await openStream(`${api.url}/api/v1/events/stream`, { "last-event-id": all[0].id });
  await received(stream, 2);
  await api.machine("d");
  await received(stream, 3);
  const names = stream.events().map((event) => event.data?.["name"]);
  assert.deepEqual(names, ["b", "c", "d"]);
  await using byQuery = await openStream(`${api.url}/api/v1/events/stream?lastEventId=${all[2].id}`);
  await received(byQuery, 1);
  assert.equal(byQuery.events()[0]?.data?.["name"], "d");
});

test("an unknown Last-Event-ID is answered with a gap notice and what there is", async () => {
  await using api = await start();
  await api.machine("a");
  await using stream = await openStream(`${api.url}/api/v1/events/stream`, { "last-event-id": "gone" });
  await received(stream, 1);
  assert.match(stream.text(), /event: gap\ndata: \{"reason"/);
});

test("a stream and a history show only what the caller's projects allow, and filters only narrow", async () => {
  await using api = await start({
    env: { KRYTON_PROJECTS: "ci,qa" },
    keys: { boss: { role: "admin", projects: ["*"] }, ci: { role: "viewer", projects: ["ci"] } },
  });
  await using stream = await openStream(`${api.url}/api/v1/events/stream`, bearer("ci"));
  await using other = await openStream(`${api.url}/api/v1/events/stream?project=qa`, bearer("ci"));
  await api.machine("secret", { project: "qa" }, bearer("boss"));
  await api.machine("open", { project: "ci" }, bearer("boss"));
  await received(stream, 1);
  assert.deepEqual(
    stream.events().map((event) => event.data?.["name"]),
    ["open"],
  );
  assert.equal(other.events().length, 0);
  const filtered = await api.call("GET", "/api/v1/events?project=qa", undefined, bearer("ci"));
  assert.deepEqual(filtered.json.items, []);
  const typed = await api.call(
    "GET",
    "/api/v1/events?type=io.kryton.machine.deleted",
    undefined,
    bearer("boss"),
  );
  assert.deepEqual(typed.json.items, []);
});

test("a revoked key ends its streams and its access at once", async () => {
  await using api = await start({
    keys: { old: { role: "viewer", projects: ["*"] }, keep: { role: "admin", projects: ["*"] } },
  });
  await using stream = await openStream(`${api.url}/api/v1/events/stream`, bearer("old"));
  await using kept = await openStream(`${api.url}/api/v1/events/stream`, bearer("keep"));
  await writeFile(join(api.directory, "keys.json"), keysFile({ keep: { role: "admin", projects: ["*"] } }));
  await stream.ended;
  assert.equal((await api.call("GET", "/api/v1/me", undefined, bearer("old"))).status, 401);
  await api.machine("a", {}, bearer("keep"));
  await received(kept, 1);
});

test("a reader that does not read is cut off, not queued for", () => {
  const edges = systemEdges();
  const hub = new StreamHub(new EventLog(Object.create(null), edges), edges);
  let ended = false;
  const writes: number[] = [];
  const sink = {
    writableLength: 0,
    write: (chunk: Buffer) => writes.push(chunk.length),
    end: () => (ended = true),
  };
  const principal = { name: "slow", role: "viewer" as const, projects: ["*"] };
  hub.add({ sink, principal, lastEventId: undefined, valid: () => !ended });
  sink.writableLength = maxBacklogBytes + 1;
  assert.equal(hub.size, 1);
  ended = true;
  hub.recheck();
  assert.equal(hub.size, 0);
});

test("history tells the window it covers", async () => {
  await using api = await start({ env: { KRYTON_EVENTS_RETENTION: "500" } });
  await api.machine("a");
  await api.machine("b");
  const { json } = await api.call("GET", "/api/v1/events?limit=1");
  assert.equal(json.items.length, 1);
  assert.equal(json.window.newestId, json.items[0].id);
  assert.equal(json.window.retention, 500);
  assert.notEqual(json.window.oldestId, json.window.newestId);
});
