/**
 * Hostile and random input for everything here that reads what a user sends: no crash, no hang, only the
 * errors each function documents.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { CodedError, isObject, type JsonObject } from "@kontinuum/std";
import {
  CelBudgetError,
  CelCompileError,
  CelError,
  compileCel,
  fromJson,
  Meter,
  toJson,
  types,
} from "../cel/index.ts";
import { compileCrd } from "../crd/compile-crd.ts";
import { compileJsonPath, JsonPathError, simplePath } from "../crd/json-path.ts";
import { validateCrd } from "../crd/validate-crd.ts";
import { widgetCrd } from "../crd/widget.fixture.ts";
import { builtinResources } from "../kinds/index.ts";
import {
  applyJsonPatch,
  applyMergePatch,
  applyStrategicMergePatch,
  serverSideApply,
  updateManagedFields,
} from "../patch/index.ts";
import type { FieldError } from "../resource.ts";
import { compileDefaults } from "./default.ts";
import { cloneJson } from "./json-value.ts";
import { compileUniqueness } from "./list-type.ts";
import { compilePattern } from "./pattern.ts";
import { parseSchema } from "./schema-node.ts";
import { compileValidator, validateValue } from "./validate.ts";

const runs = { numRuns: 150, seed: 16 };

const keys = fc.oneof(
  fc.constantFrom(
    "spec",
    "metadata",
    "name",
    "containers",
    "ports",
    "tags",
    "$patch",
    "$retainKeys",
    "__proto__",
    "constructor",
    "a",
    "b",
  ),
  fc.string({ maxLength: 6 }),
);
const scalars = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.string({ maxLength: 8 }),
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalars,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(keys, tie("tree"), { maxKeys: 5, noNullPrototype: true }),
  ),
}));
const objects: fc.Arbitrary<JsonObject> = fc.dictionary(keys, tree, { maxKeys: 5, noNullPrototype: true });

/** Runs `work`; errors other than the expected classes are failures. */
function survives(work: () => unknown, ...expected: (abstract new (...args: never[]) => Error)[]): unknown {
  try {
    return work();
  } catch (error) {
    if (expected.some((kind) => error instanceof kind)) return undefined;
    throw error;
  }
}

async function survivesAsync(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
  }
}

const deployments = builtinResources().find((resource) => resource.kind === "Deployment");
const [widgets] = compileCrd(widgetCrd());
if (!deployments || !widgets) throw new Error("no resources");
const { type } = deployments;

describe("random input", () => {
  test("patches: inputs stay as they are, failures are coded, prototypes stay clean", () => {
    const operation = fc.oneof(
      tree,
      fc.record(
        {
          op: fc.constantFrom("add", "remove", "replace", "move", "copy", "test", "frob"),
          path: fc.oneof(
            fc.constantFrom("", "/", "/a", "/a/0", "/a/-", "/__proto__/x", "/spec/name"),
            fc.string({ maxLength: 8 }),
          ),
          from: fc.constantFrom("", "/a", "/spec"),
          value: tree,
        },
        { noNullPrototype: true },
      ),
    );
    fc.assert(
      fc.property(objects, tree, fc.array(operation, { maxLength: 6 }), (object, patch, operations) => {
        const before = cloneJson(object);
        const opsBefore = cloneJson(operations);
        survives(() => applyJsonPatch(object, operations), CodedError);
        survives(() => applyMergePatch(object, patch), CodedError);
        survives(() => applyStrategicMergePatch(type, object, patch), CodedError);
        assert.deepEqual(object, before);
        assert.deepEqual(operations, opsBefore);
        assert.equal(Object.hasOwn(Object.prototype, "x"), false);
      }),
      runs,
    );
  });

  test("a merge patch made from two documents turns one into the other", () => {
    const diff = (from: JsonObject, to: JsonObject): JsonObject => {
      const patch: JsonObject = {};
      for (const key of Object.keys(from)) if (!Object.hasOwn(to, key)) patch[key] = null;
      for (const [key, value] of Object.entries(to)) {
        const old = from[key];
        patch[key] = isObject(old) && isObject(value) ? diff(old, value) : value;
      }
      return patch;
    };
    const plain = fc.dictionary(
      fc.constantFrom("a", "b", "c"),
      fc.oneof(
        fc.integer(),
        fc.dictionary(fc.constantFrom("x", "y"), fc.integer(), { noNullPrototype: true }),
      ),
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(plain, plain, (from, to) => assert.deepEqual(applyMergePatch(from, diff(from, to)), to)),
      runs,
    );
  });

  test("apply and managed fields", async () => {
    const step = fc.oneof(
      fc.constantFrom("f:spec", "f:a", 'k:{"name":"x"}', 'v:"x"', "i:0", ".", "x:", "k:[", "v:"),
      fc.string({ maxLength: 5 }),
    );
    const fields = fc.dictionary(
      step,
      fc.oneof(fc.constant({}), fc.dictionary(step, fc.constant({}), { noNullPrototype: true })),
      { noNullPrototype: true },
    );
    const entry = fc.oneof(
      tree,
      fc.record({
        manager: fc.string({ maxLength: 4 }),
        operation: fc.constantFrom("Apply", "Update", "Nope"),
        apiVersion: fc.constantFrom("apps/v1", "example.io/v1", "", "x"),
        fieldsType: fc.constantFrom("FieldsV1", ""),
        fieldsV1: fields,
      }),
    );
    await fc.assert(
      fc.asyncProperty(
        objects,
        objects,
        fc.array(entry, { maxLength: 3 }),
        async (live, config, managedFields) => {
          for (const resource of [deployments, widgets]) {
            const apiVersion = `${resource.group}/${resource.version}`;
            const stored = {
              ...live,
              apiVersion,
              kind: resource.kind,
              metadata: { name: "x", managedFields },
            };
            const request = { resource, manager: "m", subresource: "", now: "2026-01-01T00:00:00Z" };
            await survivesAsync(() =>
              serverSideApply({ ...request, live: stored, applied: { ...config, apiVersion }, force: true }),
            );
            await survivesAsync(() =>
              updateManagedFields({ ...request, before: stored, after: config, operation: "Update" }),
            );
          }
        },
      ),
      runs,
    );
  });

  test("paths", () => {
    const pieces = fc.array(
      fc.constantFrom(
        ".",
        "a",
        "[",
        "]",
        "*",
        "..",
        "?(",
        "@",
        "==",
        '"x"',
        "'",
        ")",
        "0",
        ":",
        "-1",
        ",",
        " ",
        "\\",
        "{",
        "}",
        "$",
      ),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          pieces.map((list) => list.join("")),
          fc.string(),
        ),
        tree,
        (text, value) => {
          survives(() => compileJsonPath(text)(value), JsonPathError);
          simplePath(text);
        },
      ),
      { ...runs, numRuns: 500 },
    );
  });

  test("expressions", () => {
    const pieces = fc.array(
      fc.constantFrom(
        "a",
        "b",
        "1",
        "1u",
        "2.5",
        "'s'",
        "b'x'",
        "true",
        "null",
        "+",
        "-",
        "*",
        "/",
        "%",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "?",
        ":",
        "&&",
        "||",
        "!",
        "==",
        "<",
        "in",
        "has(",
        "all(x, x)",
        "map(x, x)",
        "size()",
        "matches('a')",
        "optMap(v, v)",
        "split('')",
        "format([a])",
        "duration('1s')",
        "type(",
        "\n",
        "//",
        "'''",
      ),
      { maxLength: 16 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          pieces.map((list) => list.join(" ")),
          pieces.map((list) => list.join("")),
          fc.string(),
        ),
        tree,
        (source, value) => {
          survives(
            () => {
              const program = compileCel(source, { variables: { a: types.dyn, b: types.dyn } });
              return toJson(
                program.evaluate({ a: fromJson(value), b: fromJson([value]) }, new Meter(100_000)),
              );
            },
            CelCompileError,
            CelError,
            CelBudgetError,
          );
        },
      ),
      { ...runs, numRuns: 1200 },
    );
  });

  test("patterns", () => {
    const pieces = fc.array(
      fc.constantFrom(
        "a",
        "b",
        "*",
        "+",
        "?",
        "(",
        ")",
        "[",
        "]",
        "{2,3}",
        "{1000}",
        "|",
        "^",
        "$",
        "\\",
        "\\d",
        "\\p{L}",
        "(?i)",
        "(?=",
        "\\1",
        ".",
      ),
      { maxLength: 10 },
    );
    fc.assert(
      fc.property(
        pieces.map((list) => list.join("")),
        fc.string({ maxLength: 20 }),
        (source, text) => {
          const pattern = compilePattern(source);
          if ("error" in pattern) return;
          assert.equal(
            pattern.meteredTest(text, () => undefined),
            pattern.test(text),
          );
        },
      ),
      { ...runs, numRuns: 500 },
    );
  });

  test("definitions: any schema is judged, and what is accepted compiles and validates anything", () => {
    const word = fc.constantFrom(
      "type",
      "properties",
      "items",
      "additionalProperties",
      "default",
      "enum",
      "pattern",
      "format",
      "required",
      "anyOf",
      "oneOf",
      "not",
      "nullable",
      "maxLength",
      "x-kubernetes-list-type",
      "x-kubernetes-list-map-keys",
      "x-kubernetes-preserve-unknown-fields",
      "x-kubernetes-int-or-string",
      "x-kubernetes-embedded-resource",
      "x-kubernetes-validations",
    );
    const leaf = fc.oneof(
      fc.constantFrom("object", "array", "string", "integer", "number", "boolean", "set", "map", "a", ""),
      fc.boolean(),
      fc.integer(),
      fc.constant([{ rule: "self == oldSelf" }]),
      fc.constant([{ rule: "has(self.a)" }]),
      fc.constant(["a"]),
      fc.constant(null),
    );
    const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
      schema: fc.oneof(
        { depthSize: "small" },
        fc.record({ type: fc.constantFrom("object", "string", "integer", "array") }),
        fc.dictionary(
          word,
          fc.oneof(
            leaf,
            tie("schema"),
            fc.dictionary(fc.constantFrom("a", "b", "metadata", "__proto__"), tie("schema"), {
              noNullPrototype: true,
            }),
            fc.array(tie("schema"), { maxLength: 2 }),
          ),
          { maxKeys: 5, noNullPrototype: true },
        ),
        fc.record({
          type: fc.constant("object"),
          properties: fc.dictionary(fc.constantFrom("a", "b"), tie("schema"), { noNullPrototype: true }),
        }),
      ),
    }));
    let accepted = 0;
    fc.assert(
      fc.property(schema, objects, objects, (spec, object, old) => {
        const manifest = widgetCrd();
        const versions = isObject(manifest["spec"]) ? manifest["spec"]["versions"] : undefined;
        const version: unknown = Array.isArray(versions) ? versions[0] : undefined;
        if (!isObject(version)) return;
        delete version["selectableFields"];
        version["schema"] = { openAPIV3Schema: { type: "object", properties: { spec } } };
        if (validateCrd(manifest).length > 0) {
          survives(() => compileCrd(manifest), CodedError);
          return;
        }
        accepted++;
        for (const resource of compileCrd(manifest)) {
          const context = { user: { name: "u", groups: [] }, now: 0, subresource: "" };
          const [made, before] = [
            { ...cloneJson(object), spec: cloneJson(object) },
            { ...cloneJson(old), spec: cloneJson(old) },
          ];
          resource.prune(made);
          resource.applyDefaults(made);
          resource.validateCreate(made, context);
          resource.validateUpdate(made, before, context);
          resource.openapi();
        }
      }),
      runs,
    );
    assert.ok(accepted > 10, `${accepted} accepted`);
  });
});

describe("hostile input", () => {
  test("deep and wide schemas end early", () => {
    let deep: JsonObject = {};
    for (let i = 0; i < 5000; i++) deep = { items: deep };
    const errors: FieldError[] = [];
    assert.equal(parseSchema(deep, "s", errors)?.items === undefined, false);
    assert.match(errors[0]?.message ?? "", /schema is too large/);
    const wide = { anyOf: Array.from({ length: 200_000 }, () => ({})) };
    const more: FieldError[] = [];
    parseSchema(wide, "s", more);
    assert.equal(more.length, 1);
  });

  test("defaults do not multiply into all of memory", () => {
    const large = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i]));
    const item = {
      type: "object",
      properties: { d: { type: "object", "x-kubernetes-preserve-unknown-fields": true, default: large } },
    };
    const schema = parseSchema({ type: "array", items: item }, "s", []);
    assert.ok(schema);
    const list = Array.from({ length: 100_000 }, (): JsonObject => ({}));
    compileDefaults(schema)(list);
    assert.equal(list.filter((value) => value["d"] !== undefined).length, 999);
  });

  test("huge enumerations and many duplicates are reported in bounds", () => {
    const values = Array.from({ length: 200_000 }, (_, i) => `v${i}`);
    const raw = { type: "array", "x-kubernetes-list-type": "set", items: { type: "string", enum: values } };
    const schema = parseSchema(raw, "s", []);
    assert.ok(schema);
    const errors = validateValue(
      compileValidator(schema),
      Array.from({ length: 1000 }, () => "x"),
    );
    assert.ok(errors.length <= 500);
    assert.ok((errors[0]?.message.length ?? 0) < 2000);
    const duplicates: FieldError[] = [];
    compileUniqueness(schema)?.(
      Array.from({ length: 100_000 }, () => "x"),
      "",
      duplicates,
    );
    assert.equal(duplicates.length, 500);
  });

  test("a hostile pattern over many values is bounded", () => {
    const manifest = widgetCrd();
    const versions = isObject(manifest["spec"]) ? manifest["spec"]["versions"] : undefined;
    const version: unknown = Array.isArray(versions) ? versions[0] : undefined;
    assert.ok(isObject(version));
    delete version["selectableFields"];
    const items = { type: "string", pattern: "(a|b)*a(a|b){200}$" };
    version["schema"] = {
      openAPIV3Schema: { type: "object", properties: { spec: { type: "array", items } } },
    };
    const [resource] = compileCrd(manifest);
    let text = "";
    for (let i = 0, x = 1; i < 1000; i++) {
      x = (x * 1_103_515_245 + 12_345) % 2_147_483_648;
      text += x > 1_073_741_824 ? "a" : "b";
    }
    const spec = Array.from({ length: 2000 }, () => `${text}c`);
    const before = process.cpuUsage();
    resource?.validateCreate({ spec }, { user: { name: "u", groups: [] }, now: 0, subresource: "" });
    const used = process.cpuUsage(before);
    assert.ok(used.user + used.system < 1_000_000, `${(used.user + used.system) / 1000} ms`);
  });
});
