import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { duplicateFields } from "./duplicates.ts";
import { cloneJson, equalJson, maxDepth, measure, parseJson, stringifyJson } from "./json.ts";

test("integers survive up to 64 bits", () => {
  for (const text of ["9223372036854775807", "-9223372036854775808", "9007199254740993", "1", "-1", "0"]) {
    assert.equal(stringifyJson(parseJson(`{"n":${text}}`)), `{"n":${text}}`);
  }
  assert.equal(parseJson("9007199254740991"), Number.MAX_SAFE_INTEGER);
  assert.equal(parseJson("1234567890123456.5"), 1234567890123456.5);
});

test("any JSON value is read and written unchanged", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value, big) => {
      const text = `{"a":${JSON.stringify(value)},"b":${big}}`;
      const parsed = parseJson(text);
      assert.ok(equalJson(parsed, parseJson(stringifyJson(parsed))));
      assert.ok(equalJson(cloneJson(parsed), parsed));
      assert.ok(stringifyJson(parsed).endsWith(`"b":${big}}`));
    }),
    { numRuns: 200 },
  );
});

test("a key named __proto__ is a key", () => {
  const value = cloneJson(parseJson('{"__proto__":{"x":1}}'));
  assert.equal(stringifyJson(value), '{"__proto__":{"x":1}}');
});

test("depth and range are bounded", () => {
  const deep = (levels: number): unknown => parseJson("[".repeat(levels) + "]".repeat(levels));
  assert.doesNotThrow(() => measure(deep(maxDepth)));
  assert.throws(() => measure(deep(maxDepth + 2)), /nested deeper/);
  assert.throws(() => measure(parseJson("[1e400]")), /out of range/);
  assert.throws(() => parseJson("[".repeat(200_000)), /invalid JSON/);
});

test("errors never quote the text", () => {
  assert.throws(
    () => parseJson('{"password":"hunter2",}'),
    (error: Error) => !error.message.includes("hunter2"),
  );
});

test("duplicate keys are found with their paths", () => {
  const find = (text: string): readonly string[] => duplicateFields(text, parseJson(text));
  assert.deepEqual(find('{"spec":{"replicas":1,"replicas":2}}'), ["spec.replicas"]);
  assert.deepEqual(find('{"a":[{"x":1},{"y":1,"y":2}]}'), ["a[1].y"]);
  assert.deepEqual(find('{"a":"\\"b\\": \\"c\\":","b":{"a":1}}'), []);
  assert.deepEqual(find('{"a\\u0062":1,"ab":2}'), ["ab"]);
});
