/**
 * Logs: one JSON object a line, levels, and no secret in any field that is named like one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLog, type LogFormat, type LogLevel } from "./log.ts";

function collect(level: LogLevel, format: LogFormat): { lines: string[]; log: ReturnType<typeof createLog> } {
  const lines: string[] = [];
  return { lines, log: createLog({ level, format, destination: { write: (line) => lines.push(line) } }) };
}

test("json lines carry level, message and fields", () => {
  const { lines, log } = collect("info", "json");
  log.debug("dropped");
  log.with({ zone: "local-a" }).info("joined", { attempt: 2 });
  assert.equal(lines.length, 1);
  const { time, ...entry } = JSON.parse(lines[0] ?? "");
  assert.match(time, /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual(entry, { level: "info", msg: "joined", zone: "local-a", attempt: 2 });
});

test("fields named like secrets are redacted at every depth we write", () => {
  const { lines, log } = collect("debug", "json");
  log.info("x", { token: "s3cret", request: { authorization: "s3cret", deep: { password: "s3cret" } } });
  assert.doesNotMatch(lines.join(""), /s3cret/);
});

test("text is one line for people", () => {
  const { lines, log } = collect("debug", "text");
  log.warn("slow", { ms: 12 });
  assert.match(lines[0] ?? "", /^\S+ WARN {2}slow ms=12\n$/);
});
