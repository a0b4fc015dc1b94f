import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock, Timer } from "@kontinuum/std";
import { Rounds } from "./rounds.ts";

/** Time that passes only by work, and timers that wait to be run. */
function handClock(): { clock: Clock; work(ms: number): void; pauses: number[]; elapse(): void } {
  let now = 0;
  const pauses: number[] = [];
  const timers: (() => void)[] = [];
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    timer(delayMs, callback): Timer {
      pauses.push(delayMs);
      timers.push(callback);
      return { clear: () => {} };
    },
    sleep: () => Promise.resolve(),
  };
  return {
    clock,
    pauses,
    work: (ms) => (now += ms),
    elapse: () => {
      for (const callback of timers.splice(0)) callback();
    },
  };
}

test("a change while nothing goes on is told at once, every time", () => {
  const told: string[] = [];
  const { clock, pauses } = handClock();
  const rounds = new Rounds(
    new Set(["a", "b"].map((name) => ({ notify: () => void told.push(name) }))),
    clock,
  );
  rounds.start();
  rounds.start();
  assert.deepEqual(told, ["a", "b", "a", "b"]);
  assert.deepEqual(pauses, []);
});

test("changes during a costly round are told together, after a pause as long as the round", () => {
  const { clock, pauses, work, elapse } = handClock();
  let told = 0;
  const rounds = new Rounds(
    new Set([
      {
        notify: () => {
          told++;
          work(4);
        },
      },
    ]),
    clock,
  );
  rounds.start();
  assert.equal(told, 1);
  for (let i = 0; i < 5; i++) rounds.start();
  assert.equal(told, 1);
  assert.deepEqual(pauses, [4]);
  elapse();
  assert.equal(told, 2);
  elapse();
  assert.equal(told, 2, "nothing new: nobody is told");
});

test("a round of many gives way in between and leaves nobody out", async () => {
  const { clock } = handClock();
  const told = new Set<number>();
  const listeners = new Set(Array.from({ length: 1000 }, (_, i) => ({ notify: () => void told.add(i) })));
  const rounds = new Rounds(listeners, clock);
  rounds.start();
  assert.ok(told.size > 0 && told.size < 1000);
  while (told.size < 1000) await new Promise((resolve) => setImmediate(resolve));
});
