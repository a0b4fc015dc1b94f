import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import type { FieldError, ResourceDefinition } from "../resource.ts";
import { cloneJson } from "../schema/json-value.ts";
import { compileCrd } from "./compile-crd.ts";
import { widgetCrd } from "./widget.fixture.ts";

const context = { user: { name: "u", groups: [] }, now: 0, subresource: "" };

const [widgets, widgetsBeta] = compileCrd(widgetCrd());
if (!widgets || !widgetsBeta) throw new Error("no resources");

const widget = (spec: JsonObject, rest: JsonObject = {}): JsonObject => ({
  apiVersion: "example.io/v1",
  kind: "Widget",
  metadata: { name: "w" },
  spec,
  ...rest,
});

const texts = (errors: readonly FieldError[]): readonly string[] =>
  errors.map((e) => `${e.field}: ${e.message}`);

function create(resource: ResourceDefinition, object: JsonObject): readonly string[] {
  const copy = cloneJson(object);
  resource.prune(copy);
  resource.applyDefaults(copy);
  return texts(resource.validateCreate(copy, context));
}

function update(resource: ResourceDefinition, old: JsonObject, object: JsonObject): readonly string[] {
  const [before, after] = [cloneJson(old), cloneJson(object)];
  resource.applyDefaults(before);
  resource.applyDefaults(after);
  return texts(resource.validateUpdate(after, before, context));
}

/** A resource whose `spec` has the given schema. */
function specResource(spec: JsonObject): ResourceDefinition {
  const manifest = widgetCrd();
  const version = at(manifest, "spec", "versions", 0);
  if (!isObject(version)) throw new Error("no version");
  version["schema"] = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const [resource] = compileCrd(manifest);
  if (!resource) throw new Error("no resource");
  return resource;
}

describe("custom resources", () => {
  test("one resource per served version", () => {
    assert.deepEqual(
      [widgets.version, widgetsBeta.version, widgetsBeta.storageVersion],
      ["v1", "v1beta1", "v1"],
    );
    assert.deepEqual(widgets.selectableFields, ["spec.size"]);
    assert.deepEqual(
      widgets.subresources.map((s) => s.name),
      ["status", "scale"],
    );
    assert.deepEqual(widgets.subresources[1]?.scale, {
      specReplicas: "spec.replicas",
      statusReplicas: "status.replicas",
      selector: "status.selector",
    });
    assert.deepEqual(widgetsBeta.warnings({}), ["example.io/v1beta1 Widget is deprecated"]);
  });

  test("unknown fields are pruned and named, preserved ones stay", () => {
    const object = widget(
      { bogus: 1, free: { any: { x: 1 } }, ports: [{ name: "a", nope: 1 }], limit: "5%", blob: null },
      { extra: 1, metadata: { name: "w", strange: 1 } },
    );
    const removed = [...widgets.prune(object)].sort();
    assert.deepEqual(removed, ["extra", "metadata.strange", "spec.bogus", "spec.ports[0].nope"]);
    assert.deepEqual(object["spec"], {
      free: { any: { x: 1 } },
      ports: [{ name: "a" }],
      limit: "5%",
      blob: null,
    });
  });

  test("defaults fill what is absent or a refused null, at every depth", () => {
    const object = widget({ blob: null, replicas: null, tags: null, ports: [{ name: "a" }] });
    widgets.applyDefaults(object);
    assert.deepEqual(object["spec"], {
      blob: null,
      replicas: 1,
      size: "m",
      min: 0,
      max: 100,
      ports: [{ name: "a", protocol: "TCP" }],
    });
  });

  test("errors read as the API server's", () => {
    const cases: [JsonObject, string][] = [
      [
        { replicas: 11 },
        "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10",
      ],
      [{ size: "xl" }, 'spec.size: Unsupported value: "xl": supported values: "s", "m", "l"'],
      [
        { replicas: "x" },
        'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
      ],
      [{ blob: "x".repeat(1025) }, "spec.blob: Too long: may not be more than 1024 bytes"],
      [{ ports: [{ port: 1 }] }, "spec.ports[0].name: Required value"],
      [
        { limit: true },
        'spec.limit: Invalid value: "boolean": spec.limit in body must be of type integer,string: "boolean"',
      ],
      [{ tags: ["a", "a"] }, 'spec.tags[1]: Duplicate value: "a"'],
      [
        { ports: [{ name: "a" }, { name: "a", protocol: "TCP" }] },
        'spec.ports[1]: Duplicate value: {"name":"a","protocol":"TCP"}',
      ],
      [{ min: 5, max: 1 }, 'spec: Invalid value: "object": min must not exceed max'],
    ];
    for (const [spec, expected] of cases)
      assert.ok(
        create(widgets, widget(spec)).includes(expected),
        `${expected}\n${create(widgets, widget(spec)).join("\n")}`,
      );
  });

  test("rules are not run on an object whose shape is wrong, and that is said", () => {
    assert.deepEqual(create(widgets, widget({ min: 5, max: 1, replicas: "x" })), [
      'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
      '<nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    ]);
  });

  test("transition rules see the old value only on update", () => {
    assert.deepEqual(create(widgets, widget({ size: "l" })), []);
    assert.deepEqual(update(widgets, widget({ size: "l" }), widget({ size: "m" })), [
      'spec.size: Invalid value: "string": l is final',
    ]);
    assert.deepEqual(update(widgets, widget({ size: "m" }), widget({ size: "l" })), []);
  });

  test("an unchanged wrong value does not stop an update (ratcheting)", () => {
    const old = widget({ replicas: 99, tags: ["a", "a"], ports: [{ name: "p", port: "x" }] });
    assert.deepEqual(
      update(
        widgets,
        old,
        widget({ replicas: 99, tags: ["a", "a"], ports: [{ name: "q" }, { name: "p", port: "x" }] }),
      ),
      [],
    );
    assert.match(update(widgets, old, widget({ replicas: 98 })).join(), /less than or equal to 10/);
    const rule = specResource({
      type: "object",
      properties: {
        a: { type: "integer", "x-kubernetes-validations": [{ rule: "self < 5" }] },
        b: { type: "integer" },
      },
    });
    assert.deepEqual(update(rule, widget({ a: 9, b: 1 }), widget({ a: 9, b: 2 })), []);
    assert.deepEqual(update(rule, widget({ a: 9 }), widget({ a: 8 })), [
      'spec.a: Invalid value: "integer": failed rule: self < 5',
    ]);
  });

  test("status and the rest do not mix, the generation follows the desired state", () => {
    const old = widget({ replicas: 1 }, { metadata: { name: "w", generation: 1 }, status: { a: 1 } });
    const main = widget({ replicas: 2 }, { metadata: { name: "w", generation: 1 }, status: { a: 2 } });
    widgets.prepareForUpdate(main, old, context);
    assert.deepEqual(main["status"], { a: 1 });
    assert.equal(at(main, "metadata", "generation"), 2);
    const labelled = widget(
      { replicas: 1 },
      { metadata: { name: "w", labels: { a: "b" } }, status: { a: 1 } },
    );
    widgets.prepareForUpdate(labelled, old, context);
    assert.equal(at(labelled, "metadata", "generation"), 1);
    const status = widget(
      { replicas: 9 },
      { metadata: { name: "w", managedFields: [{}] }, status: { a: 3 } },
    );
    widgets.prepareForUpdate(status, old, { ...context, subresource: "status" });
    assert.deepEqual(
      status,
      widget(
        { replicas: 1 },
        { metadata: { name: "w", generation: 1, managedFields: [{}] }, status: { a: 3 } },
      ),
    );
    const fresh = widget({}, { status: { a: 1 } });
    widgets.prepareForCreate(fresh, context);
    assert.equal(fresh["status"], undefined);
    assert.equal(at(fresh, "metadata", "generation"), 1);
  });

  test("columns", () => {
    const object = widget(
      { size: "m", blob: "b" },
      { status: { conditions: [{ type: "Other" }, { type: "Ready", status: "True" }] } },
    );
    Object.assign(object["metadata"] as JsonObject, { creationTimestamp: "2026-01-01T00:00:00Z" });
    const now = Date.parse("2026-01-03T01:00:00Z");
    assert.deepEqual(
      widgets.columns.map((c) => [c.name, c.priority, c.cell(object, now)]),
      [
        ["Name", 0, "w"],
        ["Size", 0, "m"],
        ["Ready", 0, "True"],
        ["Blob", 1, "b"],
        ["Age", 0, "2d1h"],
      ],
    );
    assert.equal(widgets.columns[2]?.cell(widget({}), now), null);
    assert.deepEqual(
      widgetsBeta.columns.map((c) => c.name),
      ["Name", "Age"],
    );
  });

  test("integers of 64 bits are compared exactly", () => {
    const resource = specResource({
      type: "object",
      properties: { n: { type: "integer", format: "int64" }, m: { type: "integer", format: "int64" } },
      "x-kubernetes-validations": [{ rule: "self.n == self.m + 1" }],
    });
    assert.deepEqual(create(resource, widget({ n: 9223372036854775807n, m: 9223372036854775806n })), []);
    assert.equal(create(resource, widget({ n: 9223372036854775807n, m: 9223372036854775805n })).length, 1);
    assert.match(
      create(resource, widget({ n: 1, m: 9223372036854775807n })).join(),
      /integer overflow evaluating rule/,
    );
  });

  test("a stored value of another type fails the rule that meets it, and nothing else", () => {
    const resource = specResource({
      type: "object",
      properties: {
        n: {
          type: "integer",
          "x-kubernetes-validations": [{ rule: "self >= oldSelf" }, { rule: "self + 1 > 0" }],
        },
        s: { type: "string" },
      },
      "x-kubernetes-validations": [{ rule: "!has(self.s) || self.n + 1 > 0" }],
    });
    const found = update(resource, widget({ n: "x", s: "a" }), widget({ n: "x", s: "b" }));
    assert.equal(found.length, 2);
    for (const text of found)
      assert.match(text, /value does not have the type of its schema evaluating rule/);
    assert.match(
      update(resource, widget({ n: "x" }), widget({ n: 1 })).join(),
      /evaluating rule: self >= oldSelf/,
    );
  });

  test("integers fit their format", () => {
    const resource = specResource({
      type: "object",
      properties: { n: { type: "integer", format: "int32" }, m: { type: "integer" } },
    });
    assert.deepEqual(create(resource, widget({ n: 2147483647, m: 9223372036854775807n })), []);
    assert.deepEqual(create(resource, widget({ n: 2147483648 })), [
      "spec.n: Invalid value: 2147483648: Checked value must be of type integer with format int32 in spec.n",
    ]);
    assert.equal(create(resource, widget({ n: 99999999999999999999n })).length, 1);
    assert.equal(create(resource, widget({ n: -2147483649 })).length, 1);
    assert.match(
      create(resource, widget({ m: 9223372036854775808n })).join(),
      /^spec\.m: Invalid value: 9223372036854775808: .*type integer \(default format\) in spec\.m/,
    );
  });

  test("numbers fit their format", () => {
    const resource = specResource({
      type: "object",
      properties: {
        f: { type: "number", format: "float" },
        d: { type: "number", format: "double" },
        u: { type: "integer", format: "uint32" },
        l: { type: "integer", format: "int64" },
      },
    });
    assert.deepEqual(
      create(resource, widget({ f: 3.4e38, d: 1.7e308, u: 4294967295, l: -9223372036854775808n })),
      [],
    );
    assert.deepEqual(create(resource, widget({ f: -1e39 })), [
      "spec.f: Invalid value: -1e+39: Checked value must be of type number with format float in spec.f",
    ]);
    assert.equal(create(resource, widget({ f: 10n ** 39n })).length, 1);
    assert.equal(create(resource, widget({ u: -1 })).length, 1);
    assert.equal(create(resource, widget({ u: 4294967296 })).length, 1);
    assert.equal(create(resource, widget({ l: 9223372036854775808n })).length, 1);
  });

  test("rules: message expression, field path, reason, optional old value", () => {
    const resource = specResource({
      type: "object",
      properties: { n: { type: "integer" }, name: { type: "string" }, "a-b": { type: "string" } },
      "x-kubernetes-validations": [
        {
          rule: "!has(self.n) || self.n < 3",
          messageExpression: "'n is ' + string(self.n)",
          fieldPath: ".n",
          reason: "FieldValueForbidden",
        },
        {
          rule: "!oldSelf.hasValue() || oldSelf.value().?name == self.?name",
          optionalOldSelf: true,
          message: "name is fixed",
        },
        { rule: "!has(self.a__dash__b) || self.a__dash__b.startsWith('x')", message: "must start with x" },
      ],
    });
    assert.deepEqual(create(resource, widget({ n: 5, name: "a", "a-b": "y" })), [
      "spec.n: Forbidden: n is 5",
      'spec: Invalid value: "object": must start with x',
    ]);
    assert.deepEqual(create(resource, widget({ name: "a" })), []);
    assert.deepEqual(update(resource, widget({ name: "a" }), widget({ name: "b" })), [
      'spec: Invalid value: "object": name is fixed',
    ]);
  });

  test("a rule is named by where it failed, and when it costs too much", () => {
    const resource = specResource({
      type: "object",
      properties: {
        map: {
          type: "object",
          additionalProperties: { type: "string", "x-kubernetes-validations": [{ rule: "self != 'bad'" }] },
        },
        large: {
          type: "array",
          maxItems: 725,
          items: { type: "integer" },
          "x-kubernetes-validations": [{ rule: "self.all(x, self.all(y, x == y))" }],
        },
      },
    });
    assert.deepEqual(create(resource, widget({ map: { "a.b": "bad" } })), [
      "spec.map[a.b]: Invalid value: \"string\": failed rule: self != 'bad'",
    ]);
    assert.deepEqual(create(resource, widget({ large: Array.from({ length: 725 }, () => 1) })), [
      'spec.large: Invalid value: "array": call cost exceeds limit for rule: self.all(x, self.all(y, x == y))',
      '<nil>: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run',
    ]);
  });

  test("junctors, nullable and formats", () => {
    const resource = specResource({
      type: "object",
      properties: {
        when: { type: "string", format: "date-time" },
        a: { type: "integer", nullable: true },
        b: { type: "integer" },
      },
      oneOf: [{ required: ["a"] }, { required: ["b"] }],
      not: { required: ["when", "b"] },
    });
    assert.deepEqual(create(resource, widget({ a: null })), []);
    assert.deepEqual(create(resource, widget({ a: 1, b: 1 })), [
      '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives',
    ]);
    assert.match(create(resource, widget({})).join("\n"), /Found none valid[\s\S]*Required value/);
    assert.match(
      create(resource, widget({ a: 1, when: "x" })).join(),
      /spec\.when: Invalid value: "x": spec\.when in body must be of type date-time: "x"/,
    );
    assert.match(
      create(resource, widget({ b: 1, when: "2026-01-01T00:00:00Z" })).join(),
      /must not validate the schema \(not\)/,
    );
  });

  test("embedded resources name themselves", () => {
    const resource = specResource({
      type: "object",
      properties: {
        t: {
          type: "object",
          "x-kubernetes-embedded-resource": true,
          "x-kubernetes-preserve-unknown-fields": true,
        },
      },
    });
    assert.deepEqual(create(resource, widget({ t: { metadata: { name: "x" } } })), [
      "spec.t.apiVersion: Required value: must not be empty",
      "spec.t.kind: Required value: must not be empty",
    ]);
    const object = widget({ t: { apiVersion: "v1", kind: "A", metadata: { name: "x", nope: 1 }, any: 1 } });
    assert.deepEqual(resource.prune(object), ["spec.t.metadata.nope"]);
  });
});
