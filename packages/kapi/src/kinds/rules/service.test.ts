import assert from "node:assert/strict";
import { test } from "node:test";
import { at, seededRandom, type JsonObject } from "@kontinuum/std";
import { create, texts, update } from "../strategy.fixture.ts";
import { allocateService } from "./service-allocation.ts";

const service = (spec: JsonObject = {}): JsonObject => ({
  spec: { selector: { a: "b" }, ports: [{ port: 80 }], ...spec },
});

test("a Service gets its defaults", () => {
  const { object, errors } = create("v1", "Service", service());
  assert.deepEqual(errors, []);
  assert.deepEqual(object["spec"], {
    selector: { a: "b" },
    ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
    type: "ClusterIP",
    sessionAffinity: "None",
    internalTrafficPolicy: "Cluster",
  });
  assert.deepEqual(object["status"], { loadBalancer: {} });
  const balancer = create("v1", "Service", service({ type: "LoadBalancer" })).object;
  assert.equal(at(balancer, "spec", "externalTrafficPolicy"), "Cluster");
  assert.equal(at(balancer, "spec", "allocateLoadBalancerNodePorts"), true);
  const sticky = create("v1", "Service", service({ sessionAffinity: "ClientIP" })).object;
  assert.equal(at(sticky, "spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"), 10_800);
});

const refused: readonly (readonly [string, JsonObject, string])[] = [
  ["no port", service({ ports: [] }), "spec.ports: Required value"],
  [
    "a port of 0",
    service({ ports: [{ port: 0 }] }),
    "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
  ],
  ["two unnamed ports", service({ ports: [{ port: 1 }, { port: 2 }] }), "spec.ports[0].name: Required value"],
  [
    "an unknown type",
    service({ type: "x" }),
    'spec.type: Unsupported value: "x": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
  ],
  [
    "a node port inside",
    service({ ports: [{ port: 1, nodePort: 30_000 }] }),
    "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
  ],
  ["no external name", service({ type: "ExternalName" }), "spec.externalName: Required value"],
  [
    "an address that is none",
    service({ clusterIP: "1.2.3" }),
    'spec.clusterIPs[0]: Invalid value: "1.2.3": must be a valid IP address',
  ],
];
for (const [what, body, expected] of refused) {
  test(`a Service with ${what} is refused`, () => {
    const { errors } = create("v1", "Service", body);
    assert.ok(errors[0]?.startsWith(expected), errors.join("\n"));
  });
}

test("addresses and node ports are unique", () => {
  const random = seededRandom(1);
  const all: JsonObject[] = [];
  for (let index = 0; index < 300; index++) {
    const { object } = create("v1", "Service", {
      metadata: { name: `s${index}`, namespace: "n" },
      ...service({ type: "NodePort" }),
    });
    assert.deepEqual(allocateService(object, all, random), []);
    all.push(object);
  }
  assert.equal(new Set(all.map((item) => at(item, "spec", "clusterIP"))).size, 300);
  assert.equal(new Set(all.map((item) => at(item, "spec", "ports", 0, "nodePort"))).size, 300);
  assert.deepEqual(at(all, 0, "spec", "ipFamilies"), ["IPv4"]);
  assert.equal(at(all, 0, "spec", "ipFamilyPolicy"), "SingleStack");
});

test("a full range is said, a taken or foreign address refused", () => {
  const random = seededRandom(2);
  const tiny = { serviceCidr: "10.0.0.0/29", nodePorts: [30_000, 30_001] as const };
  const all: JsonObject[] = [];
  const next = (spec: JsonObject): readonly string[] => {
    const { object } = create("v1", "Service", {
      metadata: { name: `s${all.length}`, namespace: "n" },
      ...service(spec),
    });
    const errors = texts(allocateService(object, all, random, tiny));
    if (errors.length === 0) all.push(object);
    return errors;
  };
  assert.deepEqual(next({ clusterIP: "10.0.0.2" }), []);
  assert.match(
    next({ clusterIP: "10.0.0.2" }).join(),
    /spec.clusterIPs: Invalid value: \["10.0.0.2"\]: failed to allocate IP 10.0.0.2: provided IP is already allocated/,
  );
  assert.match(
    next({ clusterIP: "10.9.9.9" }).join(),
    /not in the valid range. The range of valid IPs is 10.0.0.0\/29/,
  );
  assert.match(
    next({ type: "NodePort", ports: [{ port: 1, nodePort: 80 }] }).join(),
    /The range of valid ports is 30000-30001/,
  );
  assert.deepEqual(next({ type: "NodePort" }), []);
  assert.deepEqual(next({ type: "NodePort" }), []);
  assert.match(next({ type: "NodePort" }).join(), /failed to allocate a nodePort: range is full/);
  assert.deepEqual(next({ clusterIP: "None" }), []);
  assert.deepEqual(next({}), []);
  assert.deepEqual(next({}), []);
  assert.match(next({}).join(), /failed to allocate a serviceIP: range is full/);
});

test("an update that does not say the address keeps it, and may not change it", () => {
  const { object: old } = create("v1", "Service", service({ type: "NodePort" }));
  assert.deepEqual(allocateService(old, [], seededRandom(3)), []);
  const bare: JsonObject = { ...structuredClone(old), ...service({ type: "NodePort" }) };
  const kept = update(old, bare);
  assert.deepEqual(kept.errors, []);
  assert.equal(at(kept.object, "spec", "clusterIP"), at(old, "spec", "clusterIP"));
  assert.equal(at(kept.object, "spec", "ports", 0, "nodePort"), at(old, "spec", "ports", 0, "nodePort"));
  const moved: JsonObject = {
    ...structuredClone(old),
    ...service({ type: "NodePort", clusterIP: "10.96.0.77" }),
  };
  assert.match(
    update(old, moved).errors.join(),
    /spec.clusterIPs\[0\]: Invalid value: \["10.96.0.77"\]: may not change once set/,
  );
  const inside = update(old, { ...structuredClone(old), ...service({ type: "ClusterIP" }) });
  assert.deepEqual(inside.errors, []);
  assert.equal(at(inside.object, "spec", "ports", 0, "nodePort"), undefined);
  assert.equal(at(inside.object, "spec", "externalTrafficPolicy"), undefined);
  const external = update(old, {
    ...structuredClone(old),
    ...service({ type: "ExternalName", externalName: "a.b" }),
  });
  assert.deepEqual(external.errors, []);
  assert.equal(at(external.object, "spec", "clusterIP"), undefined);
});

test("endpoints", () => {
  const { errors } = create("v1", "Endpoints", {
    subsets: [{ addresses: [{ ip: "127.0.0.1" }], ports: [{ port: 80 }] }],
  });
  assert.deepEqual(errors, [
    'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
  ]);
  const slice = create("discovery.k8s.io/v1", "EndpointSlice", {
    addressType: "IPv4",
    endpoints: [{ addresses: ["::1"] }],
    ports: [{ port: 80 }],
  });
  assert.deepEqual(slice.errors, [
    'endpoints[0].addresses[0]: Invalid value: "::1": must be an IPv4 address',
  ]);
  assert.deepEqual(slice.object["ports"], [{ port: 80, name: "", protocol: "TCP" }]);
});
