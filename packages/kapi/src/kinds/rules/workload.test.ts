import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { create, update } from "../strategy.fixture.ts";

const container = { name: "c", image: "nginx" };
const template = (labels: JsonObject = { a: "b" }, spec: JsonObject = {}): JsonObject => ({
  metadata: { labels },
  spec: { containers: [container], ...spec },
});
const deployment = (spec: JsonObject = {}): JsonObject => ({
  spec: { selector: { matchLabels: { a: "b" } }, template: template(), ...spec },
});

test("a Deployment gets the defaults that controllers read", () => {
  const { object, errors } = create("apps/v1", "Deployment", deployment());
  assert.deepEqual(errors, []);
  assert.deepEqual(object["spec"], {
    replicas: 1,
    selector: { matchLabels: { a: "b" } },
    strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
    template: {
      metadata: { labels: { a: "b" } },
      spec: {
        containers: [
          {
            name: "c",
            image: "nginx",
            imagePullPolicy: "Always",
            resources: {},
            terminationMessagePath: "/dev/termination-log",
            terminationMessagePolicy: "File",
          },
        ],
        dnsPolicy: "ClusterFirst",
        restartPolicy: "Always",
        schedulerName: "default-scheduler",
        securityContext: {},
        terminationGracePeriodSeconds: 30,
      },
    },
  });
  assert.equal(at(object, "metadata", "generation"), 1);
});

test("zero replicas stay zero", () => {
  const { object } = create("apps/v1", "Deployment", deployment({ replicas: 0 }));
  assert.equal(at(object, "spec", "replicas"), 0);
});

const refused: readonly (readonly [string, JsonObject, string])[] = [
  ["no selector", { spec: { template: template() } }, "spec.selector: Required value"],
  [
    "an empty selector",
    deployment({ selector: {} }),
    "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
  ],
  [
    "labels that do not match",
    deployment({ template: template({ a: "c" }) }),
    'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`',
  ],
  [
    "negative replicas",
    deployment({ replicas: -1 }),
    "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
  ],
  [
    "a container without image",
    deployment({ template: template({ a: "b" }, { containers: [{ name: "c" }] }) }),
    "spec.template.spec.containers[0].image: Required value",
  ],
  [
    "a container without name",
    deployment({ template: template({ a: "b" }, { containers: [{ image: "c" }] }) }),
    "spec.template.spec.containers[0].name: Required value",
  ],
  [
    "no container",
    deployment({ template: template({ a: "b" }, { containers: [] }) }),
    "spec.template.spec.containers: Required value",
  ],
  [
    "two containers of one name",
    deployment({ template: template({ a: "b" }, { containers: [container, container] }) }),
    'spec.template.spec.containers[1].name: Duplicate value: "c"',
  ],
  [
    "a template that does not restart",
    deployment({ template: template({ a: "b" }, { restartPolicy: "Never" }) }),
    'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
  ],
  [
    "an unknown strategy",
    deployment({ strategy: { type: "Slow" } }),
    'spec.strategy.type: Unsupported value: "Slow": supported values: "Recreate", "RollingUpdate"',
  ],
  [
    "a rolling update of a Recreate strategy",
    deployment({ strategy: { type: "Recreate", rollingUpdate: { maxSurge: 1 } } }),
    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
  ],
  [
    "a mount of no volume",
    deployment({
      template: template(
        { a: "b" },
        { containers: [{ ...container, volumeMounts: [{ name: "v", mountPath: "/v" }] }] },
      ),
    }),
    'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "v"',
  ],
];

for (const [what, body, expected] of refused) {
  test(`a Deployment with ${what} is refused`, () => {
    assert.deepEqual(create("apps/v1", "Deployment", body).errors, [expected]);
  });
}

test("selectors are immutable, replicas are not; the generation follows the spec", () => {
  const { object: old } = create("apps/v1", "Deployment", deployment());
  const scaled = structuredClone(old);
  Object.assign(scaled["spec"] as JsonObject, { replicas: 3 });
  const after = update(old, scaled);
  assert.deepEqual(after.errors, []);
  assert.equal(at(after.object, "metadata", "generation"), 2);

  const labelled = structuredClone(old);
  Object.assign(labelled["metadata"] as JsonObject, { labels: { x: "y" } });
  assert.equal(at(update(old, labelled).object, "metadata", "generation"), 1);

  const moved = structuredClone(old);
  Object.assign(moved["spec"] as JsonObject, {
    selector: { matchLabels: { a: "z" } },
    template: template({ a: "z" }),
  });
  assert.deepEqual(update(old, moved).errors, [
    'spec.selector: Invalid value: {"matchLabels":{"a":"z"}}: field is immutable',
  ]);
});

test("status is nobody's on create, and only the status door's later", () => {
  const { object: old } = create("apps/v1", "Deployment", { ...deployment(), status: { replicas: 9 } });
  assert.deepEqual(old["status"], {});
  const wanted = structuredClone(old);
  wanted["status"] = { replicas: 2 };
  Object.assign(wanted["spec"] as JsonObject, { replicas: 7 });
  Object.assign(wanted["metadata"] as JsonObject, { labels: { new: "label" } });
  const main = update(old, wanted).object;
  assert.deepEqual(main["status"], {});
  assert.equal(at(main, "spec", "replicas"), 7);
  const status = update(old, wanted, "status").object;
  assert.deepEqual(status["status"], { replicas: 2 });
  assert.equal(at(status, "spec", "replicas"), 1);
  assert.equal(at(status, "metadata", "labels"), undefined);
  assert.equal(at(status, "metadata", "generation"), 1);
});

test("a StatefulSet mounts its claims, and little of it may change", () => {
  const body: JsonObject = {
    spec: {
      serviceName: "s",
      selector: { matchLabels: { a: "b" } },
      template: template(
        { a: "b" },
        { containers: [{ ...container, volumeMounts: [{ name: "data", mountPath: "/d" }] }] },
      ),
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      ],
    },
  };
  const { object: old, errors } = create("apps/v1", "StatefulSet", body);
  assert.deepEqual(errors, []);
  assert.equal(at(old, "spec", "podManagementPolicy"), "OrderedReady");
  assert.deepEqual(at(old, "spec", "updateStrategy"), {
    type: "RollingUpdate",
    rollingUpdate: { partition: 0 },
  });
  assert.deepEqual(at(old, "spec", "persistentVolumeClaimRetentionPolicy"), {
    whenDeleted: "Retain",
    whenScaled: "Retain",
  });
  assert.equal(at(old, "spec", "volumeClaimTemplates", 0, "kind"), "PersistentVolumeClaim");
  const renamed = structuredClone(old);
  Object.assign(renamed["spec"] as JsonObject, { serviceName: "t" });
  assert.match(
    update(old, renamed).errors.join(),
    /^spec: Forbidden: updates to statefulset spec for fields other than/,
  );
  const scaled = structuredClone(old);
  Object.assign(scaled["spec"] as JsonObject, { replicas: 5 });
  assert.deepEqual(update(old, scaled).errors, []);
});

test("DaemonSets, ReplicaSets and ReplicationControllers get theirs", () => {
  const daemon = create("apps/v1", "DaemonSet", deployment());
  assert.deepEqual(daemon.errors, []);
  assert.deepEqual(at(daemon.object, "spec", "updateStrategy"), {
    type: "RollingUpdate",
    rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
  });
  const set = create("apps/v1", "ReplicaSet", deployment());
  assert.deepEqual(set.errors, []);
  assert.equal(at(set.object, "spec", "replicas"), 1);
  const controller = create("v1", "ReplicationController", { spec: { template: template() } });
  assert.deepEqual(controller.errors, []);
  assert.deepEqual(at(controller.object, "spec", "selector"), { a: "b" });
  assert.deepEqual(at(controller.object, "metadata", "labels"), { a: "b" });
});

test("a revision keeps its data", () => {
  const { object: old, errors } = create("apps/v1", "ControllerRevision", { data: { a: 1 }, revision: 1 });
  assert.deepEqual(errors, []);
  const changed = structuredClone(old);
  changed["data"] = { a: 2 };
  assert.deepEqual(update(old, changed).errors, ['data: Invalid value: {"a":2}: field is immutable']);
  assert.deepEqual(create("apps/v1", "ControllerRevision", { revision: 1 }).errors, [
    "data: Required value: data is mandatory",
  ]);
});
