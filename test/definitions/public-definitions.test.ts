/**
 * Definitions of public projects (third_party/crds) as an API server meets them: each is accepted unchanged, and
 * their rules, defaults and lists hold for objects from their documentation.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { parseAllDocuments } from "yaml";
import type { ResourceDefinition } from "../../packages/kapi/src/resource.ts";
import { cloneJson } from "../../packages/kapi/src/json/json.ts";
import { compileCrd, validateCrd } from "../../packages/kapi/src/crd/index.ts";

const folder = new URL("../../third_party/crds/", import.meta.url);

const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".yaml"),
);

function read(file: string): readonly JsonObject[] {
  return parseAllDocuments(readFileSync(new URL(file, folder), "utf8"))
    .map((document): unknown => document.toJS({ maxAliasCount: 0 }))
    .filter(isObject)
    .filter((value) => value["kind"] === "CustomResourceDefinition");
}

function resourceOf(file: string, version: string): ResourceDefinition {
  for (const manifest of read(file)) {
    const found = compileCrd(manifest).find((resource) => resource.version === version);
    if (found) return found;
  }
  throw new Error(`${file} has no version ${version}`);
}

const context = { user: { name: "u", groups: [] }, now: 0, subresource: "" };

function prepared(resource: ResourceDefinition, spec: JsonObject): JsonObject {
  const { group, version, kind } = resource;
  const object = {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name: "x", namespace: "ns" },
    spec: cloneJson(spec),
  };
  assert.deepEqual(resource.prune(object), []);
  resource.applyDefaults(object);
  return object;
}

/** Errors of creating, or of updating from `old`, as one text. */
function errors(resource: ResourceDefinition, spec: JsonObject, old?: JsonObject): string {
  const object = prepared(resource, spec);
  const found = old
    ? resource.validateUpdate(object, prepared(resource, old), context)
    : resource.validateCreate(object, context);
  return found.map((error) => `${error.field}: ${error.message}`).join("\n");
}

describe("public definitions", () => {
  for (const file of files) {
    test(`${file} is accepted`, () => {
      for (const manifest of read(file)) {
        assert.deepEqual(validateCrd(manifest), []);
        assert.deepEqual(validateCrd(manifest, manifest), []);
        for (const resource of compileCrd(manifest)) {
          const { name, schemas } = resource.openapi();
          assert.ok(schemas[name]);
          const object: JsonObject = { apiVersion: "x/v1", kind: resource.kind, metadata: { name: "x" } };
          resource.prune(object);
          resource.applyDefaults(object);
          resource.validateCreate(object, context);
          for (const column of resource.columns) column.cell(object, 0);
        }
      }
    });
  }

  test("Gateway API HTTPRoute", () => {
    const routes = resourceOf("gateway-api/gateway.networking.k8s.io_httproutes.yaml", "v1");
    const good = {
      parentRefs: [{ name: "gw" }],
      hostnames: ["example.com"],
      rules: [
        {
          matches: [{ path: { type: "PathPrefix", value: "/login" } }],
          backendRefs: [{ name: "svc", port: 8080 }],
        },
      ],
    };
    assert.equal(errors(routes, good), "");
    const object = prepared(routes, good);
    assert.equal(stringAt(object, "spec", "parentRefs", 0, "group"), "gateway.networking.k8s.io");
    const rule = (rest: JsonObject): JsonObject => ({ rules: [rest] });
    const path = (type: string, value: string): JsonObject => rule({ matches: [{ path: { type, value } }] });
    assert.match(
      errors(routes, path("PathPrefix", "nope")),
      /value must be an absolute path and start with '\/' when type one of \['Exact', 'PathPrefix'\]/,
    );
    assert.match(errors(routes, path("Exact", "/a//b")), /must not contain '\/\/'/);
    assert.match(
      errors(routes, rule({ filters: [{ type: "RequestRedirect" }] })),
      /filter\.requestRedirect must be specified for RequestRedirect filter\.type/,
    );
    assert.match(
      errors(routes, rule({ timeouts: { request: "1s", backendRequest: "2s" } })),
      /backendRequest timeout cannot be longer than request timeout/,
    );
    assert.equal(errors(routes, rule({ timeouts: { request: "2s", backendRequest: "1s" } })), "");
    assert.match(
      errors(routes, rule({ backendRefs: [{ name: "svc" }] })),
      /Must have port for Service reference/,
    );
    assert.match(
      errors(routes, { hostnames: ["Not_A_Host"] }),
      /spec\.hostnames\[0\]: Invalid value: "Not_A_Host": spec\.hostnames\[0\] in body should match/,
    );
  });

  test("Gateway API Gateway", () => {
    const gateways = resourceOf("gateway-api/gateway.networking.k8s.io_gateways.yaml", "v1");
    const listener = (rest: JsonObject): JsonObject => ({
      gatewayClassName: "c",
      listeners: [{ name: "l", port: 80, protocol: "HTTP", ...rest }],
    });
    assert.equal(errors(gateways, listener({})), "");
    assert.match(
      errors(gateways, listener({ tls: { certificateRefs: [{ name: "a" }] } })),
      /tls must not be specified for protocols \['HTTP', 'TCP', 'UDP'\]/,
    );
    assert.match(errors(gateways, listener({ protocol: "HTTPS", port: 443 })), /tls|certificateRefs|^$/);
    const twice = {
      gatewayClassName: "c",
      listeners: [
        { name: "l", port: 80, protocol: "HTTP" },
        { name: "l", port: 81, protocol: "HTTP" },
      ],
    };
    assert.match(errors(gateways, twice), /Listener name must be unique within the Gateway|Duplicate value/);
  });

  test("cert-manager Certificate", () => {
    const certificates = resourceOf("cert-manager/cert-manager.io_certificates.yaml", "v1");
    const good = { secretName: "s", issuerRef: { name: "ca" }, dnsNames: ["example.com"] };
    assert.equal(errors(certificates, good), "");
    assert.match(
      errors(certificates, { dnsNames: ["a"] }),
      /spec\.issuerRef: Required value[\s\S]*spec\.secretName: Required value|spec\.secretName: Required value/,
    );
    assert.match(
      errors(certificates, { ...good, privateKey: { algorithm: "DSA" } }),
      /spec\.privateKey\.algorithm: Unsupported value: "DSA": supported values: "RSA", "ECDSA", "Ed25519"/,
    );
  });

  test("Cluster API Machine and Cluster", () => {
    const machines = resourceOf("cluster-api/cluster.x-k8s.io_machines.yaml", "v1beta2");
    const good = {
      clusterName: "c",
      bootstrap: { dataSecretName: "s" },
      infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "DockerMachine", name: "m" },
    };
    assert.equal(errors(machines, good), "");
    assert.match(
      errors(machines, { ...good, infrastructureRef: { apiGroup: "x.y", kind: "-", name: "m" } }),
      /infrastructureRef\.kind in body should match/,
    );
    assert.match(
      errors(machines, { ...good, version: "" }),
      /spec\.version: Invalid value: "": spec\.version in body should be at least 1 chars long/,
    );
  });

  test("Cilium network policy", () => {
    const policies = resourceOf("cilium/ciliumnetworkpolicies.yaml", "v2");
    const good = {
      endpointSelector: { matchLabels: { app: "a" } },
      ingress: [{ fromEndpoints: [{ matchLabels: { role: "b" } }] }],
    };
    assert.equal(errors(policies, good), "");
    const port = (value: string): JsonObject => ({
      ...good,
      egress: [{ toPorts: [{ ports: [{ port: value, protocol: "TCP" }] }] }],
    });
    assert.equal(errors(policies, port("80")), "");
    assert.match(
      errors(policies, port("!")),
      /spec\.egress\[0\]\.toPorts\[0\]\.ports\[0\]\.port: Invalid value/,
    );
  });

  test("Flux GitRepository", () => {
    const repositories = resourceOf(
      "flux-source-controller/source.toolkit.fluxcd.io_gitrepositories.yaml",
      "v1",
    );
    const good = { url: "https://example.com/x.git", interval: "5m" };
    assert.equal(errors(repositories, good), "");
    assert.equal(stringAt(prepared(repositories, good), "spec", "timeout"), "60s");
    assert.match(errors(repositories, { ...good, url: "ftp://x" }), /spec\.url: Invalid value: "ftp:\/\/x"/);
    assert.match(errors(repositories, { ...good, interval: "soon" }), /spec\.interval/);
  });

  test("CDI DataVolume keeps what KubeVirt's objects hold", () => {
    const volumes = resourceOf("cdi/datavolume.yaml", "v1beta1");
    assert.equal(
      errors(volumes, { source: { blank: {} }, storage: { resources: { requests: { storage: "1Gi" } } } }),
      "",
    );
    assert.match(errors(volumes, { source: { http: {} } }), /spec\.source\.http\.url: Required value/);
  });
});
