import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { validateCrd } from "./validate-crd.ts";
import { widgetCrd } from "./widget.fixture.ts";

const root = "spec.versions[0].schema.openAPIV3Schema";
const specPath = `${root}.properties[spec]`;

const object = (value: unknown): JsonObject => {
  assert.ok(isObject(value));
  return value;
};

function problems(change: (crd: JsonObject) => void, old?: JsonObject): readonly string[] {
  const crd = widgetCrd();
  change(crd);
  return validateCrd(crd, old).map((e) => `${e.field}: ${e.message}`);
}

/** Problems of a definition whose spec has this schema. */
function specProblems(schema: JsonObject): readonly string[] {
  return problems((crd) => {
    const version = object(at(crd, "spec", "versions", 0));
    version["schema"] = { openAPIV3Schema: { type: "object", properties: { spec: schema } } };
    delete version["selectableFields"];
  });
}

const withRule = (rule: JsonObject, extra: JsonObject = {}): JsonObject => ({
  type: "object",
  properties: { a: { type: "string" }, n: { type: "integer" }, ...extra },
  "x-kubernetes-validations": [rule],
});

describe("definitions", () => {
  test("a good one is accepted", () =>
    assert.deepEqual(
      problems(() => undefined),
      [],
    ));

  const structural: [string, JsonObject, RegExp][] = [
    [
      "untyped property",
      { type: "object", properties: { a: {} } },
      /properties\[spec\]\.properties\[a\]\.type: Required value: must not be empty for specified object fields/,
    ],
    [
      "untyped items",
      { type: "array", items: {} },
      /items\.type: Required value: must not be empty for specified array items/,
    ],
    ["$ref", { type: "object", $ref: "#/x" }, /\.\$ref: Forbidden: \$ref is not supported/],
    ["id", { type: "object", id: "x" }, /\.id: Forbidden/],
    [
      "type in a junctor",
      {
        type: "object",
        properties: { a: { type: "string" } },
        anyOf: [{ properties: { a: { type: "string" } } }],
      },
      /anyOf\[0\]\.properties\[a\]\.type: Forbidden: must be empty to be structural/,
    ],
    [
      "undeclared in a junctor",
      { type: "object", oneOf: [{ properties: { b: { maxLength: 1 } } }] },
      /properties\[spec\]\.properties\[b\]: Required value: because it is defined in .*oneOf\[0\]\.properties\[b\]/,
    ],
    [
      "default in not",
      { type: "object", properties: { a: { type: "string" } }, not: { properties: { a: { default: "x" } } } },
      /not\.properties\[a\]\.default: Forbidden: must be undefined/,
    ],
    [
      "both kinds of properties",
      { type: "object", properties: {}, additionalProperties: { type: "string" }, description: "x" },
      /^$/,
    ],
    [
      "embedded without content",
      { type: "object", "x-kubernetes-embedded-resource": true },
      /\.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true/,
    ],
    [
      "map list without keys",
      { type: "array", items: { type: "object" }, "x-kubernetes-list-type": "map" },
      /x-kubernetes-list-map-keys: Required value/,
    ],
    [
      "optional map key",
      {
        type: "array",
        items: { type: "object", properties: { a: { type: "string" } } },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
      },
      /properties\[a\]\.default: Required value: this property is in x-kubernetes-list-map-keys/,
    ],
    [
      "set of granular maps",
      { type: "array", items: { type: "object" }, "x-kubernetes-list-type": "set" },
      /x-kubernetes-map-type: Invalid value: "": must be atomic as item/,
    ],
    [
      "uniqueItems",
      { type: "array", items: { type: "string" }, uniqueItems: true },
      /uniqueItems: Forbidden/,
    ],
    [
      "bad pattern",
      { type: "string", pattern: "(?=x)" },
      /\.pattern: Invalid value: "\(\?=x\)": must be a valid regular expression, but isn't/,
    ],
    [
      "default of the wrong type",
      { type: "object", properties: { a: { type: "integer", default: "x" } } },
      /properties\[a\]\.default: Invalid value: "string"/,
    ],
    [
      "default with unknown fields",
      { type: "object", properties: { a: { type: "object", default: { b: 1 } } } },
      /\.default: Invalid value: \{"b":1\}: must not have unknown fields/,
    ],
    [
      "null default",
      { type: "object", properties: { a: { type: "string", default: null } } },
      /must not be null unless nullable/,
    ],
    [
      "wrong member type",
      { type: "string", maxLength: "x" },
      /maxLength: Invalid value: "x": must be an integer/,
    ],
    ["unknown type", { type: "text" }, /\.type: Unsupported value: "text": supported values: "array"/],
  ];
  for (const [name, schema, expected] of structural) {
    test(`structure: ${name}`, () => assert.match(specProblems(schema).join("\n"), expected));
  }

  const rules: [string, JsonObject, RegExp][] = [
    [
      "undefined field",
      { rule: "self.nope > 1" },
      /x-kubernetes-validations\[0\]\.rule: Invalid value: "self\.nope > 1": compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n \| self\.nope > 1\n \| \.\.\.\.\^/,
    ],
    ["syntax", { rule: "self.a ==" }, /compilation failed: ERROR: <input>:1:10: Syntax error/],
    ["not a bool", { rule: "self.a" }, /must evaluate to bool/],
    ["empty", { rule: " " }, /rule: Required value: rule is not specified/],
    ["overload", { rule: "self.a > 1" }, /found no matching overload for '_>_' applied to '\(string, int\)'/],
    [
      "message expression",
      { rule: "true", messageExpression: "1" },
      /messageExpression: Invalid value: "1": .*must evaluate to string/,
    ],
    ["reason", { rule: "true", reason: "Nope" }, /reason: Unsupported value: "Nope"/],
    ["field path", { rule: "true", fieldPath: ".zzz" }, /fieldPath: Invalid value: ".zzz"/],
    [
      "line break",
      { rule: "true &&\n true" },
      /message: Required value: message must be specified if rule contains line breaks/,
    ],
    ["optionalOldSelf unused", { rule: "true", optionalOldSelf: true }, /optionalOldSelf/],
    ["bad pattern literal", { rule: "self.a.matches('(?=x)')" }, /invalid matches argument/],
  ];
  for (const [name, rule, expected] of rules) {
    test(`rule: ${name}`, () => assert.match(specProblems(withRule(rule)).join("\n"), expected));
  }

  test("rules that may cost too much are refused, bounds make them acceptable", () => {
    const nested = (bounds: JsonObject): JsonObject => ({
      type: "object",
      properties: {
        l: {
          type: "array",
          ...bounds,
          items: { type: "string", ...(bounds["maxItems"] ? { maxLength: 64 } : {}) },
        },
      },
      "x-kubernetes-validations": [{ rule: "self.l.all(x, self.l.exists_one(y, x == y))" }],
    });
    assert.match(
      specProblems(nested({})).join(),
      /rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x \(try simplifying/,
    );
    assert.deepEqual(specProblems(nested({ maxItems: 100 })), []);
    const inItems = {
      type: "array",
      items: {
        type: "object",
        properties: { s: { type: "string" } },
        "x-kubernetes-validations": [{ rule: "self.s.contains('x')" }],
      },
    };
    assert.match(specProblems(inItems).join(), /estimated rule cost exceeds budget/);
  });

  test("the sum over a version is bounded", () => {
    const heavy = {
      type: "array",
      maxItems: 1000,
      items: { type: "string", maxLength: 10 },
      "x-kubernetes-validations": [{ rule: "self.all(x, self.exists(y, x == y))" }],
    };
    const properties = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`p${i}`, heavy]));
    assert.match(
      specProblems({ type: "object", properties }).join("\n"),
      /x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget/,
    );
  });

  test("oldSelf where nothing corresponds is refused", () => {
    const schema = {
      type: "array",
      items: { type: "integer", "x-kubernetes-validations": [{ rule: "self >= oldSelf" }] },
    };
    assert.match(
      specProblems(schema).join(),
      /oldSelf cannot be used on the uncorrelatable portion of the schema within/,
    );
  });

  test("names, scope, versions", () => {
    const spec = (crd: JsonObject): JsonObject => object(crd["spec"]);
    const names = (crd: JsonObject): JsonObject => object(spec(crd)["names"]);
    const cases: [(crd: JsonObject) => void, RegExp][] = [
      [
        (c) => (spec(c)["scope"] = "Both"),
        /spec\.scope: Unsupported value: "Both": supported values: "Cluster", "Namespaced"/,
      ],
      [(c) => (names(c)["kind"] = "Bad_Kind"), /spec\.names\.kind: Invalid value/],
      [(c) => (names(c)["listKind"] = "Widget"), /kind and listKind may not be the same/],
      [
        (c) => (object(c["metadata"])["name"] = "x"),
        /metadata\.name: Invalid value: "x": must be spec\.names\.plural/,
      ],
      [(c) => (spec(c)["group"] = "nodots"), /should be a domain with at least one dot/],
      [(c) => (spec(c)["preserveUnknownFields"] = true), /spec\.preserveUnknownFields: Invalid value: true/],
      [
        (c) => (object(at(spec(c), "versions", 1))["storage"] = true),
        /must have exactly one version marked as storage version/,
      ],
      [(c) => (object(at(spec(c), "versions", 1))["name"] = "v1"), /must contain unique version names/],
      [
        (c) => delete object(at(spec(c), "versions", 1))["schema"],
        /spec\.versions\[1\]\.schema\.openAPIV3Schema: Required value: schemas are required/,
      ],
      [(c) => (spec(c)["conversion"] = { strategy: "Webhook" }), /spec\.conversion\.webhook: Required value/],
      [
        (c) => (spec(c)["conversion"] = { strategy: "Magic" }),
        /Unsupported value: "Magic": supported values: "None", "Webhook"/,
      ],
      [
        (c) =>
          (spec(c)["conversion"] = {
            strategy: "Webhook",
            webhook: { clientConfig: { url: "http://x" }, conversionReviewVersions: ["v9"] },
          }),
        /'https' is the only allowed URL scheme[\s\S]*must include at least one of v1/,
      ],
      [
        (c) => (object(at(spec(c), "versions", 0))["selectableFields"] = [{ jsonPath: ".metadata.name" }]),
        /must not point to fields in metadata/,
      ],
      [
        (c) => (object(at(spec(c), "versions", 0))["selectableFields"] = [{ jsonPath: ".spec.tags" }]),
        /must point to a field of type string, boolean or integer/,
      ],
      [
        (c) =>
          (object(at(spec(c), "versions", 0))["subresources"] = {
            scale: { specReplicasPath: ".status.x", statusReplicasPath: ".status.x" },
          }),
        /specReplicasPath: Invalid value: ".status.x": should be a json path under .spec/,
      ],
      [
        (c) =>
          (object(at(spec(c), "versions", 0))["additionalPrinterColumns"] = [
            { name: "a", type: "text", jsonPath: "nope[" },
          ]),
        /type: Invalid value: "text"[\s\S]*jsonPath: Invalid value: "nope\["/,
      ],
    ];
    for (const [change, expected] of cases) assert.match(problems(change).join("\n"), expected);
  });

  test("stored versions stay, established names are fixed", () => {
    const old = widgetCrd();
    old["status"] = {
      storedVersions: ["v1", "v1beta1"],
      conditions: [{ type: "Established", status: "True" }],
    };
    const gone = problems((c) => (object(c["spec"])["versions"] = [at(c, "spec", "versions", 0)]), old);
    assert.match(
      gone.join(),
      /^status\.storedVersions\[1\]: Invalid value: "v1beta1": missing from spec\.versions; v1beta1 was previously a storage version/,
    );
    assert.match(
      problems((c) => (object(c["spec"])["scope"] = "Cluster"), old).join(),
      /spec\.scope: Invalid value: "Cluster": field is immutable/,
    );
  });

  test("what public definitions do is accepted", () => {
    // A type beside int-or-string, as snapshot.storage.k8s.io has it.
    assert.deepEqual(
      specProblems({
        type: "object",
        properties: {
          size: {
            type: "string",
            "x-kubernetes-int-or-string": true,
            anyOf: [{ type: "integer" }, { type: "string" }],
          },
        },
      }),
      [],
    );
    // Empty brackets in a column's path, as APISIX has it.
    const columns = [{ name: "Hosts", type: "string", jsonPath: ".spec.http[].match.hosts" }];
    assert.deepEqual(
      problems((crd) => {
        object(at(crd, "spec", "versions", 0))["additionalPrinterColumns"] = columns;
      }),
      [],
    );
    // A webhook that speaks the first form of reviews only, as MetalLB has it.
    const conversion = {
      strategy: "Webhook",
      webhook: {
        conversionReviewVersions: ["v1beta1", "v1beta2"],
        clientConfig: { service: { namespace: "a", name: "b", path: "/convert" } },
      },
    };
    assert.deepEqual(
      problems((crd) => (object(crd["spec"])["conversion"] = conversion)),
      [],
    );
  });

  test("rules of public definitions are priced as upstream prices them", () => {
    const text = (rule: string): JsonObject => ({
      type: "string",
      maxLength: 253,
      "x-kubernetes-validations": [{ rule }],
    });
    // Gateway API: reserved words as field names, and the parts of a bounded text.
    const reference = {
      type: "object",
      properties: { namespace: { type: "string" }, kind: { type: "string" } },
    };
    const rules = ["has(r.namespace)", "has(r.__namespace__)", "r.namespace == ''"];
    assert.deepEqual(
      specProblems({
        type: "object",
        properties: {
          refs: {
            type: "array",
            maxItems: 16,
            items: reference,
            "x-kubernetes-validations": rules.map((rule) => ({ rule: `self.all(r, !(${rule}))` })),
          },
          addresses: {
            type: "array",
            maxItems: 16,
            items: text("!format.dns1123Subdomain().validate(self.split('/')[0]).hasValue()"),
          },
        },
      }),
      [],
    );
    const unbounded = {
      ...text("!format.dns1123Subdomain().validate(self.split('/')[0]).hasValue()"),
      maxLength: undefined,
    };
    assert.match(
      specProblems({ type: "object", properties: { a: unbounded } }).join(),
      /estimated rule cost exceeds budget/,
    );
  });

  test("protected groups need an approval", () => {
    const change =
      (annotation: string | undefined) =>
      (crd: JsonObject): void => {
        object(crd["spec"])["group"] = "x.k8s.io";
        crd["metadata"] = {
          name: "widgets.x.k8s.io",
          ...(annotation ? { annotations: { "api-approved.kubernetes.io": annotation } } : {}),
        };
      };
    assert.match(problems(change(undefined)).join(), /protected groups must have approval annotation/);
    assert.deepEqual(problems(change("https://github.com/kubernetes/kubernetes/pull/1")), []);
    assert.deepEqual(problems(change("unapproved, experimental")), []);
  });

  test("patterns and rules of a version are bounded together", () => {
    const pattern = (i: number): JsonObject => ({ type: "string", pattern: `(${i}|a){1000}` });
    const patterns = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}`, pattern(i)]));
    assert.match(
      specProblems({ type: "object", properties: patterns }).join(),
      /the patterns of a version are too large/,
    );
    const rule = (i: number): JsonObject => ({
      type: "integer",
      "x-kubernetes-validations": [{ rule: `self != ${i} || '${"x".repeat(90_000)}' != ''` }],
    });
    const rules = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`r${i}`, rule(i)]));
    assert.match(
      specProblems({ type: "object", properties: rules }).join(),
      /the rules of a version are too long/,
    );
  });

  test("schemas too deep or too large are refused before anything compiles", () => {
    let deep: JsonObject = { type: "string" };
    for (let i = 0; i < 150; i++) deep = { type: "object", properties: { a: deep } };
    assert.match(specProblems(deep).join(), /schema is too large/);
    assert.ok(specPath.startsWith(root));
  });
});
