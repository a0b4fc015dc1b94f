import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { create, resourceOf } from "../strategy.fixture.ts";

const backend = { service: { name: "s", port: { number: 80 } } };
const ingress = (path: JsonObject): JsonObject => ({
  spec: {
    rules: [{ host: "a.example", http: { paths: [{ path: "/", pathType: "Prefix", backend, ...path }] } }],
  },
});

test("an Ingress", () => {
  const networking = "networking.k8s.io/v1";
  assert.deepEqual(create(networking, "Ingress", ingress({})).errors, []);
  assert.deepEqual(create(networking, "Ingress", ingress({ pathType: null })).errors, [
    "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
  ]);
  assert.deepEqual(create(networking, "Ingress", ingress({ pathType: "x" })).errors, [
    'spec.rules[0].http.paths[0].pathType: Unsupported value: "x": supported values: "Exact", "ImplementationSpecific", "Prefix"',
  ]);
  assert.deepEqual(create(networking, "Ingress", ingress({ path: "x" })).errors, [
    'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path',
  ]);
  assert.deepEqual(create(networking, "Ingress", ingress({ backend: {} })).errors, [
    'spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required',
  ]);
  assert.match(
    create(networking, "Ingress", { spec: {} }).errors.join(),
    /^spec: Invalid value: \{\}: either `defaultBackend` or `rules` must be specified$/,
  );
  const old = create(networking, "Ingress", {
    metadata: { name: "x", namespace: "n", annotations: { "kubernetes.io/ingress.class": "c" } },
    ...ingress({}),
  }).object;
  assert.equal(resourceOf(networking, "Ingress").warnings(old).length, 1);
});

test("wildcard hosts and addresses as hosts", () => {
  const host = (name: string): readonly string[] =>
    create("networking.k8s.io/v1", "Ingress", {
      spec: { rules: [{ host: name }] },
    }).errors;
  assert.deepEqual(host("*.example.com"), []);
  assert.match(host("a.*.com").join(), /a wildcard DNS-1123 subdomain must start with/);
  assert.match(host("10.0.0.1").join(), /must be a DNS name, not an IP address/);
});

test("a NetworkPolicy's types follow from its rules", () => {
  const types = (spec: JsonObject): unknown =>
    at(
      create("networking.k8s.io/v1", "NetworkPolicy", { spec: { podSelector: {}, ...spec } }).object,
      "spec",
      "policyTypes",
    );
  assert.deepEqual(types({}), ["Ingress"]);
  assert.deepEqual(types({ egress: [{}] }), ["Ingress", "Egress"]);
  assert.deepEqual(types({ policyTypes: ["Egress"] }), ["Egress"]);
});

test("a NetworkPolicy's peers", () => {
  const peer = (from: JsonObject): readonly string[] =>
    create("networking.k8s.io/v1", "NetworkPolicy", {
      spec: { podSelector: {}, ingress: [{ from: [from] }] },
    }).errors;
  assert.deepEqual(peer({ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } }), []);
  assert.deepEqual(peer({}), ["spec.ingress[0].from[0]: Required value: must specify a peer"]);
  assert.match(peer({ ipBlock: { cidr: "10.0.0.0/40" } }).join(), /must be a valid CIDR value/);
  assert.match(
    peer({ ipBlock: { cidr: "10.0.0.0/8", except: ["11.0.0.0/16"] } }).join(),
    /must be a strict subset of `cidr`/,
  );
  assert.match(
    peer({ ipBlock: { cidr: "10.0.0.0/8" }, podSelector: {} }).join(),
    /may not specify both ipBlock and another peer/,
  );
});

test("classes, addresses and ranges", () => {
  assert.deepEqual(create("networking.k8s.io/v1", "IngressClass", { spec: {} }).errors, [
    "spec.controller: Required value",
  ]);
  const scoped = create("networking.k8s.io/v1", "IngressClass", {
    spec: { controller: "a.b/c", parameters: { kind: "K", name: "n" } },
  });
  assert.equal(at(scoped.object, "spec", "parameters", "scope"), "Cluster");
  assert.match(
    create("networking.k8s.io/v1", "IPAddress", { metadata: { name: "x" }, spec: {} }).errors.join(),
    /must be a valid IP address/,
  );
  assert.deepEqual(
    create("networking.k8s.io/v1", "ServiceCIDR", { spec: { cidrs: ["10.0.0.0/16"] } }).errors,
    [],
  );
  assert.match(
    create("networking.k8s.io/v1", "ServiceCIDR", { spec: { cidrs: ["x"] } }).errors.join(),
    /must be a valid CIDR value/,
  );
});
