/**
 * Conversion of Kontinuum: both directions, what must not get lost, and what is refused.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { convertKontinuums } from "./kontinuum.conversion.ts";

const review = (desiredAPIVersion: string, ...objects: JsonObject[]): JsonObject =>
  convertKontinuums({ request: { uid: "u", desiredAPIVersion, objects } });
const convert = (object: JsonObject, version: string): unknown =>
  at(review(`kontinuum.sh/${version}`, object), "response", "convertedObjects", 0);

const newer = {
  apiVersion: "kontinuum.sh/v1alpha2",
  kind: "Kontinuum",
  metadata: { name: "a", annotations: { mine: "1" } },
  spec: { region: "eu", zone: "a" },
  status: {
    role: "Worker",
    lastHeartbeatTime: "2026-01-01T00:00:00Z",
    version: "v1",
    config: { log: { level: "info" } },
  },
};

test("the role moves between status and spec, and nothing gets lost on the way back", () => {
  const older = convert(newer, "v1alpha1");
  assert.equal(at(older, "apiVersion"), "kontinuum.sh/v1alpha1");
  assert.deepEqual(at(older, "spec"), { region: "eu", zone: "a", role: "Worker" });
  assert.deepEqual(at(older, "status"), { lastHeartbeatTime: "2026-01-01T00:00:00Z" });
  assert.ok(typeof older === "object" && older !== null);
  assert.deepEqual(convert({ ...older }, "v1alpha2"), newer);
});

test("an object of an old client gets a status, one without role gets what its placement says", () => {
  const old = {
    apiVersion: "kontinuum.sh/v1alpha1",
    kind: "Kontinuum",
    metadata: { name: "a" },
    spec: { role: "ControlPlane" },
  };
  assert.deepEqual(at(convert(old, "v1alpha2"), "status"), { role: "ControlPlane" });
  const bare = { ...newer, spec: {}, status: {} };
  assert.deepEqual(at(convert(bare, "v1alpha1"), "spec"), { role: "ControlPlane" });
  const broken = { ...old, metadata: { name: "a", annotations: { "kontinuum.sh/v1alpha2-status": "{" } } };
  assert.deepEqual(at(convert(broken, "v1alpha2"), "status"), { role: "ControlPlane" });
});

test("any other version is refused", () => {
  assert.equal(at(review("kontinuum.sh/v2", newer), "response", "result", "status"), "Failure");
});
