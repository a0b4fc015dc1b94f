import assert from "node:assert/strict";
import { test } from "node:test";
import { inOrder } from "./in-order.ts";

async function* numbers(count: number): AsyncGenerator<number, void, undefined> {
  for (let i = 0; i < count; i++) yield i;
}

test("answers come in order, so many at once and no more", async () => {
  let running = 0;
  let highest = 0;
  const turns: number[] = [];
  const answers = inOrder(numbers(20), 4, async (n) => {
    highest = Math.max(highest, ++running);
    // The later of a few is done before the earlier.
    for (let i = 0; i < (n % 3 === 0 ? 6 : 1); i++) await new Promise((next) => setImmediate(next));
    running--;
    turns.push(n);
    return n * 10;
  });
  const seen: number[] = [];
  for await (const answer of answers) seen.push(answer);
  assert.deepEqual(
    seen,
    Array.from({ length: 20 }, (_, i) => i * 10),
  );
  assert.equal(highest, 4);
  assert.notDeepEqual(
    turns,
    turns.toSorted((a, b) => a - b),
  );
});

test("a failure comes after the answers before it; failing requests end it, too", async () => {
  const seen: number[] = [];
  const failing = inOrder(numbers(9), 4, async (n) => {
    if (n >= 2) throw new Error(`no ${n}`);
    await new Promise((next) => setImmediate(next));
    return n;
  });
  await assert.rejects(async () => {
    for await (const answer of failing) seen.push(answer);
  }, /no 2/);
  assert.deepEqual(seen, [0, 1]);
  async function* broken(): AsyncGenerator<number, void, undefined> {
    yield 1;
    throw new Error("gone");
  }
  await assert.rejects(async () => {
    for await (const answer of inOrder(broken(), 4, async (n) => n)) assert.equal(answer, 1);
  }, /gone/);
});

test("leaving does not wait for a request that never comes", async () => {
  let returned = false;
  const silent: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => {
      let first = true;
      return {
        next: () => {
          if (!first) return new Promise(() => {});
          first = false;
          return Promise.resolve({ done: false as const, value: 1 });
        },
        return: () => {
          returned = true;
          return new Promise(() => {});
        },
      };
    },
  };
  for await (const answer of inOrder(silent, 4, async (n) => n)) {
    assert.equal(answer, 1);
    break;
  }
  assert.ok(returned);
});
