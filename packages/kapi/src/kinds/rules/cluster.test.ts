import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { create, resourceOf, update } from "../strategy.fixture.ts";

test("claims and volumes", () => {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  const { object: old, errors } = create("v1", "PersistentVolumeClaim", { spec });
  assert.deepEqual(errors, []);
  assert.equal(at(old, "spec", "volumeMode"), "Filesystem");
  assert.deepEqual(old["status"], { phase: "Pending" });
  assert.deepEqual(create("v1", "PersistentVolumeClaim", { spec: {} }).errors, [
    "spec.accessModes: Required value: at least 1 access mode is required",
    "spec.resources[storage]: Required value",
  ]);
  assert.match(
    update(old, { ...old, spec: { ...spec, storageClassName: "x" } }).errors.join(),
    /^spec: Forbidden: spec is immutable after creation/,
  );
  const bound = { ...structuredClone(old), status: { phase: "Bound", capacity: { storage: "1Gi" } } };
  const grown = { ...spec, volumeMode: "Filesystem", resources: { requests: { storage: "2Gi" } } };
  assert.deepEqual(update(bound, { ...bound, spec: grown }).errors, []);
  const shrunk = { ...spec, volumeMode: "Filesystem", resources: { requests: { storage: "1Mi" } } };
  assert.match(
    update(bound, { ...bound, spec: shrunk }).errors.join(),
    /field can not be less than status.capacity/,
  );

  const volume = create("v1", "PersistentVolume", {
    metadata: { name: "pv" },
    spec: { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, hostPath: { path: "/x" } },
  });
  assert.deepEqual(volume.errors, []);
  assert.equal(at(volume.object, "spec", "persistentVolumeReclaimPolicy"), "Retain");
  assert.match(
    update(volume.object, {
      ...volume.object,
      spec: { ...(volume.object["spec"] as JsonObject), hostPath: { path: "/y" } },
    }).errors.join(),
    /spec.persistentvolumesource is immutable after creation/,
  );
});

test("storage classes", () => {
  const { object: old, errors } = create("storage.k8s.io/v1", "StorageClass", {
    metadata: { name: "s" },
    provisioner: "p",
  });
  assert.deepEqual(errors, []);
  assert.equal(old["reclaimPolicy"], "Delete");
  assert.equal(old["volumeBindingMode"], "Immediate");
  assert.deepEqual(update(old, { ...old, parameters: { a: "b" } }).errors, [
    "parameters: Forbidden: updates to parameters are forbidden.",
  ]);
  assert.deepEqual(create("storage.k8s.io/v1", "StorageClass", { metadata: { name: "s" } }).errors, [
    "provisioner: Required value",
  ]);
});

test("autoscalers and budgets", () => {
  const spec = { scaleTargetRef: { kind: "Deployment", name: "d", apiVersion: "apps/v1" }, maxReplicas: 3 };
  const { object, errors } = create("autoscaling/v2", "HorizontalPodAutoscaler", { spec });
  assert.deepEqual(errors, []);
  assert.equal(at(object, "spec", "minReplicas"), 1);
  assert.deepEqual(at(object, "spec", "metrics"), [
    { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } },
  ]);
  assert.match(
    create("autoscaling/v1", "HorizontalPodAutoscaler", { spec: { ...spec, minReplicas: 5 } }).errors.join(),
    /must be greater than or equal to `minReplicas`/,
  );
  assert.deepEqual(create("policy/v1", "PodDisruptionBudget", { spec: { minAvailable: "50%" } }).errors, []);
  assert.match(
    create("policy/v1", "PodDisruptionBudget", {
      spec: { minAvailable: 1, maxUnavailable: 1 },
    }).errors.join(),
    /minAvailable and maxUnavailable cannot be both set/,
  );
  assert.match(
    create("policy/v1", "PodDisruptionBudget", { spec: { minAvailable: "150%" } }).errors.join(),
    /must not be greater than 100%/,
  );
});

test("quotas and limits", () => {
  assert.match(
    create("v1", "ResourceQuota", { spec: { hard: { pods: "1500m" } } }).errors.join(),
    /spec.hard\[pods\]: Invalid value: "1500m": must be an integer/,
  );
  assert.match(
    create("v1", "ResourceQuota", { spec: { hard: { cpu: "-1" } } }).errors.join(),
    /must be greater than or equal to 0/,
  );
  const limits = create("v1", "LimitRange", {
    spec: { limits: [{ type: "Container", max: { cpu: "2" }, min: { cpu: "1", memory: "1Mi" } }] },
  });
  assert.deepEqual(limits.errors, []);
  assert.deepEqual(at(limits.object, "spec", "limits", 0, "default"), { cpu: "2" });
  assert.deepEqual(at(limits.object, "spec", "limits", 0, "defaultRequest"), { cpu: "2", memory: "1Mi" });
  assert.match(
    create("v1", "LimitRange", {
      spec: { limits: [{ type: "Container", max: { cpu: "1" }, min: { cpu: "2" } }] },
    }).errors.join(),
    /min value 2 is greater than max value 1/,
  );
});

test("nodes keep their identity", () => {
  const { object: old, errors } = create("v1", "Node", {
    metadata: { name: "n" },
    spec: { podCIDRs: ["10.0.0.0/24"], podCIDR: "10.0.0.0/24", providerID: "p" },
  });
  assert.deepEqual(errors, []);
  assert.match(update(old, { ...old, spec: {} }).errors.join("\n"), /podCIDR.*\n.*providerID/s);
  const status: JsonObject = { ...structuredClone(old), status: { phase: "Running" } };
  Object.assign(status["metadata"] as JsonObject, { annotations: { a: "b" } });
  assert.deepEqual(at(update(old, status, "status").object, "metadata", "annotations"), { a: "b" });
  assert.match(
    create("v1", "Node", {
      metadata: { name: "n" },
      spec: { taints: [{ key: "a", effect: "x" }] },
    }).errors.join(),
    /Unsupported value: "x"/,
  );
});

test("priorities and runtimes", () => {
  assert.match(
    create("scheduling.k8s.io/v1", "PriorityClass", {
      metadata: { name: "p" },
      value: 2_000_000_000,
    }).errors.join(),
    /maximum allowed value of a user defined priority is 1000000000/,
  );
  const { object: old } = create("scheduling.k8s.io/v1", "PriorityClass", {
    metadata: { name: "p" },
    value: 1,
  });
  assert.equal(old["preemptionPolicy"], "PreemptLowerPriority");
  assert.deepEqual(update(old, { ...old, value: 2 }).errors, [
    "value: Forbidden: may not be changed in an update.",
  ]);
  assert.match(
    create("node.k8s.io/v1", "RuntimeClass", { metadata: { name: "r" }, handler: "A" }).errors.join(),
    /^handler: Invalid value: "A"/,
  );
});

test("leases round-trip", () => {
  const spec = { holderIdentity: "me", leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.123456Z" };
  const { object, errors } = create("coordination.k8s.io/v1", "Lease", { spec });
  assert.deepEqual(errors, []);
  assert.deepEqual(object["spec"], spec);
  assert.deepEqual(create("coordination.k8s.io/v1", "Lease", { spec: { leaseDurationSeconds: 0 } }).errors, [
    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
  ]);
  assert.equal(resourceOf("coordination.k8s.io/v1", "Lease").unconditionalUpdate, false);
  assert.equal(resourceOf("coordination.k8s.io/v1", "Lease").createOnUpdate, true);
});

test("events name an object of their namespace; new events say who and what", () => {
  const metadata = { name: "e", namespace: "n" };
  assert.deepEqual(
    create("v1", "Event", { metadata, involvedObject: { namespace: "n", kind: "Pod" } }).errors,
    [],
  );
  assert.deepEqual(create("v1", "Event", { metadata, involvedObject: { namespace: "m" } }).errors, [
    'involvedObject.namespace: Invalid value: "m": does not match event.namespace',
  ]);
  const full = {
    metadata,
    regarding: { namespace: "n", kind: "Pod" },
    eventTime: "2026-01-01T00:00:00.000000Z",
    reportingController: "example.com/c",
    reportingInstance: "c-1",
    action: "Start",
    reason: "Started",
    type: "Normal",
  };
  assert.deepEqual(create("events.k8s.io/v1", "Event", full).errors, []);
  assert.deepEqual(
    create("events.k8s.io/v1", "Event", { metadata, regarding: full.regarding }).errors.slice(0, 3),
    ["eventTime: Required value", "reportingController: Required value", "reportingInstance: Required value"],
  );
});

test("a signing request belongs to who sends it", () => {
  // A sequence of one number: DER enough for the check, no request anybody would sign.
  const der = Buffer.from("3003020101", "hex").toString("base64");
  const request = Buffer.from(
    `-----BEGIN CERTIFICATE REQUEST-----
${der}
-----END CERTIFICATE REQUEST-----
`,
  ).toString("base64");
  const { object: old, errors } = create("certificates.k8s.io/v1", "CertificateSigningRequest", {
    metadata: { name: "c" },
    spec: {
      request,
      signerName: "kubernetes.io/kube-apiserver-client",
      usages: ["client auth"],
      username: "root",
    },
  });
  assert.deepEqual(errors, []);
  assert.equal(at(old, "spec", "username"), "jane");
  assert.deepEqual(at(old, "spec", "groups"), ["system:authenticated"]);
  const approved = {
    ...structuredClone(old),
    status: { conditions: [{ type: "Approved", status: "True" }], certificate: "eA==" },
  };
  const { object } = update(old, approved, "approval");
  assert.equal(at(object, "status", "conditions", 0, "type"), "Approved");
  assert.equal(at(object, "status", "certificate"), undefined);
});

test("flow control", () => {
  const level = create("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", {
    metadata: { name: "l" },
    spec: { type: "Limited", limited: { limitResponse: { type: "Queue", queuing: {} } } },
  });
  assert.deepEqual(level.errors, []);
  assert.deepEqual(at(level.object, "spec", "limited", "limitResponse", "queuing"), {
    queues: 64,
    handSize: 8,
    queueLengthLimit: 50,
  });
  const schema = create("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", {
    metadata: { name: "f" },
    spec: { priorityLevelConfiguration: { name: "l" } },
  });
  assert.deepEqual(schema.errors, []);
  assert.equal(at(schema.object, "spec", "matchingPrecedence"), 1000);
});

test("aggregated APIs are named after what they serve", () => {
  const spec = {
    group: "a.example",
    version: "v1",
    groupPriorityMinimum: 10,
    versionPriority: 10,
    service: { namespace: "n", name: "s" },
  };
  const { object, errors } = create("apiregistration.k8s.io/v1", "APIService", {
    metadata: { name: "v1.a.example" },
    spec,
  });
  assert.deepEqual(errors, []);
  assert.equal(at(object, "spec", "service", "port"), 443);
  assert.match(
    create("apiregistration.k8s.io/v1", "APIService", { metadata: { name: "x" }, spec }).errors.join(),
    /must be `spec.version\+"."\+spec.group`: "v1.a.example"/,
  );
});
