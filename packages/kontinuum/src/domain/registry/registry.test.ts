/**
 * The registry: names, staleness, and what is published of a process.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock, seededRandom } from "@kontinuum/std";
import { parseConfig } from "../../config/config.ts";
import { readValues } from "../../config/variables.ts";
import { kontinuum } from "../objects.fixture.ts";
import { processName } from "./process-name.ts";
import { publishedConfig } from "./registration.ts";
import { decideStaleness } from "./staleness.ts";

const edges = { clock: new SimulatedClock(), random: seededRandom(1) };

test("a process is named after its host, unless that names nothing", () => {
  assert.equal(processName("Hub-1.Example", "", edges), "hub-1.example");
  assert.equal(processName("host", "given", edges), "given");
  for (const useless of ["", "localhost", "LocalHost", "not_a_name", "a b"]) {
    assert.match(processName(useless, "", edges), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
  }
});

test("stale from the very moment on; without heartbeat the creation counts", () => {
  const now = Date.parse("2026-01-01T00:05:00Z");
  const beat = (lastHeartbeatTime: string) => kontinuum("a", {}, { status: { lastHeartbeatTime } });
  assert.deepEqual(decideStaleness(beat("2026-01-01T00:00:00Z"), now, 300_000), { action: "remove" });
  assert.deepEqual(decideStaleness(beat("2026-01-01T00:00:01Z"), now, 300_000), {
    action: "recheck",
    afterMs: 1000,
  });
  assert.deepEqual(decideStaleness(beat("2026-01-01T00:10:00Z"), now, 300_000), { action: "remove" });
  assert.deepEqual(decideStaleness(kontinuum("a"), now, 300_000), { action: "remove" });
  const created = kontinuum("a", {}, { metadata: { creationTimestamp: "2026-01-01T00:04:00Z" } });
  assert.deepEqual(decideStaleness(created, now, 300_000), { action: "recheck", afterMs: 240_000 });
});

test("what is published holds no credential", () => {
  const published = publishedConfig(
    parseConfig(
      readValues({
        KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
        KONTINUUM_SERVER_STORAGE: "postgres://u:hunter2@db/k?password=hunter2",
      }),
    ),
  );
  assert.equal(published.server?.storage, "postgres://db/k");
  assert.equal(published.oidc?.enabled, false);
  assert.doesNotMatch(JSON.stringify(published), /hunter2/);
});
