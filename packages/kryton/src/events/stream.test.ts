import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock, systemEdges, type Clock } from "@kontinuum/std";
import { prefixRange } from "@kontinuum/storage/client";
import { bearer, hurried, keysFile, start, until, type Fixture } from "../kryton.fixture.ts";
import { openStream, received } from "../sse.fixture.ts";
import type { EventDraft } from "../model/event.ts";
import { Change } from "../store/change.ts";
import { keys } from "../store/keyspace.ts";
import { farewellMs, maxOnTheWayBytes } from "./stream-hub.ts";

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

/** Appends events of 16 KB to the log until `done`, at most so many. */
async function flood(api: Fixture, most: number, done: () => boolean): Promise<void> {
  const padding = "x".repeat(16 * 1024);
  for (let made = 0; made < most && !done(); made++) {
    const event: EventDraft = { type: "io.kryton.settings.updated", data: { made, padding } };
    await new Change().event(event).commit(api.store, api.edges);
  }
}

/** A connection that asks for the stream after an event and takes nothing of it. */
async function silentReader(api: Fixture, after: string): Promise<Socket> {
  const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
  socket.pause();
  socket.write(`GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: ${after}\r\n\r\n`);
  await until(() => (api.kryton.services.streams.size === 1 ? true : undefined));
  return socket;
}

test("a reader that does not read costs a bounded buffer, then is cut off, and loses nothing", async () => {
  await using api = await start({ edges: { ...systemEdges(), clock: hurried } });
  const { streams, events } = api.kryton.services;
  await api.machine("m");
  const first = await until(() => events.window[0]?.event.id);
  const socket = await silentReader(api, first);
  let most = 0;
  try {
    // The kernel's buffers fill, then the server's, and then no more is written.
    await flood(api, 4_000, () => (most = Math.max(most, streams.onTheWay)) > maxOnTheWayBytes);
    await flood(api, 500, () => (most = Math.max(most, streams.onTheWay)) < 0);
    await until(() => (streams.size === 0 ? true : undefined), 20_000);
  } finally {
    socket.destroy();
  }
  assert.ok(most > maxOnTheWayBytes, "the reader never fell behind");
  assert.ok(most < 8 * maxOnTheWayBytes, `${most} bytes waited for one reader`);
  const { count } = await api.store.range({ ...prefixRange(keys.event()), countOnly: true });
  await until(() => (events.window.length === count ? true : undefined));
  await using resumed = await openStream(`${api.url}/api/v1/events/stream`, { "last-event-id": first });
  const all = events.window.slice(1).map(({ event }) => event.id);
  await until(() => (resumed.ids().length >= all.length ? true : undefined), 20_000);
  assert.deepEqual(resumed.ids(), all);
});

/** Hurried, but for the time a reader has to take what is on its way when it was cut off. */
const patient: Clock = {
  ...hurried,
  timer: (delayMs, callback) =>
    delayMs === farewellMs ? systemClock.timer(6 * farewellMs, callback) : hurried.timer(delayMs, callback),
};

test("a reader that was cut off is told why, and after which event to go on", async () => {
  await using api = await start({ edges: { ...systemEdges(), clock: patient } });
  const { streams, events } = api.kryton.services;
  await api.machine("m");
  const socket = await silentReader(api, await until(() => events.window[0]?.event.id));
  try {
    await flood(api, 4_000, () => streams.onTheWay > maxOnTheWayBytes);
    await until(() => (streams.size === 0 ? true : undefined), 20_000);
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
    socket.resume();
    // The answer ends as HTTP/1.1 wants it: with an empty chunk.
    await until(() => (text.endsWith("\n\n\r\n0\r\n\r\n") ? true : undefined));
    const [, farewell = ""] = /\nevent: cut\ndata: (\{.*\})\n\n\r\n0\r\n\r\n$/.exec(text) ?? [];
    const { reason, lastEventId } = JSON.parse(farewell);
    assert.match(reason, /was not read; connect again with Last-Event-ID/);
    assert.equal([...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1], lastEventId);
  } finally {
    socket.destroy();
  }
});

test("a client that speaks HTTP/1.0 gets the stream without chunks", async () => {
  await using api = await start();
  const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
  try {
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
    socket.write("GET /api/v1/events/stream HTTP/1.0\r\nHost: localhost\r\n\r\n");
    await until(() => (text.includes("retry: ") ? true : undefined));
    await api.machine("m");
    await until(() => (text.includes("io.kryton.machine.created") ? true : undefined));
    assert.match(
      text,
      /\r\n\r\n: kryton event stream\nretry: \d+\n\nid: .*\nevent: cloudevent\ndata: \{.*\}\n\n$/,
    );
  } finally {
    socket.destroy();
  }
});

test("a slow reader is served from the log at its own pace, exactly, and is not cut off", async () => {
  await using api = await start();
  const { streams, events } = api.kryton.services;
  await api.machine("m");
  const socket = await silentReader(api, await until(() => events.window[0]?.event.id));
  try {
    await flood(api, 4_000, () => streams.onTheWay > maxOnTheWayBytes);
    await flood(api, 500, () => false);
    await events.catchUp();
    const all = events.window.slice(1).map(({ event }) => event.id);
    const told: string[] = [];
    let rest = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      told.push(...lines.filter((line) => line.startsWith("id: ")).map((line) => line.slice(4).trim()));
    });
    socket.resume();
    await until(() => (told.length >= all.length ? true : undefined), 20_000);
    assert.deepEqual(told, all);
    assert.equal(streams.size, 1);
  } finally {
    socket.destroy();
  }
});

test("an idle stream carries heartbeats", async () => {
  await using api = await start({ edges: { ...systemEdges(), clock: hurried } });
  await using stream = await openStream(`${api.url}/api/v1/events/stream`);
  await until(() => (stream.text().split(": keepalive\n\n").length > 2 ? true : undefined));
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
