import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalQuantity, quantityNano } from "./quantity.ts";

const cases: readonly (readonly [unknown, string | undefined])[] = [
  ["1", "1"],
  [1, "1"],
  [0.5, "500m"],
  ["0.5", "500m"],
  ["1000m", "1"],
  ["1500m", "1500m"],
  ["100m", "100m"],
  ["1000", "1k"],
  ["1000000", "1M"],
  ["1024Mi", "1024Mi"],
  ["1.5Gi", "1610612736"],
  ["0", "0"],
  ["0Mi", "0"],
  ["-5", "-5"],
  ["+5", "5"],
  ["007", "7"],
  ["1e3", "1e3"],
  ["1E3", "1e3"],
  ["12e6", "12e6"],
  ["1.0", "1"],
  [".5", "500m"],
  ["5.", "5"],
  ["0.0000000001", "1n"],
  ["123456789012345678901234567890", "123456789012345678901234567890"],
  ["", undefined],
  ["1x", undefined],
  ["1 Gi", undefined],
  ["Gi", undefined],
  ["1e999", undefined],
  ["--1", undefined],
  [true, undefined],
  [null, undefined],
];

for (const [input, expected] of cases) {
  test(`the canonical form of ${String(input)} is ${String(expected)}`, () => {
    assert.equal(canonicalQuantity(input), expected);
  });
}

test("a canonical quantity is its own canonical form and keeps its value", () => {
  for (const [input] of cases) {
    const canonical = canonicalQuantity(input);
    if (canonical === undefined) continue;
    assert.equal(canonicalQuantity(canonical), canonical);
    assert.equal(quantityNano(canonical), quantityNano(input));
  }
});

test("values compare by amount, whatever the suffix", () => {
  assert.equal(quantityNano("1Gi"), quantityNano("1024Mi"));
  assert.equal(quantityNano("1"), 1_000_000_000n);
  assert.equal(quantityNano("nope"), undefined);
});
