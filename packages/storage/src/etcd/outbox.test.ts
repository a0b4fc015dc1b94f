/** The queue between producers that wait and one consumer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "./outbox.ts";

test("nothing overtakes what waits for room", async () => {
  const outbox = new Outbox<number>(2);
  const puts = [1, 2, 3, 4].map((item) => outbox.put(item));
  const items = outbox[Symbol.asyncIterator]();
  assert.equal((await items.next()).value, 1);
  // Room was made for 3: what comes now goes behind 3 and 4.
  puts.push(outbox.put(5));
  for (const expected of [2, 3, 4, 5]) assert.equal((await items.next()).value, expected);
  await Promise.all(puts);
});

test("the end: what is in is delivered, what waited for room is dropped, and nobody waits on", async () => {
  const outbox = new Outbox<number>(1);
  const puts = [outbox.put(1), outbox.put(2)];
  outbox.end(new Error("over"));
  await Promise.all([...puts, outbox.put(3)]);
  const seen: number[] = [];
  await assert.rejects(async () => {
    for await (const item of outbox) seen.push(item);
  }, /over/);
  assert.deepEqual(seen, [1]);
});
