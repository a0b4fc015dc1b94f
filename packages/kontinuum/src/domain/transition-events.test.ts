/**
 * Events of changed conditions: one for each change, counted when it repeats, none for a message alone.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { at, silentLog, SimulatedClock } from "@kontinuum/std";
import { systemNamespace, zoneKind, type Zone } from "../kinds/index.ts";
import { ensureNamespace } from "./ensure.ts";
import { condition, zone } from "./objects.fixture.ts";
import { startTestServer, type TestServer } from "./server.fixture.ts";
import { transitions, writeStatus } from "./transition-events.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer();
  await ensureNamespace(server.client, systemNamespace);
});
after(() => server.close());

const clock = new SimulatedClock();

async function eventsOf(name: string): Promise<readonly unknown[]> {
  const items = at(
    await server.client.request("GET", `/api/v1/namespaces/${systemNamespace}/events`),
    "items",
  );
  assert.ok(Array.isArray(items));
  return items.filter((item) => at(item, "involvedObject", "name") === name);
}

test("a change of status or reason is a transition, a message is none", () => {
  const before = [condition("Ready", "False", "Waiting")];
  assert.deepEqual(
    transitions(before, [{ ...condition("Ready", "False", "Waiting"), message: "longer" }]),
    [],
  );
  assert.equal(transitions(before, [condition("Ready", "False", "Failed")]).length, 1);
  assert.equal(transitions(before, [condition("Ready", "True", "Waiting")]).length, 1);
  assert.equal(transitions([], [condition("Ready", "True"), condition("Installed", "True")]).length, 2);
});

test("events name the object, alarm for failures, and count repetitions", async () => {
  const { uid: _uid, ...metadata } = zone("eu", "a").metadata;
  let one: Zone = await server.client.create(zoneKind.resource, { ...zone("eu", "a"), metadata });
  const write = async (reason: string, message = ""): Promise<void> => {
    const status = { conditions: [{ ...condition("Installed", "False", reason), message }] };
    one = await writeStatus({ client: server.cached, clock, log: silentLog }, zoneKind.resource, one, status);
  };
  await write("WaitingForCertificate");
  await write("WaitingForCertificate", "still");
  await write("InstallFailed", "no room");
  await write("WaitingForCertificate");
  const seen = (await eventsOf("eu-a")).map((event) => [
    at(event, "reason"),
    at(event, "type"),
    at(event, "count"),
    at(event, "message"),
  ]);
  assert.deepEqual(
    seen.toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
    [
      ["InstallFailed", "Warning", 1, "Installed: no room"],
      ["WaitingForCertificate", "Normal", 2, "Installed: False"],
    ],
  );
  assert.equal(at((await eventsOf("eu-a"))[0], "involvedObject", "uid"), one.metadata.uid);
});
