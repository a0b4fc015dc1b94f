import assert from "node:assert/strict";
import { test } from "node:test";
import { at, isCoded, stringAt } from "@kontinuum/std";
import { crds, instanceKind, instancePoolKind, kontinuumKind, zoneKind } from "./index.ts";

const meta = { name: "x", namespace: "kontinuum-system" };

test("six kinds, all namespaced, with a status subresource and spec required", () => {
  assert.deepEqual(
    crds.map((crd) => stringAt(crd, "metadata", "name")),
    ["kontinuums", "zones", "instances", "instancepools", "talosclusters", "addons"].map(
      (plural) => `${plural}.kontinuum.sh`,
    ),
  );
  for (const crd of crds) {
    assert.equal(at(crd, "spec", "scope"), "Namespaced");
    const versions = at(crd, "spec", "versions");
    assert.ok(Array.isArray(versions));
    assert.equal(versions.filter((version) => at(version, "storage") === true).length, 1);
    for (const version of versions) {
      assert.deepEqual(at(version, "subresources"), { status: {} });
      assert.deepEqual(at(version, "schema", "openAPIV3Schema", "required"), ["metadata", "spec"]);
    }
  }
});

test("a Kontinuum has two versions, v1alpha2 stored", () => {
  const versions = at(kontinuumKind.crd, "spec", "versions");
  assert.ok(Array.isArray(versions));
  assert.deepEqual(
    versions.map((version) => [at(version, "name"), at(version, "storage")]),
    [
      ["v1alpha1", false],
      ["v1alpha2", true],
    ],
  );
});

test("parse takes what fits and keeps unknown fields", () => {
  const zone = zoneKind.resource.parse({
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "Zone",
    metadata: meta,
    spec: { region: "eu", zone: "a", later: { x: 1 } },
  });
  assert.equal(zone.spec.region, "eu");
  assert.deepEqual(at(zone, "spec", "later"), { x: 1 });
});

test("parse refuses what a controller could trip over, naming the path", () => {
  const cases: [unknown, RegExp][] = [
    [null, /instance must be an object/],
    [{ apiVersion: "v", kind: "k", metadata: meta }, /instance\.spec is required/],
    [{ apiVersion: "v", kind: "k", metadata: meta, spec: { interfaces: "a" } }, /spec\.interfaces must be a list/],
    [{ apiVersion: "v", kind: "k", metadata: meta, spec: { interfaces: [1] } }, /interfaces\[0\] must be a string/],
    [
      { apiVersion: "v", kind: "k", metadata: meta, spec: {}, status: { conditions: [{ status: "Maybe" }] } },
      /conditions\[0\]\.type is required/,
    ],
  ];
  for (const [value, text] of cases) {
    assert.throws(
      () => instanceKind.resource.parse(value),
      (error: unknown) => isCoded(error, "invalid_argument") && text.test(error.message),
    );
  }
  assert.throws(() => instancePoolKind.resource.parse({ ...{ apiVersion: "v", kind: "k", metadata: meta }, spec: { selector: {}, replicas: "3" } }), /replicas must be a whole number/);
});
