import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalTime, formatDuration, formatTime, parseDuration, parseTime } from "./time.ts";

test("times become UTC with whole seconds or six decimals", () => {
  assert.equal(canonicalTime("2026-01-02T03:04:05Z", false), "2026-01-02T03:04:05Z");
  assert.equal(canonicalTime("2026-01-02T03:04:05.999Z", false), "2026-01-02T03:04:05Z");
  assert.equal(canonicalTime("2026-01-02T03:04:05+02:30", false), "2026-01-02T00:34:05Z");
  assert.equal(canonicalTime("2026-01-02T03:04:05.123456789Z", true), "2026-01-02T03:04:05.123456Z");
  assert.equal(canonicalTime("2026-01-02T03:04:05Z", true), "2026-01-02T03:04:05.000000Z");
  assert.equal(canonicalTime("1960-06-01T00:00:00.25Z", true), "1960-06-01T00:00:00.250000Z");
  assert.equal(canonicalTime("0001-01-01T00:00:00Z", false), null);
  assert.equal(formatTime({ seconds: -62_135_596_800, nanos: 0 }, false), null);
  assert.equal(formatTime({ seconds: 1e18, nanos: 0 }, false), null);
});

test("what is no time is none", () => {
  for (const text of [
    "",
    "now",
    "2026-01-02",
    "2026-13-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2025-02-29T00:00:00Z",
    "2026-01-02T24:00:00Z",
    "2026-01-02T00:00:60Z",
    "2026-01-02 03:04:05Z",
    "2026-01-02T03:04:05",
  ]) {
    assert.equal(parseTime(text), undefined, text);
  }
  assert.ok(parseTime("2024-02-29T00:00:00Z"));
});

test("durations", () => {
  for (const [text, canonical] of [
    ["0", "0s"],
    ["1h", "1h0m0s"],
    ["90s", "1m30s"],
    ["1.5h", "1h30m0s"],
    ["1h2m3.5s", "1h2m3.5s"],
    ["-5m", "-5m0s"],
    ["100ms", "100ms"],
    ["1500us", "1.5ms"],
    ["3ns", "3ns"],
    ["1.5us", "1.5µs"],
  ] as const) {
    const parsed = parseDuration(text);
    assert.ok(parsed !== undefined, text);
    assert.equal(formatDuration(parsed), canonical);
  }
  for (const text of ["", "1", "h", "1d", "1h 2m", "1..5s"])
    assert.equal(parseDuration(text), undefined, text);
});
