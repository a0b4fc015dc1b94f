import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded, SimulatedClock } from "@kontinuum/std";
import {
  findCondition,
  formatMicroTime,
  isConditionTrue,
  removeCondition,
  setCondition,
} from "./condition.ts";
import { configMaps, namespaces } from "./core-resources.ts";
import {
  addFinalizer,
  controllerOf,
  hasFinalizer,
  isControlledBy,
  removeFinalizer,
  setControllerReference,
  setOwnerReference,
} from "./metadata.ts";
import type { Condition, KubeObject } from "./object.ts";

const object = (name: string, uid?: string, namespace = "n"): KubeObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace, ...(uid === undefined ? {} : { uid }) },
});

test("a condition's transition time moves only with its status", async () => {
  const clock = new SimulatedClock(Date.UTC(2026, 0, 1, 0, 0, 0, 999));
  const all: Condition[] = [];
  const ready = { type: "Ready", status: "False", reason: "Waiting", message: "for it" } as const;
  assert.equal(setCondition(all, ready, clock), true);
  assert.equal(all[0]?.lastTransitionTime, "2026-01-01T00:00:00Z");
  await clock.advance(5000);
  assert.equal(setCondition(all, ready, clock), false);
  assert.equal(setCondition(all, { ...ready, message: "still" }, clock), true);
  assert.equal(all[0]?.lastTransitionTime, "2026-01-01T00:00:00Z");
  assert.equal(setCondition(all, { ...ready, status: "True", reason: "Done" }, clock), true);
  assert.equal(all[0]?.lastTransitionTime, "2026-01-01T00:00:05Z");
  assert.equal(isConditionTrue(all, "Ready"), true);
  assert.equal(findCondition(all, "Other"), undefined);
  assert.equal(removeCondition(all, "Ready"), true);
  assert.equal(removeCondition(all, "Ready"), false);
  assert.equal(formatMicroTime(clock.now()), "2026-01-01T00:00:05.999000Z");
});

test("finalizers", () => {
  const it = object("a");
  assert.equal(addFinalizer(it, "x/y"), true);
  assert.equal(addFinalizer(it, "x/y"), false);
  assert.equal(hasFinalizer(it, "x/y"), true);
  it.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
  assert.equal(addFinalizer(it, "x/z"), false);
  assert.equal(removeFinalizer(it, "x/y"), true);
  assert.equal(removeFinalizer(it, "x/y"), false);
});

test("one controller per object", () => {
  const owner = object("owner", "u1");
  const other = object("other", "u2");
  const child = object("child");
  assert.equal(setControllerReference(child, owner, configMaps), true);
  assert.equal(setControllerReference(child, owner, configMaps), false);
  assert.equal(isControlledBy(child, owner), true);
  assert.throws(
    () => setControllerReference(child, other, configMaps),
    (error) => isCoded(error, "already_exists"),
  );
  assert.equal(setOwnerReference(child, other, configMaps), true);
  assert.equal(
    setOwnerReference(child, owner, configMaps),
    false,
    "an owner that controls keeps the control",
  );
  assert.equal(controllerOf(child)?.name, "owner");
  assert.equal(child.metadata.ownerReferences?.length, 2);
});

test("owners must exist and be in reach", () => {
  assert.throws(() => setControllerReference(object("c"), object("o"), configMaps), /no uid/);
  assert.throws(
    () => setControllerReference(object("c"), object("o", "u", "elsewhere"), configMaps),
    /different namespaces/,
  );
  const namespace: KubeObject = { apiVersion: "v1", kind: "Namespace", metadata: { name: "n", uid: "u" } };
  assert.equal(setOwnerReference(object("c"), namespace, namespaces), true);
});
