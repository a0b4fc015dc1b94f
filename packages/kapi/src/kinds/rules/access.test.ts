import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { create, resourceOf, update } from "../strategy.fixture.ts";

const rbac = "rbac.authorization.k8s.io/v1";
const admission = "admissionregistration.k8s.io/v1";
const extensions = "apiextensions.k8s.io/v1";

test("roles", () => {
  const rules = (rule: JsonObject, kind = "Role"): readonly string[] =>
    create(rbac, kind, { rules: [rule] }).errors;
  assert.deepEqual(rules({ verbs: ["get"], apiGroups: [""], resources: ["pods"] }), []);
  assert.deepEqual(rules({ verbs: [], apiGroups: [""], resources: ["pods"] }), [
    "rules[0].verbs: Required value: verbs must contain at least one value",
  ]);
  assert.deepEqual(rules({ verbs: ["get"] }), [
    "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
    "rules[0].resources: Required value: resource rules must supply at least one resource",
  ]);
  assert.match(
    rules({ verbs: ["get"], nonResourceURLs: ["/x"] }).join(),
    /namespaced rules cannot apply to non-resource URLs/,
  );
  assert.deepEqual(rules({ verbs: ["get"], nonResourceURLs: ["/x"] }, "ClusterRole"), []);
});

test("bindings", () => {
  const roleRef = { kind: "ClusterRole", name: "admin" };
  const { object: old, errors } = create(rbac, "RoleBinding", {
    roleRef,
    subjects: [{ kind: "User", name: "jane" }],
  });
  assert.deepEqual(errors, []);
  assert.equal(at(old, "roleRef", "apiGroup"), "rbac.authorization.k8s.io");
  assert.equal(at(old, "subjects", 0, "apiGroup"), "rbac.authorization.k8s.io");
  assert.match(
    update(old, { ...old, roleRef: { ...roleRef, name: "view" } }).errors.join(),
    /^roleRef: Invalid value: .*: cannot change roleRef$/,
  );
  assert.deepEqual(create(rbac, "ClusterRoleBinding", { roleRef: { kind: "Role", name: "x" } }).errors, [
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
  ]);
  assert.deepEqual(
    create(rbac, "ClusterRoleBinding", { roleRef, subjects: [{ kind: "ServiceAccount", name: "x" }] }).errors,
    ["subjects[0].namespace: Required value"],
  );
  assert.equal(resourceOf(rbac, "Role").nameRule, "path");
});

const webhook = (extra: JsonObject = {}): JsonObject => ({
  webhooks: [
    {
      name: "a.example.com",
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      clientConfig: { service: { namespace: "n", name: "s" } },
      rules: [{ operations: ["CREATE"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"] }],
      ...extra,
    },
  ],
});

test("webhooks get their defaults", () => {
  const { object, errors } = create(admission, "MutatingWebhookConfiguration", webhook());
  assert.deepEqual(errors, []);
  assert.deepEqual(at(object, "webhooks", 0), {
    name: "a.example.com",
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    clientConfig: { service: { namespace: "n", name: "s", port: 443 } },
    rules: [{ operations: ["CREATE"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: "*" }],
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
    reinvocationPolicy: "Never",
  });
});

test("webhooks are checked", () => {
  const errors = (extra: JsonObject): string =>
    create(admission, "ValidatingWebhookConfiguration", webhook(extra)).errors.join("\n");
  assert.match(
    errors({ name: "short" }),
    /should be a domain with at least three segments separated by dots/,
  );
  assert.match(
    errors({ sideEffects: "Some" }),
    /Unsupported value: "Some": supported values: "None", "NoneOnDryRun"/,
  );
  assert.match(errors({ admissionReviewVersions: ["v9"] }), /must include at least one of v1, v1beta1/);
  assert.match(errors({ timeoutSeconds: 31 }), /the timeout value must be between 1 and 30 seconds/);
  assert.match(errors({ clientConfig: { url: "http://a.b/c" } }), /'https' is the only allowed URL scheme/);
  assert.match(errors({ clientConfig: { url: "https://u:p@a.b/c" } }), /user information is not permitted/);
  assert.doesNotMatch(errors({ clientConfig: { url: "https://u:p@a.b/c" } }), /u:p/);
  assert.match(errors({ clientConfig: {} }), /exactly one of url or service is required/);
});

test("admission policies", () => {
  const spec = {
    matchConstraints: {
      resourceRules: [
        { operations: ["CREATE"], apiGroups: ["apps"], apiVersions: ["v1"], resources: ["deployments"] },
      ],
    },
    validations: [{ expression: "true" }],
  };
  const { object, errors } = create(admission, "ValidatingAdmissionPolicy", { spec });
  assert.deepEqual(errors, []);
  assert.equal(at(object, "spec", "failurePolicy"), "Fail");
  assert.equal(at(object, "spec", "matchConstraints", "matchPolicy"), "Equivalent");
  assert.equal(at(object, "spec", "matchConstraints", "resourceRules", 0, "scope"), "*");
  assert.match(
    create(admission, "ValidatingAdmissionPolicy", { spec: {} }).errors.join("\n"),
    /spec.matchConstraints: Required value/,
  );
  const binding = (extra: JsonObject): string =>
    create(admission, "ValidatingAdmissionPolicyBinding", {
      spec: { policyName: "p", validationActions: ["Deny"], ...extra },
    }).errors.join("\n");
  assert.equal(binding({}), "");
  assert.match(binding({ validationActions: ["Deny", "Warn"] }), /must not contain both Deny and Warn/);
  assert.match(binding({ validationActions: [] }), /at least one validation action is required/);
  assert.match(binding({ paramRef: { name: "x" } }), /parameterNotFoundAction: Required value/);
});

const definition = (extra: JsonObject = {}): JsonObject => ({
  metadata: { name: "widgets.example.io" },
  spec: {
    group: "example.io",
    scope: "Namespaced",
    names: { plural: "widgets", kind: "Widget" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
    ...extra,
  },
});

test("a definition's names, conversion and stored versions are filled", () => {
  const { object: old, errors } = create(extensions, "CustomResourceDefinition", definition());
  assert.deepEqual(errors, []);
  assert.deepEqual(at(old, "spec", "names"), {
    plural: "widgets",
    kind: "Widget",
    singular: "widget",
    listKind: "WidgetList",
  });
  assert.deepEqual(at(old, "spec", "conversion"), { strategy: "None" });
  assert.deepEqual(at(old, "status", "storedVersions"), ["v1"]);
  const schema = { openAPIV3Schema: { type: "object" } };
  const versions = [
    { name: "v1", served: true, storage: false, schema },
    { name: "v2", served: true, storage: true, schema },
  ];
  const next = update(old, { ...old, ...definition({ versions }) });
  assert.deepEqual(at(next.object, "status", "storedVersions"), ["v1", "v2"]);
  assert.equal(at(next.object, "metadata", "generation"), 2);
});
