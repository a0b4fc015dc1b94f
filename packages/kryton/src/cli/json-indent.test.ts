import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { indentJson } from "./json-indent.ts";

test("any JSON is laid out as by the usual writer, however it was laid out before", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 0, 1, 3), (value, before) => {
      const written = JSON.stringify(value, null, before);
      assert.equal(indentJson(written), JSON.stringify(JSON.parse(written), null, 2));
    }),
    { seed: 20_261_130, numRuns: 500 },
  );
});

test("escapes and numbers stay as the server wrote them", () => {
  assert.equal(
    indentJson(
      '{"a":"\\u003cb\\u003e \\" [1,2]: {","n":12345678901234567890,"f":1.50,"e":[],"o":{ },"l":[1]}',
    ),
    '{\n  "a": "\\u003cb\\u003e \\" [1,2]: {",\n  "n": 12345678901234567890,\n  "f": 1.50,\n  "e": [],\n  "o": {},\n  "l": [\n    1\n  ]\n}',
  );
});
