/**
 * The demo's deadline: it comes in time with its reason, even when the work never answers again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded, SimulatedClock } from "@kontinuum/std";
import { beforeDeadline } from "./deadline.ts";

const reason = (): string => "the machine is gone";

test("work that hangs ends at the deadline with the reason, and is told to stop", async () => {
  const clock = new SimulatedClock();
  let inner: AbortSignal | undefined;
  const ended = beforeDeadline((signal) => new Promise<never>(() => (inner = signal)), {
    clock,
    leftMs: 120_000,
    reason,
  });
  const seen = assert.rejects(ended, (error) => {
    return isCoded(error, "deadline_exceeded") && error.message === "the machine is gone";
  });
  await clock.advance(119_999);
  assert.equal(inner?.aborted, false);
  await clock.advance(1);
  await seen;
  assert.equal(inner?.aborted, true);
});

test("work in time is answered, its failure passed on, and an abort ends the wait", async () => {
  const clock = new SimulatedClock();
  const deadline = { clock, leftMs: 1_000, reason };
  assert.equal(await beforeDeadline(() => Promise.resolve(7), deadline), 7);
  await assert.rejects(
    beforeDeadline(() => Promise.reject(new Error("broken")), deadline),
    /broken/,
  );
  const abort = new AbortController();
  const waiting = beforeDeadline(() => new Promise<never>(() => {}), { ...deadline, signal: abort.signal });
  abort.abort();
  await assert.rejects(waiting, (error) => isCoded(error, "cancelled"));
});
