import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { resourceOf } from "../kinds/strategy.fixture.ts";
import type { AdmissionRequest } from "./admission.ts";
import { limitRanger } from "./limit-ranger.ts";

const range = (limit: JsonObject): JsonObject => ({ spec: { limits: [limit] } });

async function admit(kind: string, object: JsonObject, ...limits: JsonObject[]): Promise<JsonObject> {
  const plugin = limitRanger(() => Promise.resolve(limits.map(range)));
  const request: AdmissionRequest = {
    operation: "CREATE",
    resource: resourceOf("v1", kind),
    subresource: "",
    namespace: "n",
    name: "x",
    object,
    oldObject: undefined,
    user: { name: "u", groups: [] },
    dryRun: false,
    housekeeping: false,
    options: {},
    warn: () => undefined,
    annotate: () => undefined,
  };
  await plugin.mutate?.(request);
  await plugin.validate?.(request);
  return object;
}

const pod = (...resources: JsonObject[]): JsonObject => ({
  spec: { containers: resources.map((item, index) => ({ name: `c${index}`, resources: item })) },
});

test("containers get what they do not say", async () => {
  const limit = { type: "Container", default: { cpu: "1", memory: "1Gi" }, defaultRequest: { cpu: "100m" } };
  const object = await admit("Pod", pod({}, { limits: { cpu: "2" } }), limit);
  assert.deepEqual(at(object, "spec", "containers", 0, "resources"), {
    requests: { cpu: "100m" },
    limits: { cpu: "1", memory: "1Gi" },
  });
  assert.deepEqual(at(object, "spec", "containers", 1, "resources"), {
    limits: { cpu: "2", memory: "1Gi" },
    requests: { cpu: "100m" },
  });
  assert.match(
    String(at(object, "metadata", "annotations", "kubernetes.io/limit-ranger")),
    /^LimitRanger plugin set: cpu request for container c0; cpu, memory limit for container c0; /,
  );
});

test("what lies outside a range is refused", async () => {
  const limit = { type: "Container", max: { cpu: "1" }, min: { cpu: "100m" } };
  await assert.rejects(
    admit("Pod", pod({ limits: { cpu: "2" }, requests: { cpu: "50m" } }), limit),
    /pods "x" is forbidden: \[minimum cpu usage per Container is 100m, but request is 50m, maximum cpu usage per Container is 1, but limit is 2\]/,
  );
  await assert.rejects(
    admit("Pod", pod({ requests: { cpu: "1" } }), limit),
    /maximum cpu usage per Container is 1. No limit is specified/,
  );
  await admit("Pod", pod({ limits: { cpu: "1" }, requests: { cpu: "100m" } }), limit);
});

test("a pod is measured as a whole", async () => {
  const limit = { type: "Pod", max: { memory: "1Gi" } };
  const half = { limits: { memory: "600Mi" }, requests: { memory: "600Mi" } };
  await admit("Pod", pod(half), limit);
  await assert.rejects(
    admit("Pod", pod(half, half), limit),
    /maximum memory usage per Pod is 1Gi, but limit is 1200Mi/,
  );
});

test("ratios and claims", async () => {
  const ratio = { type: "Container", maxLimitRequestRatio: { cpu: "2" } };
  await admit("Pod", pod({ limits: { cpu: "2" }, requests: { cpu: "1" } }), ratio);
  await assert.rejects(
    admit("Pod", pod({ limits: { cpu: "3" }, requests: { cpu: "1" } }), ratio),
    /cpu max limit to request ratio per Container is 2, but provided ratio is 3/,
  );
  const claim = (storage: string): JsonObject => ({ spec: { resources: { requests: { storage } } } });
  const limit = { type: "PersistentVolumeClaim", max: { storage: "10Gi" }, min: { storage: "1Gi" } };
  await admit("PersistentVolumeClaim", claim("5Gi"), limit);
  await assert.rejects(
    admit("PersistentVolumeClaim", claim("20Gi"), limit),
    /maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 20Gi/,
  );
});
