/**
 * The clocks: order and exactness of simulated time, cancellation of sleeps.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock, systemClock } from "./clock.ts";
import { isCoded } from "./errors.ts";

test("simulated timers run in order of time, then of creation", async () => {
  const clock = new SimulatedClock();
  const ran: string[] = [];
  clock.timer(20, () => ran.push("late"));
  clock.timer(10, () => ran.push("first"));
  clock.timer(10, () => ran.push("second"));
  clock.timer(10, () => ran.push("cleared")).clear();
  await clock.advance(9);
  assert.deepEqual(ran, []);
  await clock.advance(11);
  assert.deepEqual(ran, ["first", "second", "late"]);
});

test("a timer set by a timer runs in the same advance when it is due", async () => {
  const clock = new SimulatedClock(0);
  const at: number[] = [];
  clock.timer(5, () => clock.timer(5, () => at.push(clock.now())));
  await clock.advance(10);
  assert.deepEqual(at, [10]);
  assert.equal(clock.now(), 10);
});

test("code that sleeps in a loop advances with simulated time", async () => {
  const clock = new SimulatedClock(0);
  let rounds = 0;
  const loop = (async () => {
    while (rounds < 3) {
      await clock.sleep(1_000);
      rounds++;
    }
  })();
  await clock.advance(3_600_000);
  await loop;
  assert.equal(rounds, 3);
});

for (const [name, clock] of [
  ["system", systemClock],
  ["simulated", new SimulatedClock()],
] as const) {
  test(`an aborted sleep of the ${name} clock rejects with cancelled`, async () => {
    const abort = new AbortController();
    const sleep = clock.sleep(60_000, abort.signal);
    abort.abort();
    await assert.rejects(sleep, (error) => isCoded(error, "cancelled"));
    await assert.rejects(clock.sleep(1, abort.signal), (error) => isCoded(error, "cancelled"));
  });
}
