import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccessAttributes } from "../contract.ts";
import { printRule, ruleAllows, rulesOf, uncovered, type PolicyRule } from "./rbac-rules.ts";

const user = { name: "u", groups: [] };
const rule = (more: Partial<PolicyRule>): PolicyRule => ({
  verbs: ["get"],
  apiGroups: [""],
  resources: ["pods"],
  resourceNames: [],
  nonResourceURLs: [],
  ...more,
});
const ask = (verb: string, resource: string, more: object = {}): AccessAttributes => ({
  user,
  verb,
  resource: { group: "", version: "v1", resource, ...more },
});

test("rules match verbs, groups, resources, subresources and names", () => {
  assert.ok(ruleAllows(rule({}), ask("get", "pods")));
  assert.ok(!ruleAllows(rule({}), ask("list", "pods")));
  assert.ok(!ruleAllows(rule({}), ask("get", "pods", { subresource: "log" })));
  assert.ok(ruleAllows(rule({ resources: ["pods/log"] }), ask("get", "pods", { subresource: "log" })));
  assert.ok(ruleAllows(rule({ resources: ["*/scale"] }), ask("get", "pods", { subresource: "scale" })));
  assert.ok(
    ruleAllows(
      rule({ resources: ["*"], verbs: ["*"], apiGroups: ["*"] }),
      ask("bind", "x", { subresource: "y", group: "z" }),
    ),
  );
  assert.ok(ruleAllows(rule({ resourceNames: ["a"] }), ask("get", "pods", { name: "a" })));
  assert.ok(!ruleAllows(rule({ resourceNames: ["a"] }), ask("get", "pods", { name: "b" })));
  assert.ok(!ruleAllows(rule({ resourceNames: ["a"], verbs: ["create"] }), ask("create", "pods")));
  const path = (text: string): AccessAttributes => ({ user, verb: "get", path: text });
  assert.ok(ruleAllows(rule({ nonResourceURLs: ["/healthz/*"] }), path("/healthz/x")));
  assert.ok(!ruleAllows(rule({ nonResourceURLs: ["/healthz"] }), path("/healthzx")));
});

test("covering: nobody grants what they do not have", () => {
  const wanted = [rule({ verbs: ["get", "list"], resources: ["pods", "secrets"] })];
  assert.deepEqual(uncovered([rule({ verbs: ["*"], resources: ["*"] })], wanted), []);
  const missing = uncovered([rule({ verbs: ["get", "list"] })], wanted) ?? [];
  assert.deepEqual(missing.map(printRule), [
    '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    '{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}',
  ]);
  assert.equal(uncovered([rule({ resourceNames: ["a"] })], [rule({})])?.length, 1);
  assert.equal(uncovered([rule({})], [rule({ resourceNames: ["a"] })])?.length, 0);
  assert.equal(uncovered([rule({ verbs: ["get"] })], [rule({ verbs: ["*"] })])?.length, 1);
  assert.equal(
    uncovered(
      [],
      [
        rule({
          verbs: Array.from({ length: 300 }, (_, i) => `v${i}`),
          resources: Array.from({ length: 300 }, (_, i) => `r${i}`),
        }),
      ],
    ),
    undefined,
  );
});

test("roles that can't be read grant nothing", () => {
  assert.deepEqual(rulesOf({ rules: "all" }), []);
  assert.deepEqual(rulesOf({ rules: [{ verbs: "get" }] })[0]?.verbs, []);
});
