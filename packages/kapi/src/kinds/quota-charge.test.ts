import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@kontinuum/std";
import { amountText, chargeOf, countedResource, inScope } from "./quota-charge.ts";
import { formatQuantity, quantityNano } from "./quantity.ts";

const podsKind = { group: "", plural: "pods" };
const costs = (group: string, plural: string, object: JsonObject): Record<string, string> =>
  Object.fromEntries(
    [...chargeOf({ group, plural }, object)].map(([key, nano]) => [key, amountText(key, nano)]),
  );

test("every object is one of its kind", () => {
  assert.deepEqual(costs("batch", "jobs", {}), { "count/jobs.batch": "1" });
  assert.deepEqual(costs("", "configmaps", {}), { "count/configmaps": "1", configmaps: "1" });
  assert.deepEqual(costs("", "events", {}), { "count/events": "1" });
});

test("pods cost what they ask for, until they end", () => {
  const container = (cpu: string, memory: string): JsonObject => ({
    resources: { requests: { cpu, memory }, limits: { cpu } },
  });
  const spec = {
    containers: [container("500m", "1Gi"), container("1", "512Mi")],
    initContainers: [container("4", "1Mi")],
  };
  assert.deepEqual(costs("", "pods", { spec }), {
    "count/pods": "1",
    pods: "1",
    "requests.cpu": "4",
    cpu: "4",
    "requests.memory": "1536Mi",
    memory: "1536Mi",
    "limits.cpu": "4",
  });
  assert.deepEqual(costs("", "pods", { spec, status: { phase: "Succeeded" } }), { "count/pods": "1" });
});

test("services and claims", () => {
  const ports = [{ nodePort: 30_000 }, { nodePort: 30_001 }];
  assert.deepEqual(costs("", "services", { spec: { type: "LoadBalancer", ports } }), {
    "count/services": "1",
    services: "1",
    "services.loadbalancers": "1",
    "services.nodeports": "2",
  });
  assert.deepEqual(
    costs("", "persistentvolumeclaims", {
      spec: { storageClassName: "fast", resources: { requests: { storage: "5Gi" } } },
    }),
    {
      "count/persistentvolumeclaims": "1",
      persistentvolumeclaims: "1",
      "requests.storage": "5Gi",
      "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
      "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    },
  );
});

test("keys and the kinds they count", () => {
  assert.deepEqual(countedResource("count/deployments.apps"), { plural: "deployments", group: "apps" });
  assert.deepEqual(countedResource("count/pods"), { plural: "pods", group: "" });
  assert.deepEqual(countedResource("limits.memory"), { plural: "pods", group: "" });
  assert.deepEqual(countedResource("requests.storage"), { plural: "persistentvolumeclaims", group: "" });
  assert.deepEqual(countedResource("services.nodeports"), { plural: "services", group: "" });
  assert.equal(countedResource("example.com/gpus"), undefined);
});

test("scopes choose pods", () => {
  const quota = (...scopes: string[]): JsonObject => ({ spec: { scopes } });
  const plain = { spec: { containers: [{ name: "a" }] } };
  const bound = {
    spec: { activeDeadlineSeconds: 5, containers: [{ resources: { requests: { cpu: "1" } } }] },
  };
  assert.ok(inScope(quota("BestEffort", "NotTerminating"), podsKind, plain));
  assert.ok(!inScope(quota("BestEffort"), podsKind, bound));
  assert.ok(inScope(quota("Terminating", "NotBestEffort"), podsKind, bound));
  const selector = {
    spec: {
      scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["high"] }] },
    },
  };
  assert.ok(inScope(selector, podsKind, { spec: { priorityClassName: "high" } }));
  assert.ok(!inScope(selector, podsKind, plain));
});

test("amounts are printed as people write them", () => {
  const print = (text: string): string => formatQuantity(quantityNano(text) ?? 0n, true);
  for (const text of ["1Gi", "1536Mi", "1Ki", "5Ti"]) assert.equal(print(text), text);
  assert.equal(print("1000"), "1k");
  assert.equal(print("1023"), "1023");
  assert.equal(print("500m"), "500m");
  assert.equal(print("0"), "0");
});
