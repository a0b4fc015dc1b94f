import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { humanDuration } from "./human-duration.ts";
import { compileJsonPath, JsonPathError, simplePath } from "./json-path.ts";

const object = {
  metadata: { name: "x", annotations: { "app.kubernetes.io/name": "web", "a-b": "1" } },
  spec: {
    ports: [
      { name: "a", port: 80 },
      { name: "b", port: 443 },
    ],
    big: 9007199254740993n,
  },
  status: {
    conditions: [
      { type: "Other", status: "False" },
      { type: "Ready", status: "True", n: 2 },
    ],
  },
};

describe("JSONPath", () => {
  const cases: [string, readonly unknown[]][] = [
    [".metadata.name", ["x"]],
    ["{.metadata.name}", ["x"]],
    ["$.metadata.name", ["x"]],
    [".metadata.annotations.app\\.kubernetes\\.io/name", ["web"]],
    [".metadata.annotations['app.kubernetes.io/name']", ["web"]],
    [".metadata.annotations['app\\.kubernetes\\.io/name']", ["web"]],
    ['.metadata.annotations["a-b"]', ["1"]],
    [".metadata.annotations.a-b", ["1"]],
    [".spec.ports[0].port", [80]],
    [".spec.ports[-1].port", [443]],
    [".spec.ports[].port", [80]],
    [".spec.ports[*].name", ["a", "b"]],
    [".spec.ports[0:1].name", ["a"]],
    [".spec.ports[0,1].name", ["a", "b"]],
    [".spec.ports[?(@.name=='b')].port", [443]],
    ['.status.conditions[?(@.type=="Ready")].status', ["True"]],
    ['.status.conditions[?( @.type == "Ready" )].status', ["True"]],
    [".status.conditions[?(@.n>1)].type", ["Ready"]],
    [".status.conditions[?(@.n)].type", ["Ready"]],
    [".status.conditions[?(@.type!='Ready')].type", ["Other"]],
    ["..port", [80, 443]],
    [".spec.big", [9007199254740993n]],
    [".nope.deeper", []],
    [".metadata.name.deeper", []],
    [".spec.ports[9]", []],
  ];
  for (const [path, expected] of cases) {
    test(path, () => assert.deepEqual(compileJsonPath(path)(object), expected));
  }

  for (const path of [
    "metadata",
    ".a[",
    ".a[x]",
    ".a]",
    ".a[?(@.b=]",
    ".a['b]",
    ".a[1:2:0]",
    "x".repeat(5000),
  ]) {
    test(`refuses ${path.slice(0, 20)}`, () => assert.throws(() => compileJsonPath(path), JsonPathError));
  }

  test("simple paths", () => {
    assert.deepEqual(simplePath(".spec.replicas"), ["spec", "replicas"]);
    assert.deepEqual(simplePath(".spec['a.b']"), ["spec", "a.b"]);
    for (const path of ["spec.replicas", ".spec[0]", ".spec.*", "", ".", "..a"])
      assert.equal(simplePath(path), undefined);
  });
});

test("ages", () => {
  const second = 1000;
  const hour = 3600 * second;
  const cases: [number, string][] = [
    [0, "0s"],
    [-5 * second, "<invalid>"],
    [119 * second, "119s"],
    [150 * second, "2m30s"],
    [600 * second, "10m"],
    [3 * hour, "3h"],
    [3 * hour + 60 * second, "3h1m"],
    [47 * hour, "47h"],
    [50 * hour, "2d2h"],
    [30 * 24 * hour, "30d"],
    [800 * 24 * hour, "2y70d"],
    [9 * 365 * 24 * hour, "9y"],
  ];
  for (const [ms, expected] of cases) assert.equal(humanDuration(ms), expected);
});
