/**
 * Errors: the table is complete and consistent, and causes stay inside.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, errorTable, isCoded, messageOf, toCoded } from "./errors.ts";

test("every code has sensible numbers and words", () => {
  for (const [code, row] of Object.entries(errorTable)) {
    assert.ok(row.http >= 400 && row.http <= 599, code);
    assert.ok(row.grpc >= 1 && row.grpc <= 16, code);
    assert.ok(row.exit >= 1 && row.exit <= 130, code);
    assert.match(row.kubernetes, /^[A-Z][A-Za-z]+$/);
    assert.match(row.user, /\.$/);
    assert.match(row.operator, /\.$/);
  }
});

test("an unknown failure becomes internal and its text stays the cause", () => {
  const coded = toCoded(new Error("password=hunter2"));
  assert.equal(coded.code, "internal");
  assert.equal(coded.message, "internal error");
  assert.match(messageOf(coded.cause), /hunter2/);
  const known = new CodedError("conflict", "again");
  assert.equal(toCoded(known), known);
  assert.ok(isCoded(known, "conflict") && !isCoded(known, "gone"));
});
