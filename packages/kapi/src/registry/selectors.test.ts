import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeContinue, encodeContinue } from "./continue-token.ts";
import { parseFieldSelector } from "./field-selector.ts";
import { labelSelectorOf, parseLabelSelector } from "./label-selector.ts";

const labels = (selector: string, value: Record<string, string>): boolean =>
  parseLabelSelector(selector).matches(value);

test("label selectors", () => {
  assert.ok(labels("", {}));
  assert.ok(labels(" a = b , c ", { a: "b", c: "" }));
  assert.ok(labels("a==b", { a: "b" }));
  assert.ok(labels("a!=b", {}));
  assert.ok(labels("a in (b, c)", { a: "c" }));
  assert.ok(!labels("a notin (b,c)", { a: "c" }));
  assert.ok(labels("a notin (b,c)", {}));
  assert.ok(labels("!a", { b: "" }));
  assert.ok(labels("a=", { a: "" }));
  assert.ok(labels("n>3,n<5", { n: "4" }));
  assert.ok(!labels("toString", {}));
  assert.ok(labels("example.io/a_b.c=d", { "example.io/a_b.c": "d" }));
  for (const bad of ["a in b", "a in (b", "=b", "a=b=c", "a b", ",", "a=b,", "-a", "a>x", "a in (b))"]) {
    assert.throws(() => parseLabelSelector(bad), /unable to parse requirement/, bad);
  }
});

test("label selector objects", () => {
  const selector = labelSelectorOf({
    matchLabels: { a: "b" },
    matchExpressions: [{ key: "c", operator: "Exists" }],
  });
  assert.ok(selector.matches({ a: "b", c: "" }));
  assert.ok(!selector.matches({ a: "b" }));
  assert.ok(labelSelectorOf({}).matches({}));
  assert.ok(!labelSelectorOf(undefined).matches({}));
  assert.ok(!labelSelectorOf({ matchExpressions: [{ key: "c", operator: "Nope" }] }).matches({ c: "" }));
});

test("field selectors", () => {
  const resource = { origin: "custom", selectableFields: ["spec.size"], namespaced: true } as const;
  const select = (text: string, fields: Record<string, string>): boolean =>
    parseFieldSelector(text, resource).matches((path) => fields[path] ?? "");
  assert.ok(select("metadata.name=a", { "metadata.name": "a" }));
  assert.ok(select("spec.size!=a", {}));
  assert.ok(select("spec.size=a\\,b\\=c\\\\d", { "spec.size": "a,b=c\\d" }));
  assert.throws(() => select("spec.x=1", {}), /field label not supported: spec\.x/);
  assert.throws(() => select("spec.size", {}), /invalid selector/);
  assert.throws(() => select("spec.size=\\x", {}), /escape/);
});

test("page tokens", () => {
  const token = { revision: 42, start: "ns/name" };
  assert.deepEqual(decodeContinue(encodeContinue(token)), token);
  assert.deepEqual(decodeContinue(encodeContinue({ revision: -1, start: "a" })), {
    revision: -1,
    start: "a",
  });
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        decodeContinue(text);
      } catch (error) {
        assert.match(String(error), /continue key is not valid/);
      }
    }),
  );
});

test("any text is a selector or a 400", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60 }), (text) => {
      for (const parse of [
        () => parseLabelSelector(text),
        () => parseFieldSelector(text, { origin: "builtin", selectableFields: [], namespaced: true }),
      ]) {
        try {
          parse();
        } catch (error) {
          assert.equal((error as { code?: unknown }).code, 400);
        }
      }
    }),
  );
});
