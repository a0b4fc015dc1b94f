/**
 * The bounded queue: order, bound, endings.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BoundedQueue } from "./queue.ts";

test("items come out in order and a full queue refuses", async () => {
  const queue = new BoundedQueue<number>(2);
  assert.deepEqual([queue.push(1), queue.push(2), queue.push(3)], [true, true, false]);
  queue.end();
  assert.equal(queue.push(4), false);
  const seen: number[] = [];
  for await (const item of queue) seen.push(item);
  assert.deepEqual(seen, [1, 2]);
});

test("a waiting consumer is served before the queue fills", async () => {
  const queue = new BoundedQueue<string>(1);
  const next = queue.next();
  assert.ok(queue.push("a"));
  assert.ok(queue.push("b"));
  assert.deepEqual(await next, { done: false, value: "a" });
});

test("an error ends it after what was queued", async () => {
  const queue = new BoundedQueue<number>(5);
  queue.push(1);
  queue.end(new Error("lost"));
  assert.deepEqual(await queue.next(), { done: false, value: 1 });
  await assert.rejects(queue.next(), /lost/);
});

test("breaking out of the loop ends the producer's side", async () => {
  const queue = new BoundedQueue<number>(5);
  queue.push(1);
  queue.push(2);
  for await (const _ of queue) break;
  assert.equal(queue.push(3), false);
  assert.equal(queue.size, 0);
});
