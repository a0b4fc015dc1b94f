/**
 * Randomness and ids: a seed reproduces everything, formats are those of their standards.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SimulatedClock } from "./clock.ts";
import { isDnsLabel, isDnsSubdomain, nameAlphabet, nameSuffix, uuidv7 } from "./ids.ts";
import { seededRandom, systemRandom } from "./random.ts";

test("the same seed gives the same values, another seed others", () => {
  const take = (seed: number): string => Buffer.from(seededRandom(seed).bytes(64)).toString("hex");
  assert.equal(take(7), take(7));
  assert.notEqual(take(7), take(8));
});

test("floats lie in [0, 1) and integers below their bound, spread over the whole range", () => {
  const random = seededRandom(1);
  const seen = new Set<number>();
  for (let i = 0; i < 1000; i++) {
    const float = random.float();
    assert.ok(float >= 0 && float < 1);
    seen.add(random.integer(10));
  }
  assert.deepEqual([...seen].sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("UUIDs carry their version and variant; version 7 sorts by time", async () => {
  assert.match(systemRandom.uuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const clock = new SimulatedClock();
  const first = uuidv7(clock, systemRandom);
  await clock.advance(1);
  const second = uuidv7(clock, systemRandom);
  assert.match(first, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/);
  assert.ok(first < second);
});

test("name suffixes use the alphabet that spells nothing", () => {
  for (const letter of nameSuffix(seededRandom(3), 200)) assert.ok(nameAlphabet.includes(letter));
});

test("DNS names follow RFC 1123", () => {
  for (const good of ["a", "a-b", "0", "x".repeat(63)]) assert.ok(isDnsLabel(good), good);
  for (const bad of ["", "-a", "a-", "A", "a.b", "a_b", "x".repeat(64), "a\n"])
    assert.ok(!isDnsLabel(bad), bad);
  assert.ok(isDnsSubdomain("a.b-c.d"));
  fc.assert(
    fc.property(fc.domain(), (domain) => isDnsSubdomain(domain.toLowerCase()) || domain.length > 253),
  );
});
