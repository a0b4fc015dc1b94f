import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded } from "@kontinuum/std";
import { kindFacts } from "../codec/messages.ts";
import { builtinResources } from "./index.ts";
import { context, resourceOf } from "./strategy.fixture.ts";

const resources = builtinResources();
const id = ({ group, version, plural }: { group: string; version: string; plural: string }): string =>
  `${group}/${version}/${plural}`;

test("every resource is there once, with a name of each form", () => {
  const seen = new Set<string>();
  for (const resource of resources) {
    assert.ok(!seen.has(id(resource)), id(resource));
    seen.add(id(resource));
    assert.match(resource.plural, /^[a-z]+$/);
    assert.equal(resource.singular, resource.kind.toLowerCase());
    assert.equal(resource.listKind, `${resource.kind}List`);
    assert.equal(resource.origin, "builtin");
    assert.ok(resource.verbs.length > 0);
  }
});

test("all stable groups are served, in their stable version", () => {
  const served = [
    ...new Set(resources.map(({ group, version }) => (group === "" ? version : `${group}/${version}`))),
  ];
  assert.deepEqual(served.toSorted(), [
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
    "v1",
  ]);
});

test("short names are unique but for the one event", () => {
  const owners = new Map<string, string>();
  for (const resource of resources) {
    for (const short of resource.shortNames) {
      const known = owners.get(short);
      assert.ok(
        known === undefined || known === resource.plural,
        `${short}: ${known} and ${resource.plural}`,
      );
      owners.set(short, resource.plural);
    }
  }
  for (const [short, plural] of [
    ["po", "pods"],
    ["svc", "services"],
    ["deploy", "deployments"],
    ["cm", "configmaps"],
    ["ns", "namespaces"],
    ["crd", "customresourcedefinitions"],
    ["ing", "ingresses"],
    ["pvc", "persistentvolumeclaims"],
  ]) {
    assert.equal(owners.get(short ?? ""), plural);
  }
});

test("reviews are create only", () => {
  for (const resource of resources.filter(({ kind }) => kind.endsWith("Review"))) {
    assert.deepEqual(resource.verbs, ["create"], resource.kind);
  }
});

test("subresources of a foreign kind are kinds we know", () => {
  for (const resource of resources) {
    for (const { kind } of resource.subresources) {
      if (kind === undefined) continue;
      const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
      assert.ok(kindFacts(apiVersion, kind.kind), `${apiVersion} ${kind.kind}`);
    }
  }
});

test("an empty object of every kind is answered with errors or taken, never with a crash", () => {
  for (const resource of resources) {
    const object = { metadata: { name: "x" } };
    resource.prune(object);
    resource.applyDefaults(object);
    resource.prepareForCreate(object, context);
    resource.validateCreate(object, context);
    resource.validateUpdate(structuredClone(object), object, context);
    for (const { name } of resource.subresources) {
      const copy = structuredClone(object);
      resource.prepareForUpdate(copy, object, { ...context, subresource: name });
      resource.validateUpdate(copy, object, { ...context, subresource: name });
    }
    resource.warnings(object);
    for (const column of resource.columns) column.cell(object, context.now);
  }
});

test("leases and their like may not be overwritten blindly", () => {
  const strict = resources
    .filter(({ unconditionalUpdate }) => unconditionalUpdate === false)
    .map(({ kind }) => kind);
  assert.deepEqual(strict.toSorted(), ["APIService", "CustomResourceDefinition", "Lease"]);
});

test("the old controllers leave their pods", () => {
  assert.equal(resourceOf("batch/v1", "Job").defaultPropagation, "Orphan");
  assert.equal(resourceOf("v1", "ReplicationController").defaultPropagation, "Orphan");
  assert.equal(resourceOf("apps/v1", "Deployment").defaultPropagation, "Background");
});

test("unknown fields and wrong types are reported in the words clients know", () => {
  const deployment = resourceOf("apps/v1", "Deployment");
  assert.deepEqual(deployment.prune({ spec: { replica: 1 } }), ["spec.replica"]);
  assert.throws(
    () => deployment.prune({ spec: { replicas: "1" } }),
    (error) =>
      isCoded(error, "invalid_argument") &&
      error.message ===
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
  );
});

test("some fields compare as something else than their text", () => {
  const value = (apiVersion: string, kind: string, path: string, object: object): string | undefined =>
    resourceOf(apiVersion, kind).selectableValue?.({ ...object }, path);
  assert.equal(value("v1", "Node", "spec.unschedulable", {}), "false");
  assert.equal(value("v1", "Node", "spec.unschedulable", { spec: { unschedulable: true } }), "true");
  assert.equal(
    value("v1", "Pod", "status.podIPs", { status: { podIPs: [{ ip: "a" }, { ip: "b" }] } }),
    "a,b",
  );
  assert.equal(value("v1", "Pod", "status.phase", {}), undefined);
  assert.equal(value("batch/v1", "Job", "status.successful", { status: { succeeded: 2 } }), "2");
  assert.equal(value("apps/v1", "ReplicaSet", "status.replicas", {}), "0");
  assert.equal(value("v1", "Event", "source", { source: { component: "kubelet" } }), "kubelet");
});
