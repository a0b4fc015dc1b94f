import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock } from "@kontinuum/std";
import fc from "fast-check";
import { WorkQueue } from "./work-queue.ts";

test("a key waits once, however often it is added", async () => {
  const queue = new WorkQueue({ clock: new SimulatedClock() });
  queue.add("a");
  queue.add("b");
  queue.add("a");
  assert.equal(await queue.take(), "a");
  assert.equal(await queue.take(), "b");
  assert.equal(queue.stats().waiting, 0);
});

test("a key added while worked on comes again after done, at the back", async () => {
  const queue = new WorkQueue({ clock: new SimulatedClock() });
  queue.add("hot");
  assert.equal(await queue.take(), "hot");
  queue.add("hot");
  queue.add("cold");
  queue.done("hot");
  assert.equal(await queue.take(), "cold");
  assert.equal(await queue.take(), "hot");
});

test("the earliest of several delays counts", async () => {
  const clock = new SimulatedClock();
  const queue = new WorkQueue({ clock });
  queue.addAfter("a", 1000);
  queue.addAfter("a", 100);
  queue.addAfter("a", 5000);
  await clock.advance(99);
  assert.equal(queue.stats().waiting, 0);
  await clock.advance(1);
  assert.equal(queue.stats().waiting, 1);
  assert.equal(queue.stats().delayed, 0);
});

test("failures back off from 5 ms to 1000 s, and forgetting starts again", async () => {
  const clock = new SimulatedClock();
  const queue = new WorkQueue({ clock, retryRate: { perSecond: 1e6, burst: 1e6 } });
  const waits: number[] = [];
  for (let i = 0; i < 20; i++) {
    queue.addFailed("a");
    waits.push((clock.nextAt() ?? 0) - clock.now());
    await clock.advance(1_000_000);
    assert.equal(await queue.take(), "a");
    queue.done("a");
  }
  assert.deepEqual(waits.slice(0, 4), [5, 10, 20, 40]);
  assert.equal(waits.at(-1), 1_000_000);
  queue.forget("a");
  queue.addFailed("a");
  assert.equal((clock.nextAt() ?? 0) - clock.now(), 5);
});

test("retries of all keys together keep the overall rate", () => {
  const clock = new SimulatedClock();
  const queue = new WorkQueue({ clock, retryRate: { perSecond: 10, burst: 2 } });
  for (const key of ["a", "b", "c"]) queue.addFailed(key);
  assert.equal(queue.stats().delayed, 3);
  return clock.advance(99).then(async () => {
    assert.equal(queue.stats().waiting, 2);
    await clock.advance(1);
    assert.equal(queue.stats().waiting, 3);
  });
});

test("a full queue says so and loses no delayed key", async () => {
  const clock = new SimulatedClock();
  const queue = new WorkQueue({ clock, limit: 1, backoff: { baseMs: 5, maxMs: 50 } });
  assert.equal(queue.add("a"), true);
  assert.equal(queue.add("b"), false);
  assert.equal(queue.addAfter("c", 10), true);
  await clock.advance(10);
  assert.equal(await queue.take(), "a");
  await clock.advance(50);
  assert.equal(await queue.take(), "c");
});

test("closing ends takers and forgets what waits", async () => {
  const queue = new WorkQueue({ clock: new SimulatedClock() });
  const taken = queue.take();
  queue.close();
  assert.equal(await taken, undefined);
  assert.equal(queue.add("a"), false);
});

test("property: never twice at once, never lost", async () => {
  const command = fc.oneof(
    fc.record({ type: fc.constant("add" as const), key: fc.integer({ min: 0, max: 5 }) }),
    fc.record({
      type: fc.constant("later" as const),
      key: fc.integer({ min: 0, max: 5 }),
      ms: fc.integer({ min: 0, max: 20 }),
    }),
    fc.record({ type: fc.constant("fail" as const), key: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ type: fc.constant("take" as const) }),
    fc.record({ type: fc.constant("done" as const) }),
    fc.record({ type: fc.constant("tick" as const), ms: fc.integer({ min: 0, max: 30 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 60 }), async (commands) => {
      const clock = new SimulatedClock();
      const queue = new WorkQueue({ clock });
      const active: string[] = [];
      const owed = new Set<string>();
      const take = async (): Promise<void> => {
        if (queue.stats().waiting === 0) return;
        const key = (await queue.take()) ?? "";
        assert.ok(!active.includes(key), `${key} handed out twice at once`);
        active.push(key);
        owed.delete(key);
      };
      for (const step of commands) {
        if (step.type === "add" && queue.add(`k${step.key}`)) owed.add(`k${step.key}`);
        if (step.type === "later" && queue.addAfter(`k${step.key}`, step.ms)) owed.add(`k${step.key}`);
        if (step.type === "fail" && queue.addFailed(`k${step.key}`)) owed.add(`k${step.key}`);
        if (step.type === "take") await take();
        if (step.type === "done") {
          const key = active.shift();
          if (key !== undefined) queue.done(key);
        }
        if (step.type === "tick") await clock.advance(step.ms);
      }
      for (const key of active.splice(0)) queue.done(key);
      await clock.advance(3_600_000);
      while (queue.stats().waiting > 0) {
        await take();
        for (const key of active.splice(0)) queue.done(key);
        await clock.advance(3_600_000);
      }
      assert.deepEqual([...owed], []);
    }),
    { numRuns: 200 },
  );
});
