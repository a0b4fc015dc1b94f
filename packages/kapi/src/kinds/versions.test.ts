import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { toAutoscalerV1, toAutoscalerV2 } from "./autoscaler-versions.ts";
import { toCoreEvent, toEventsEvent } from "./event-versions.ts";
import { create, resourceOf } from "./strategy.fixture.ts";

test("an event is the same in both groups", () => {
  const { object } = create("events.k8s.io/v1", "Event", {
    metadata: { name: "e", namespace: "n" },
    regarding: { kind: "Pod", name: "p", namespace: "n" },
    note: "hello",
    eventTime: "2026-01-01T00:00:00.000001Z",
    series: { count: 3, lastObservedTime: "2026-01-01T00:00:01.000000Z" },
    reportingController: "example.com/c",
    reportingInstance: "i",
    action: "a",
    reason: "r",
    type: "Normal",
  });
  const core = toCoreEvent(object);
  assert.equal(core["apiVersion"], "v1");
  assert.deepEqual(core["involvedObject"], { kind: "Pod", name: "p", namespace: "n" });
  assert.equal(core["message"], "hello");
  assert.equal(core["reportingComponent"], "example.com/c");
  assert.equal(core["firstTimestamp"], null);
  assert.deepEqual(resourceOf("v1", "Event").prune(structuredClone(core)), []);
  assert.deepEqual(toEventsEvent(core), object);
  assert.equal(toCoreEvent(core), core);
  const { stored } = resourceOf("events.k8s.io/v1", "Event");
  assert.equal(stored?.group, "");
});

test("an old event shows in the new group", () => {
  const { object } = create("v1", "Event", {
    metadata: { name: "e", namespace: "n" },
    involvedObject: { kind: "Pod", namespace: "n" },
    source: { component: "kubelet", host: "h" },
    firstTimestamp: "2026-01-01T00:00:00Z",
    lastTimestamp: "2026-01-01T00:00:05Z",
    count: 4,
    message: "m",
  });
  const event = toEventsEvent(object);
  assert.deepEqual(event["deprecatedSource"], { component: "kubelet", host: "h" });
  assert.equal(event["deprecatedCount"], 4);
  assert.equal(event["note"], "m");
  assert.deepEqual(toCoreEvent(event), object);
});

const metrics: JsonObject[] = [
  { type: "Pods", pods: { metric: { name: "m" }, target: { type: "AverageValue", averageValue: "5" } } },
  { type: "Resource", resource: { name: "memory", target: { type: "Utilization", averageUtilization: 70 } } },
  {
    type: "Object",
    object: {
      describedObject: { kind: "Service", name: "s", apiVersion: "v1" },
      metric: { name: "q" },
      target: { type: "Value", value: "2" },
    },
  },
  {
    type: "External",
    external: {
      metric: { name: "e", selector: { matchLabels: { a: "b" } } },
      target: { type: "AverageValue", averageValue: "3" },
    },
  },
  {
    type: "ContainerResource",
    containerResource: {
      name: "cpu",
      container: "c",
      target: { type: "Utilization", averageUtilization: 60 },
    },
  },
  { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } },
];

test("an autoscaler keeps every metric through the version that cannot say them", () => {
  const { object } = create("autoscaling/v2", "HorizontalPodAutoscaler", {
    spec: {
      scaleTargetRef: { kind: "Deployment", name: "d", apiVersion: "apps/v1" },
      maxReplicas: 3,
      metrics,
      behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
    },
  });
  const old = toAutoscalerV1(object);
  assert.equal(at(old, "spec", "targetCPUUtilizationPercentage"), 50);
  assert.equal(at(old, "spec", "metrics"), undefined);
  assert.deepEqual(resourceOf("autoscaling/v1", "HorizontalPodAutoscaler").prune(structuredClone(old)), []);
  assert.deepEqual(toAutoscalerV2(old), object);
});

test("a v1 autoscaler has a CPU target in v2", () => {
  const { object } = create("autoscaling/v1", "HorizontalPodAutoscaler", {
    spec: {
      scaleTargetRef: { kind: "Deployment", name: "d" },
      maxReplicas: 3,
      targetCPUUtilizationPercentage: 42,
    },
  });
  const next = toAutoscalerV2(object);
  assert.deepEqual(at(next, "spec", "metrics"), [
    { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 42 } } },
  ]);
  assert.deepEqual(toAutoscalerV1(next), object);
});

test("a broken annotation loses only itself", () => {
  const object: JsonObject = {
    apiVersion: "autoscaling/v1",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "x", annotations: { "autoscaling.alpha.kubernetes.io/metrics": "{", other: "1" } },
    spec: { maxReplicas: 1, scaleTargetRef: { kind: "D", name: "d" } },
  };
  const next = toAutoscalerV2(object);
  assert.deepEqual(at(next, "metadata", "annotations"), { other: "1" });
});
