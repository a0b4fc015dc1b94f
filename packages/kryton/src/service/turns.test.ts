import assert from "node:assert/strict";
import { test } from "node:test";
import { maxWaiting, Turns } from "./turns.ts";

test("callers of one thing come one after the other, in order, and a line that never empties has no end", async () => {
  const turns = new Turns();
  const order: number[] = [];
  let inside = 0;
  const caller = (n: number): Promise<boolean | undefined> =>
    turns.take("k", async () => {
      assert.equal(++inside, 1);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(n);
      inside--;
      return true;
    });
  let pending: Promise<boolean | undefined>[] = [];
  for (let n = 0; n < maxWaiting * 3; n++) {
    pending.push(caller(n));
    if (pending.length > 8) assert.equal(await pending.shift(), true);
  }
  assert.ok((await Promise.all(pending)).every((done) => done === true));
  assert.deepEqual(
    order,
    [...order].sort((a, b) => a - b),
  );
  pending = Array.from({ length: maxWaiting + 1 }, (_, n) => caller(order.length + n));
  assert.equal((await Promise.all(pending)).filter((done) => done === undefined).length, 1);
});

test("a failure ends a turn, and different things do not wait for each other", async () => {
  const turns = new Turns();
  const never = turns.take("a", () => new Promise<void>(() => {}));
  void never;
  await assert.rejects(
    turns.take("b", () => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.equal(await turns.take("b", () => Promise.resolve(1)), 1);
});
