import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { applyJsonPatch } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";

const parse = (text: string): unknown => JSON.parse(text);

describe("json patch", () => {
  const cases: [string, string, string][] = [
    ["add a member", '[{"op":"add","path":"/b","value":1}]', '{"a":[1,2],"b":1}'],
    ["append with -", '[{"op":"add","path":"/a/-","value":3}]', '{"a":[1,2,3]}'],
    ["insert", '[{"op":"add","path":"/a/0","value":0}]', '{"a":[0,1,2]}'],
    ["escapes", '[{"op":"add","path":"/x~1y~0z","value":1}]', '{"a":[1,2],"x/y~z":1}'],
    ["remove an item", '[{"op":"remove","path":"/a/0"}]', '{"a":[2]}'],
    ["replace the whole", '[{"op":"replace","path":"","value":{"n":1}}]', '{"n":1}'],
    ["move", '[{"op":"move","from":"/a/0","path":"/m"}]', '{"a":[2],"m":1}'],
    [
      "copy",
      '[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/-","value":9}]',
      '{"a":[1,2],"c":[1,2,9]}',
    ],
    [
      "test then add",
      '[{"op":"test","path":"/a/1","value":2},{"op":"add","path":"/t","value":null}]',
      '{"a":[1,2],"t":null}',
    ],
  ];
  for (const [name, patch, expected] of cases) {
    test(name, () => {
      const document = { a: [1, 2] };
      assert.deepEqual(applyJsonPatch(document, parse(patch)), parse(expected));
      assert.deepEqual(document, { a: [1, 2] });
    });
  }

  const refused: [string, string, string][] = [
    ["failed test", '[{"op":"test","path":"/a/0","value":"1"}]', "unprocessable"],
    ["missing path", '[{"op":"remove","path":"/x"}]', "unprocessable"],
    ["missing parent", '[{"op":"add","path":"/x/y","value":1}]', "unprocessable"],
    ["index beyond the end", '[{"op":"add","path":"/a/3","value":1}]', "unprocessable"],
    ["leading zero", '[{"op":"replace","path":"/a/01","value":1}]', "unprocessable"],
    ["into itself", '[{"op":"move","from":"/a","path":"/a/0"}]', "unprocessable"],
    ["result no object", '[{"op":"remove","path":""}]', "unprocessable"],
    ["not an array", '{"op":"add"}', "invalid_argument"],
    ["unknown operation", '[{"op":"frob","path":"/a"}]', "invalid_argument"],
    ["no value", '[{"op":"add","path":"/a"}]', "invalid_argument"],
    ["bad pointer", '[{"op":"remove","path":"a"}]', "invalid_argument"],
  ];
  for (const [name, patch, code] of refused) {
    test(`refuses ${name}`, () => assert.throws(() => applyJsonPatch({ a: [1, 2] }, parse(patch)), { code }));
  }

  test("doubling by copy is bounded", () => {
    const patch: unknown[] = [{ op: "add", path: "/x", value: [1, 2, 3, 4, 5, 6, 7, 8] }];
    for (let i = 0; i < 40; i++) patch.push({ op: "copy", from: "/x", path: "/x/-" });
    assert.throws(() => applyJsonPatch({}, patch), { code: "unprocessable" });
  });

  test("too many operations", () => {
    const patch = Array.from({ length: 10_001 }, () => ({ op: "test", path: "", value: {} }));
    assert.throws(() => applyJsonPatch({}, patch), { code: "payload_too_large" });
  });

  test("bigints and __proto__ pass untouched", () => {
    const document = { n: 9007199254740993n };
    const result = applyJsonPatch(
      document,
      parse('[{"op":"add","path":"/__proto__","value":{"p":1}},{"op":"copy","from":"/n","path":"/m"}]'),
    );
    assert.equal(result["m"], 9007199254740993n);
    assert.ok(Object.hasOwn(result, "__proto__"));
    assert.equal((result as { p?: number }).p, undefined);
  });
});

describe("merge patch", () => {
  const cases: [string, string, string][] = [
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ["{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
    ["{}", '{"__proto__":{"p":1},"q":2}', '{"__proto__":{"p":1},"q":2}'],
  ];
  for (const [document, patch, expected] of cases) {
    test(`${document} + ${patch}`, () => {
      assert.equal(JSON.stringify(applyMergePatch(parse(document) as never, parse(patch))), expected);
    });
  }

  test("refuses what is not an object", () => {
    assert.throws(() => applyMergePatch({}, [1]), { code: "invalid_argument" });
  });
});
