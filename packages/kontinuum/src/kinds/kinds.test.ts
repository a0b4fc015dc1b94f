/**
 * The declared kinds: their manifests, and what `parse` takes and refuses.
 */
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
  const object = { apiVersion: "kontinuum.sh/v1alpha2", kind: "Instance", metadata: meta };
  const cases: [unknown, RegExp][] = [
    [null, /it is not an object/],
    [{ ...object, kind: "Zone", spec: {} }, /it is a .* Zone/],
    [object, /spec is not an object/],
    [{ ...object, spec: { interfaces: "a" } }, /spec\.interfaces is not a list/],
    [{ ...object, spec: { interfaces: [1] } }, /interfaces\[0\] is not a string/],
    [
      { ...object, spec: {}, status: { conditions: [{ status: "True" }] } },
      /conditions\[0\]\.type is missing/,
    ],
  ];
  for (const [value, text] of cases) {
    assert.throws(
      () => instanceKind.resource.parse(value),
      (error: unknown) => isCoded(error, "data_loss") && text.test(error.message),
    );
  }
  const pool = { ...object, kind: "InstancePool", spec: { selector: {}, replicas: "3" } };
  assert.throws(() => instancePoolKind.resource.parse(pool), /replicas is not a whole number/);
});
