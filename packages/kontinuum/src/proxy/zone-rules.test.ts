/**
 * The table of what a zone may touch, key by key, and the ways a stolen zone would try to get past it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  zoneMayRead,
  zoneRules,
  zoneValueLimitBytes,
  zoneWriteRefusal,
  type ZoneScope,
} from "./zone-rules.ts";

const scope: ZoneScope = { name: "eu-hel01", uid: "u-1", region: "eu", zone: "hel01" };
const system = "kontinuum-system";
const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

function object(
  kind: string,
  name: string,
  extra: Record<string, unknown> = {},
  metadata: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind,
    metadata: { name, namespace: system, uid: "obj-1", ...metadata },
    ...extra,
  };
}

const own = { region: "eu", zone: "hel01" };
const foreign = { region: "eu", zone: "ams02" };
const placed = (place: typeof own): Record<string, unknown> => ({
  labels: { "kontinuum.sh/region": place.region, "kontinuum.sh/zone": place.zone },
});
const storage = (value: string): Record<string, unknown> => ({
  type: "Opaque",
  data: { KONTINUUM_SERVER_STORAGE: Buffer.from(value).toString("base64") },
});

const subjects = (...kinds: readonly string[]): Record<string, unknown> => ({
  subjects: kinds.map((kind) => ({ kind, name: "x" })),
});
const managed = (label: string, value = "x"): Record<string, unknown> => ({
  metadata: { labels: { [label]: value } },
});

const k = (plural: string, name: string, namespace = system): string =>
  `/registry/kontinuum.sh/${plural}/${namespace}/${name}`;

/** Key, value, whether it is read, whether an update of it (status changed) is allowed. */
const table: readonly [string, unknown, boolean, boolean][] = [
  [k("zones", "eu-hel01"), object("Zone", "eu-hel01", { spec: own }), true, true],
  [k("zones", "eu-ams02"), object("Zone", "eu-ams02", { spec: foreign }), false, false],
  [
    k("zones", "eu-hel01", "tenant"),
    object("Zone", "eu-hel01", { spec: own }, { namespace: "tenant" }),
    false,
    false,
  ],
  [
    k("talosclusters", "eu-hel01"),
    object("TalosCluster", "eu-hel01", { spec: { controlPlane: { poolRef: { name: "eu-hel01" } } } }),
    true,
    true,
  ],
  [
    k("talosclusters", "other"),
    object("TalosCluster", "other", { spec: { controlPlane: { poolRef: { name: "eu-hel01" } } } }),
    false,
    false,
  ],
  [
    k("instancepools", "eu-hel01"),
    object("InstancePool", "eu-hel01", { spec: { selector: {}, replicas: 1 } }),
    true,
    true,
  ],
  [k("instances", "a"), object("Instance", "a", { spec: {} }, placed(own)), true, true],
  [k("instances", "b"), object("Instance", "b", { spec: {} }, placed(foreign)), false, false],
  [k("instances", "c"), object("Instance", "c", { spec: {} }), false, false],
  [
    k("addons", "eu-hel01-cilium"),
    object("Addon", "eu-hel01-cilium", { spec: { talosClusterRef: { name: "eu-hel01" } } }),
    true,
    true,
  ],
  [k("addons", "x"), object("Addon", "x", { spec: { talosClusterRef: { name: "eu-ams02" } } }), false, false],
  [k("kontinuums", "pod-1"), object("Kontinuum", "pod-1", { spec: own }), true, true],
  [k("kontinuums", "hub"), object("Kontinuum", "hub", { spec: {} }), false, false],
  [k("kontinuums", "pod-2"), object("Kontinuum", "pod-2", { spec: foreign }), false, false],
  [
    `/registry/secrets/${system}/kontinuum-pod-1`,
    { ...object("Secret", "kontinuum-pod-1", storage("grpc://eu-hel01@hub:443")), apiVersion: "v1" },
    true,
    true,
  ],
  [
    `/registry/secrets/${system}/kontinuum-hub`,
    { ...object("Secret", "kontinuum-hub", storage("postgres://u:p@db/k")), apiVersion: "v1" },
    false,
    false,
  ],
  [
    `/registry/secrets/${system}/taloscluster-eu-hel01`,
    { ...object("Secret", "taloscluster-eu-hel01", { data: { kubeconfig: "x" } }), apiVersion: "v1" },
    false,
    false,
  ],
  [
    `/registry/secrets/${system}/eu-hel01-etcd-auth`,
    { ...object("Secret", "eu-hel01-etcd-auth", { data: {} }), apiVersion: "v1" },
    false,
    false,
  ],
  [
    `/registry/secrets/tenant/password`,
    { ...object("Secret", "password", { data: {} }), apiVersion: "v1" },
    false,
    false,
  ],
  [
    `/registry/coordination.k8s.io/leases/${system}/zone-u-1`,
    { ...object("Lease", "zone-u-1", { spec: {} }), apiVersion: "coordination.k8s.io/v1" },
    true,
    true,
  ],
  [
    `/registry/coordination.k8s.io/leases/${system}/zone-u-1.gc`,
    { ...object("Lease", "zone-u-1.gc", { spec: {} }), apiVersion: "coordination.k8s.io/v1" },
    true,
    true,
  ],
  [
    `/registry/coordination.k8s.io/leases/${system}/zone-u-12`,
    object("Lease", "zone-u-12", { spec: {} }),
    false,
    false,
  ],
  [
    `/registry/coordination.k8s.io/leases/${system}/zonelock-eu-hel01`,
    object("Lease", "zonelock-eu-hel01", { spec: {} }),
    false,
    false,
  ],
  ["/registry/namespaces/kontinuum-system", object("Namespace", system), true, false],
  ["/registry/namespaces/tenant", object("Namespace", "tenant"), false, false],
  ["/registry/apiextensions.k8s.io/customresourcedefinitions/zones.kontinuum.sh", {}, true, false],
  ["/registry/apiextensions.k8s.io/customresourcedefinitions/certs.cert-manager.io", {}, false, false],
  ["/registry/apiextensions.k8s.io/customresourcedefinitions/xkontinuum.sh", {}, false, false],
  ["/registry/rbac.authorization.k8s.io/clusterroles/kontinuum-admin", {}, true, false],
  ["/registry/rbac.authorization.k8s.io/clusterrolebindings/group", subjects("Group"), true, false],
  ["/registry/rbac.authorization.k8s.io/clusterrolebindings/user", subjects("User"), false, false],
  ["/registry/rbac.authorization.k8s.io/clusterrolebindings/mixed", subjects("Group", "User"), false, false],
  ["/registry/rbac.authorization.k8s.io/clusterrolebindings/nobody", subjects(), false, false],
  [
    "/registry/rbac.authorization.k8s.io/clusterrolebindings/ours",
    managed("kontinuum.sh/managed-by"),
    true,
    false,
  ],
  [
    "/registry/rbac.authorization.k8s.io/clusterrolebindings/system:x",
    managed("kubernetes.io/bootstrapping", "rbac-defaults"),
    true,
    false,
  ],
  ["/registry/rbac.authorization.k8s.io/clusterrolebindings/unreadable", null, false, false],
  [`/registry/rbac.authorization.k8s.io/roles/${system}/x`, {}, true, false],
  [`/registry/rbac.authorization.k8s.io/rolebindings/${system}/x`, subjects("Group"), true, false],
  [`/registry/rbac.authorization.k8s.io/rolebindings/${system}/y`, subjects("ServiceAccount"), false, false],
  ["/registry/rbac.authorization.k8s.io/rolebindings/tenant/x", subjects("Group"), false, false],
  ["/registry/rbac.authorization.k8s.io/roles/tenant/x", {}, false, false],
  ["/registry/apiregistration.k8s.io/apiservices/v1.", {}, true, false],
  ["/registry/admissionregistration.k8s.io/validatingwebhookconfigurations/x", {}, false, false],
  [`/registry/configmaps/${system}/x`, {}, false, false],
  ["/registry/apps/deployments/kontinuum-system/x", {}, false, false],
  ["compact_rev_key", {}, false, false],
  ["", {}, false, false],
  [
    `/registry/kontinuum.sh/zones/${system}/../${system}/eu-hel01`,
    object("Zone", "eu-hel01", { spec: own }),
    false,
    false,
  ],
  [
    `/registry/kontinuum.sh/zones/${system}/eu-hel01/`,
    object("Zone", "eu-hel01", { spec: own }),
    false,
    false,
  ],
];

for (const [key, value, reads, writes] of table) {
  test(`${reads ? "sees" : "never sees"} and ${writes ? "may update" : "never updates"} ${key || "(empty key)"}`, () => {
    assert.equal(zoneMayRead(scope, key, bytes(value)), reads);
    const changed = {
      ...(value as Record<string, unknown>),
      ...(key.includes("/kontinuums/") ? { status: { version: "v2" } } : {}),
      ...(key.includes("/leases/") ? { spec: { holderIdentity: "x" } } : {}),
      ...(/\.sh\/(?!kontinuums)/.test(key) ? { status: { conditions: [] } } : {}),
    };
    const refusal = zoneWriteRefusal(scope, key, bytes(value), bytes(changed));
    assert.equal(refusal === undefined, writes, refusal);
  });
}

test("every row of the table has a case here", () => {
  for (const { resource } of zoneRules) {
    const [plural = "", ...group] = resource.split(".");
    const prefix = group.length > 0 ? `/registry/${group.join(".")}/${plural}/` : `/registry/${plural}/`;
    assert.ok(
      table.some(([key]) => key.startsWith(prefix)),
      resource,
    );
  }
});

test("only its own process, Secret and leases may be created or deleted", () => {
  for (const [key, value, , writes] of table) {
    const whole = writes && /\/(kontinuums|secrets|leases)\//.test(key);
    assert.equal(zoneWriteRefusal(scope, key, undefined, bytes(value)) === undefined, whole, `create ${key}`);
    assert.equal(zoneWriteRefusal(scope, key, bytes(value), undefined) === undefined, whole, `delete ${key}`);
  }
});

const zoneKey = k("zones", "eu-hel01");
const zoneBefore = object(
  "Zone",
  "eu-hel01",
  { spec: { ...own, domain: "a" } },
  { finalizers: ["kontinuum.sh/zone-teardown"] },
);
const processKey = k("kontinuums", "pod-1");
const processBefore = object("Kontinuum", "pod-1", { spec: own });

test("a value that is not what the key says is refused, with the reason", () => {
  const change = (
    before: Record<string, unknown>,
    metadata: Record<string, unknown>,
    extra: Record<string, unknown> = {},
  ): Buffer =>
    bytes({
      ...before,
      ...extra,
      metadata: { ...(before["metadata"] as Record<string, unknown>), ...metadata },
    });
  const cases: [string, Record<string, unknown>, Buffer, RegExp][] = [
    [
      zoneKey,
      zoneBefore,
      change(zoneBefore, {}, { spec: { ...own, domain: "evil" } }),
      /only write the status/,
    ],
    [zoneKey, zoneBefore, change(zoneBefore, { labels: { a: "b" } }), /only write the status/],
    [zoneKey, zoneBefore, change(zoneBefore, { finalizers: [] }), /finalizers/],
    [zoneKey, zoneBefore, change(zoneBefore, { uid: "other" }), /uid/],
    [processKey, processBefore, change(processBefore, { uid: undefined }), /no uid/],
    [zoneKey, zoneBefore, change(zoneBefore, { name: "eu-ams02" }), /name does not match/],
    [zoneKey, zoneBefore, change(zoneBefore, { namespace: "tenant" }), /namespace does not match/],
    [zoneKey, zoneBefore, change(zoneBefore, {}, { kind: "Secret" }), /not valid/],
    [zoneKey, zoneBefore, Buffer.from("\xff\x00not json"), /not a JSON object/],
    [zoneKey, zoneBefore, bytes([]), /not a JSON object/],
    [zoneKey, zoneBefore, Buffer.alloc(zoneValueLimitBytes + 1, 32), /larger than/],
    [processKey, processBefore, change(processBefore, {}, { spec: foreign }), /no longer be the zone's own/],
    [processKey, processBefore, change(processBefore, {}, { spec: {} }), /no longer be the zone's own/],
    [
      processKey,
      processBefore,
      change(processBefore, { ownerReferences: [{ kind: "Namespace", name: "x", uid: "y" }] }),
      /owners/,
    ],
    [processKey, processBefore, change(processBefore, { finalizers: ["a/b"] }), /finalizers/],
  ];
  for (const [key, before, after, reason] of cases)
    assert.match(zoneWriteRefusal(scope, key, bytes(before), after) ?? "allowed", reason);
});

const owner = {
  manager: "kontinuum",
  operation: "Update",
  apiVersion: "kontinuum.sh/v1alpha2",
  time: "2026-01-01T00:00:00Z",
  fieldsType: "FieldsV1",
  fieldsV1: { "f:status": { "f:conditions": {} } },
  subresource: "status",
};

test("status, managed fields and resource version may change", () => {
  const after = {
    ...zoneBefore,
    status: { conditions: [] },
    metadata: { ...(zoneBefore["metadata"] as object), managedFields: [owner], resourceVersion: "7" },
  };
  assert.equal(zoneWriteRefusal(scope, zoneKey, bytes(zoneBefore), bytes(after)), undefined);
});

test("a Secret of its own can't be turned into another, nor another into its own", () => {
  const key = `/registry/secrets/${system}/kontinuum-pod-1`;
  const good: Record<string, unknown> = {
    ...object("Secret", "kontinuum-pod-1", storage("grpc://eu-hel01@hub:443")),
    apiVersion: "v1",
  };
  const bad = {
    ...object("Secret", "kontinuum-pod-1", storage("grpc://eu-hel011@hub:443")),
    apiVersion: "v1",
  };
  assert.match(zoneWriteRefusal(scope, key, bytes(bad), bytes(good)) ?? "", /not the zone's own/);
  assert.match(zoneWriteRefusal(scope, key, bytes(good), bytes(bad)) ?? "", /no longer/);
  const owned = {
    ...good,
    metadata: {
      ...(good["metadata"] as object),
      ownerReferences: [{ apiVersion: "kontinuum.sh/v1alpha2", kind: "Kontinuum", name: "pod-1", uid: "u" }],
    },
  };
  assert.equal(zoneWriteRefusal(scope, key, undefined, bytes(owned)), undefined);
  const foreignOwner = {
    ...good,
    metadata: {
      ...(good["metadata"] as object),
      ownerReferences: [{ kind: "Kontinuum", name: "hub", uid: "u" }],
    },
  };
  assert.match(zoneWriteRefusal(scope, key, undefined, bytes(foreignOwner)) ?? "", /owners/);
});

/** Every value here was once stored as it stands, and the hub's own reader then refused it or read something else. */
const attacks: readonly [what: string, key: string, attack: (text: string) => string | Buffer, RegExp][] = [
  ["a status nested beyond what the hub reads", zoneKey, addStatus(nested(600)), /deeper than/],
  ["a status nested deeper than any of ours", zoneKey, addStatus(nested(40)), /deeper than/],
  ["a status nested beyond the engine", zoneKey, addStatus(nested(10_000)), /deeper|JSON/],
  ["a kind twice", zoneKey, (text) => text.replace(/^\{/, '{"kind":"Evil",'), /key "kind" twice/],
  [
    "a name twice",
    zoneKey,
    (text) => text.replace('"metadata":{', '"metadata":{"name":"other",'),
    /"metadata.name" twice/,
  ],
  ["a key twice, once escaped", zoneKey, (text) => text.replace(/^\{/, '{"\\u006bind":"Evil",'), /twice/],
  ["managed fields that are a map", zoneKey, addMeta('"managedFields":{}'), /not valid/],
  ["managed fields of numbers", zoneKey, addMeta('"managedFields":[7]'), /not valid/],
  [
    "managed fields of no operation",
    zoneKey,
    addMeta('"managedFields":[{"manager":"x"}]'),
    /operation must be/,
  ],
  [
    "managed fields that are no fields",
    zoneKey,
    addMeta(`"managedFields":[${JSON.stringify({ ...owner, fieldsV1: { x: 7 } })}]`),
    /not valid/,
  ],
  [
    "managed fields of no time",
    zoneKey,
    addMeta(`"managedFields":[${JSON.stringify({ ...owner, time: "soon" })}]`),
    /time that is none/,
  ],
  ["labels that are a list", processKey, addMeta('"labels":["a"]'), /not valid/],
  ["a label that is a number", processKey, addMeta('"labels":{"a":7}'), /not valid/],
  ["a label no selector can name", processKey, addMeta('"labels":{"a b":"x"}'), /metadata.labels/],
  ["an annotation that is a map", processKey, addMeta('"annotations":{"a":{}}'), /not valid/],
  ["an empty map the API would drop", processKey, addMeta('"annotations":{}'), /form in which/],
  ["a creation time that is none", processKey, addMeta('"creationTimestamp":"soon"'), /creation/],
  [
    "a creation time that changes",
    processKey,
    addMeta('"creationTimestamp":"2026-01-01T00:00:00Z"'),
    /creation/,
  ],
  ["a deletion that begins", processKey, addMeta('"deletionTimestamp":"2026-01-01T00:00:00Z"'), /deletion/],
  ["a generation that is a text", processKey, addMeta('"generation":"1"'), /not valid/],
  ["a field of the metadata nobody knows", processKey, addMeta('"evil":1'), /metadata.evil is unknown/],
  ["another version", processKey, (text) => text.replace("v1alpha2", "v1"), /not a Kontinuum of/],
  ["conditions that are a map", zoneKey, addStatus('{"conditions":{}}'), /status.conditions/],
  ["a condition of numbers", zoneKey, addStatus('{"conditions":[1]}'), /status.conditions/],
  [
    "one condition twice",
    zoneKey,
    addStatus(
      JSON.stringify({
        conditions: Array.from({ length: 2 }, () => ({
          type: "Ready",
          status: "True",
          reason: "R",
          message: "",
          lastTransitionTime: "2026-01-01T00:00:00Z",
        })),
      }),
    ),
    /status.conditions/,
  ],
  ["a status nobody knows", zoneKey, addStatus('{"evil":1}'), /status.evil is unknown/],
  ["a heartbeat that is no time", processKey, addStatus('{"lastHeartbeatTime":"soon"}'), /lastHeartbeatTime/],
  [
    "more keys than any object has",
    zoneKey,
    addStatus(`{${Array.from({ length: 5000 }, (_, i) => `"k${i}":1`).join()}}`),
    /more than 4096 keys/,
  ],
  ["a number no double holds", zoneKey, addStatus('{"a":1e999}'), /JSON/],
  ["half a surrogate pair", zoneKey, addStatus('{"a":"\\ud800"}'), /surrogate/],
  [
    "bytes that are no UTF-8",
    zoneKey,
    (text) =>
      Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from(',"status":{"a":"\xff"}}', "latin1")]),
    /not a JSON object/,
  ],
  ["a byte order mark", zoneKey, (text) => `\ufeff${text}`, /not a JSON object/],
];

function nested(depth: number): string {
  return `${'{"x":'.repeat(depth)}1${"}".repeat(depth)}`;
}

function addStatus(status: string): (text: string) => string {
  return (text) => `${text.slice(0, -1)},"status":${status}}`;
}

function addMeta(member: string): (text: string) => string {
  return (text) => text.replace('"metadata":{', `"metadata":{${member},`);
}

for (const [what, key, attack, reason] of attacks) {
  test(`refused: ${what}`, () => {
    const before = key === zoneKey ? zoneBefore : processBefore;
    const value = Buffer.from(attack(JSON.stringify(before)));
    assert.match(zoneWriteRefusal(scope, key, bytes(before), value) ?? "allowed", reason);
  });
}

test("what a stored object lost of an older form, or has of newer defaults, does not stop a status", () => {
  const before = { ...zoneBefore, spec: { ...own, domain: "a", removed: 1 } };
  const after = { ...zoneBefore, status: { conditions: [] } };
  assert.equal(zoneWriteRefusal(scope, zoneKey, bytes(before), bytes(after)), undefined);
});

test("a Secret and a Lease are read as strictly", () => {
  const secretKey = `/registry/secrets/${system}/kontinuum-pod-1`;
  const secret = {
    ...object("Secret", "kontinuum-pod-1", storage("grpc://eu-hel01@hub:443")),
    apiVersion: "v1",
  };
  const refusal = (key: string, value: unknown): string =>
    zoneWriteRefusal(scope, key, undefined, bytes(value)) ?? "allowed";
  assert.equal(refusal(secretKey, secret), "allowed");
  assert.match(refusal(secretKey, { ...secret, type: "kubernetes.io/tls" }), /not Opaque|not valid/);
  assert.match(refusal(secretKey, { ...secret, immutable: "yes" }), /not valid/);
  assert.match(refusal(secretKey, { ...secret, evil: 1 }), /evil is unknown/);
  const leaseKey = `/registry/coordination.k8s.io/leases/${system}/zone-u-1`;
  const lease = { ...object("Lease", "zone-u-1"), apiVersion: "coordination.k8s.io/v1" };
  assert.match(refusal(leaseKey, { ...lease, spec: { leaseDurationSeconds: "7" } }), /not valid/);
  assert.match(refusal(leaseKey, { ...lease, spec: { renewTime: "soon" } }), /not valid/);
  assert.equal(
    refusal(leaseKey, { ...lease, spec: { renewTime: "2026-01-01T00:00:00.000000Z" } }),
    "allowed",
  );
});

test("whatever the key and the bytes: an answer, never an exception", () => {
  const keys = fc.oneof(fc.string(), fc.constantFrom(...table.map(([key]) => key)));
  const values = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc.json().map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(
      keys,
      fc.option(values, { nil: undefined }),
      fc.option(values, { nil: undefined }),
      (key, before, after) => {
        zoneMayRead(scope, key, before ?? Buffer.alloc(0));
        zoneWriteRefusal(scope, key, before, after);
      },
    ),
    { numRuns: 500 },
  );
});
