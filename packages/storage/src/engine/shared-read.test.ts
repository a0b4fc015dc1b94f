import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedRead } from "./shared-read.ts";

/** A source whose reads see what it holds when they begin, and end when told. */
function source() {
  const reads: { end(): void; fail(error: Error): void }[] = [];
  const state = { value: 0 };
  const shared = new SharedRead(() => {
    const seen = state.value;
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    reads.push({ end: () => resolve(seen), fail: reject });
    return promise;
  });
  return { reads, state, shared };
}

const turn = (): Promise<void> => new Promise((next) => setImmediate(next));

test("who asks while a read is under way shares the next one, and sees what was there when they asked", async () => {
  const { reads, state, shared } = source();
  const first = shared.get();
  state.value = 1;
  const second = shared.get();
  const third = shared.get();
  assert.equal(reads.length, 1);
  reads[0]?.end();
  assert.equal(await first, 0);
  await turn();
  assert.equal(reads.length, 2);
  state.value = 2;
  const fourth = shared.get();
  reads[1]?.end();
  assert.deepEqual(await Promise.all([second, third]), [1, 1]);
  await turn();
  reads[2]?.end();
  assert.equal(await fourth, 2);
  await turn();
  assert.equal(reads.length, 3);
});

test("a failure is told to those who shared it, and the next read begins all the same", async () => {
  const { reads, state, shared } = source();
  const first = shared.get();
  const second = shared.get();
  reads[0]?.fail(new Error("lost"));
  await assert.rejects(first, /lost/);
  await turn();
  state.value = 7;
  const third = shared.get();
  reads[1]?.end();
  assert.equal(await second, 0);
  await turn();
  reads[2]?.end();
  assert.equal(await third, 7);
});

test("a read alone begins at once", async () => {
  const { reads, shared } = source();
  for (let i = 0; i < 3; i++) {
    const alone = shared.get();
    assert.equal(reads.length, i + 1);
    reads[i]?.end();
    await alone;
    await turn();
  }
});
