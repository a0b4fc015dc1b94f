import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { create, resourceOf, update } from "../strategy.fixture.ts";
import { pullPolicy } from "./pod-defaults.ts";

const pod = (spec: JsonObject = {}, container: JsonObject = {}): JsonObject => ({
  spec: { containers: [{ name: "c", image: "nginx:1", ...container }], ...spec },
});

test("images without a tag, or with latest, are always pulled", () => {
  for (const [image, policy] of [
    ["nginx", "Always"],
    ["nginx:latest", "Always"],
    ["nginx:1.27", "IfNotPresent"],
    ["registry:5000/nginx", "Always"],
    ["registry:5000/nginx:1", "IfNotPresent"],
    ["nginx@sha256:0123", "IfNotPresent"],
    ["nginx:latest@sha256:0123", "IfNotPresent"],
    ["", "IfNotPresent"],
  ] as const) {
    assert.equal(pullPolicy(image), policy, image);
  }
});

test("probes, ports, volumes and environment get their defaults", () => {
  const { object, errors } = create(
    "v1",
    "Pod",
    pod(
      {
        volumes: [
          { name: "none" },
          { name: "secret", secret: { secretName: "s" } },
          { name: "host", hostPath: { path: "/x" } },
          { name: "token", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
        ],
      },
      {
        ports: [{ containerPort: 80 }],
        livenessProbe: { httpGet: { port: 80 } },
        env: [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
        resources: { limits: { cpu: "1", memory: "1Gi" } },
      },
    ),
  );
  assert.deepEqual(errors, []);
  assert.deepEqual(at(object, "spec", "volumes"), [
    { name: "none", emptyDir: {} },
    { name: "secret", secret: { secretName: "s", defaultMode: 420 } },
    { name: "host", hostPath: { path: "/x", type: "" } },
    {
      name: "token",
      projected: {
        defaultMode: 420,
        sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 3600 } }],
      },
    },
  ]);
  assert.deepEqual(at(object, "spec", "containers", 0, "livenessProbe"), {
    httpGet: { path: "/", port: 80, scheme: "HTTP" },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  assert.deepEqual(at(object, "spec", "containers", 0, "ports"), [{ containerPort: 80, protocol: "TCP" }]);
  assert.equal(at(object, "spec", "containers", 0, "env", 0, "valueFrom", "fieldRef", "apiVersion"), "v1");
  assert.deepEqual(at(object, "spec", "containers", 0, "resources", "requests"), { cpu: "1", memory: "1Gi" });
  assert.equal(at(object, "spec", "enableServiceLinks"), true);
  assert.deepEqual(object["status"], { phase: "Pending", qosClass: "Guaranteed" });
});

const refused: readonly (readonly [string, JsonObject, string])[] = [
  [
    "a bad container name",
    pod({}, { name: "A_b" }),
    'spec.containers[0].name: Invalid value: "A_b": a lowercase RFC 1123 label',
  ],
  [
    "a port out of range",
    pod({}, { ports: [{ containerPort: 70000 }] }),
    "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
  ],
  [
    "an unknown pull policy",
    pod({}, { imagePullPolicy: "Often" }),
    'spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"',
  ],
  [
    "an unknown DNS policy",
    pod({ dnsPolicy: "x" }),
    'spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
  ],
  [
    "a request above its limit",
    pod({}, { resources: { limits: { cpu: "1" }, requests: { cpu: "2" } } }),
    'spec.containers[0].resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1',
  ],
  [
    "two volume sources",
    pod({ volumes: [{ name: "v", emptyDir: {}, hostPath: { path: "/x" } }] }),
    "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
  ],
  [
    "two handlers",
    pod({}, { livenessProbe: { exec: { command: ["a"] }, tcpSocket: { port: 1 } } }),
    "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
  ],
  [
    "no handler",
    pod({}, { livenessProbe: { periodSeconds: 1 } }),
    "spec.containers[0].livenessProbe: Required value: must specify a handler type",
  ],
  [
    "a bad toleration",
    pod({ tolerations: [{ operator: "Equal" }] }),
    'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty',
  ],
  [
    "an environment variable with =",
    pod({}, { env: [{ name: "a=b" }] }),
    'spec.containers[0].env[0].name: Invalid value: "a=b"',
  ],
  [
    "a bad affinity weight",
    pod({
      affinity: {
        podAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 0, podAffinityTerm: { topologyKey: "k" } },
          ],
        },
      },
    }),
    "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
  ],
];

for (const [what, body, expected] of refused) {
  test(`a Pod with ${what} is refused`, () => {
    const { errors } = create("v1", "Pod", body);
    assert.equal(errors.length, 1, errors.join("\n"));
    assert.ok(errors[0]?.startsWith(expected), errors[0]);
  });
}

test("of a running pod only images and a few more may change", () => {
  const { object: old } = create("v1", "Pod", pod());
  const image = structuredClone(old);
  Object.assign(at(image, "spec", "containers", 0) as JsonObject, { image: "nginx:2" });
  assert.deepEqual(update(old, image).errors, []);
  const command = structuredClone(old);
  Object.assign(at(command, "spec", "containers", 0) as JsonObject, { command: ["x"] });
  assert.match(
    update(old, command).errors.join(),
    /^spec: Forbidden: pod updates may not change fields other than/,
  );
});

test("ephemeral containers come in through their own door", () => {
  const { object: old } = create("v1", "Pod", pod());
  const wanted = structuredClone(old);
  Object.assign(wanted["spec"] as JsonObject, {
    ephemeralContainers: [{ name: "debug", image: "busybox" }],
    nodeName: "elsewhere",
  });
  const { object } = update(old, wanted, "ephemeralcontainers");
  assert.equal(at(object, "spec", "ephemeralContainers", 0, "name"), "debug");
  assert.equal(at(object, "spec", "nodeName"), undefined);
});

test("deprecated labels and doubled variables are warned about", () => {
  const { object } = create(
    "v1",
    "Pod",
    pod(
      { nodeSelector: { "beta.kubernetes.io/os": "linux" } },
      {
        env: [
          { name: "A", value: "1" },
          { name: "A", value: "2" },
        ],
      },
    ),
  );
  assert.deepEqual(resourceOf("v1", "Pod").warnings(object), [
    'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
    'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
  ]);
});
