/**
 * Stored bytes that can't be decoded: who may remove them, and what their owners, dependents and namespaces do.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { staticTokens } from "../auth/authenticators.ts";
import { eventually, startServer, type Reply, type ServerFixture } from "../server.fixture.ts";

const option = "ignoreStoreReadErrorWithClusterBreakingPotential";
const cms = "/api/v1/namespaces/default/configmaps";
const secrets = "/api/v1/namespaces/default/secrets";
const keyOf = (name: string): string => `/registry/configmaps/default/${name}`;
/** Parses as JSON, but is no ConfigMap: the uid can be read, the object can't. */
const strange = (uid: string): string =>
  `{"apiVersion":"v1","kind":"Strange","metadata":{"name":"x","uid":"${uid}","finalizers":["example.io/keep"]}}`;

let fixture: ServerFixture;
const ask = (method: string, path: string, body?: unknown): Promise<Reply> => fixture.ask(method, path, body);

before(async () => {
  fixture = await startServer(
    {
      kinds: [
        "namespaces",
        "configmaps",
        "secrets",
        "customresourcedefinitions.apiextensions.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
      ],
    },
    { [keyOf("never-read")]: "\u0000garbage" },
  );
});
after(() => fixture.stop());

test("a delete removes nothing it can't decode unless it says so", async () => {
  await fixture.put(keyOf("a"), "\u0000garbage");
  const plain = await ask("DELETE", `${cms}/a`);
  assert.equal(plain.status, 500);
  assert.equal(plain.at("reason"), "StorageReadError");
  assert.match(plain.text, new RegExp(`${option}=true`));
  assert.equal((await ask("DELETE", `${cms}/a`, { [option]: false })).status, 500);
  assert.equal((await ask("DELETE", `${cms}/a?${option}=false`)).status, 500);
  assert.equal((await ask("DELETE", `${cms}/a`, { [option]: "true" })).status, 400);
  assert.equal((await ask("GET", `${cms}/a`)).status, 500, "still there");
  assert.equal((await ask("DELETE", `${cms}/a`, { [option]: true, dryRun: ["All"] })).status, 200);
  assert.equal((await ask("GET", `${cms}/a`)).status, 500, "a dry run removed nothing");
  assert.equal((await ask("DELETE", `${cms}/a`, { [option]: true })).status, 200);
  assert.equal((await ask("GET", `${cms}/a`)).status, 404);
});

test("preconditions are checked on what can be read", async () => {
  await fixture.put(keyOf("b"), strange("uid-b"));
  const remove = (preconditions: object): Promise<Reply> =>
    ask("DELETE", `${cms}/b`, { [option]: true, preconditions });
  assert.equal((await remove({ uid: "another" })).status, 409);
  assert.equal((await remove({ resourceVersion: "1" })).status, 409);
  assert.equal((await ask("GET", `${cms}/b`)).status, 500);
  const done = await remove({ uid: "uid-b" });
  assert.equal(done.status, 200);
  assert.equal(done.at("details", "uid"), "uid-b");
  await fixture.put(keyOf("c"), "\u0000garbage");
  const unknown = await ask("DELETE", `${cms}/c`, { [option]: true, preconditions: { uid: "uid-c" } });
  assert.equal(unknown.status, 409, "a uid that can't be read does not match");
  assert.equal((await ask("DELETE", `${cms}/c`, { [option]: true })).status, 200);
});

test("it needs a permission of its own", async () => {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const own = await startServer(
    {
      auth: {
        authenticators: [staticTokens([{ token: "t", user: { name: "u", groups: [] } }])],
        authorizers: [],
      },
    },
    { [keyOf("d")]: "\u0000garbage" },
  );
  const grant = async (name: string, verb: string): Promise<void> => {
    const role = {
      metadata: { name },
      rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: [verb] }],
    };
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
    const binding = { metadata: { name }, roleRef, subjects: [{ kind: "User", name: "u" }] };
    assert.equal((await own.ask("POST", `${rbac}/clusterroles`, role)).status, 201);
    assert.equal((await own.ask("POST", `${rbac}/clusterrolebindings`, binding)).status, 201);
  };
  const remove = async (): Promise<number> => {
    const transport = own.server.transport({ name: "u", groups: ["system:authenticated"] });
    const response = await transport({ method: "DELETE", path: `${cms}/d?${option}=true`, headers: {} });
    for await (const _ of response.body);
    return response.status;
  };
  try {
    await grant("deleter", "delete");
    assert.equal(await remove(), 403);
    assert.equal((await own.ask("GET", `${cms}/d`)).status, 500, "still there");
    await grant("breaker", "unsafe-delete-ignore-read-errors");
    await eventually("the permission", async () => (await remove()) === 200);
  } finally {
    await own.stop();
  }
});

test("the option changes nothing for an object that can be decoded", async () => {
  await ask("POST", cms, { metadata: { name: "held", finalizers: ["example.io/keep"] } });
  assert.equal((await ask("DELETE", `${cms}/held`, { [option]: true })).status, 200);
  const held = await ask("GET", `${cms}/held`);
  assert.equal(held.status, 200);
  assert.equal(typeof held.at("metadata", "deletionTimestamp"), "string");
});

test("admission is asked", async () => {
  const group = "/apis/admissionregistration.k8s.io/v1";
  const policy = await ask("POST", `${group}/validatingadmissionpolicies`, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: "no-deletes" },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: [""], apiVersions: ["v1"], operations: ["DELETE"], resources: ["configmaps"] },
        ],
      },
      validations: [{ expression: "request.name != 'guarded'", message: "stays" }],
    },
  });
  assert.equal(policy.status, 201, policy.text);
  const binding = await ask("POST", `${group}/validatingadmissionpolicybindings`, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name: "no-deletes" },
    spec: { policyName: "no-deletes", validationActions: ["Deny"] },
  });
  assert.equal(binding.status, 201, binding.text);
  await fixture.put(keyOf("guarded"), "\u0000garbage");
  await fixture.put(keyOf("other"), "\u0000garbage");
  await eventually(
    "the policy",
    async () => (await ask("DELETE", `${cms}/guarded?dryRun=All&${option}=true`)).status === 422,
  );
  assert.equal((await ask("DELETE", `${cms}/guarded?${option}=true`)).status, 422);
  assert.equal((await ask("DELETE", `${cms}/other?${option}=true`)).status, 200);
  await ask("DELETE", `${group}/validatingadmissionpolicybindings/no-deletes`);
  await eventually(
    "the policy's end",
    async () => (await ask("DELETE", `${cms}/guarded?${option}=true`)).status === 200,
  );
});

test("a collection keeps what it can't decode and says so", async () => {
  const ns = "/api/v1/namespaces/collection";
  await ask("POST", "/api/v1/namespaces", { metadata: { name: "collection" } });
  await ask("POST", `${ns}/secrets`, { metadata: { name: "good", labels: { a: "b" } } });
  await fixture.put("/registry/secrets/collection/bad", "\u0000garbage");
  assert.equal((await ask("DELETE", `${ns}/secrets`, { [option]: true })).status, 422);
  const selected = await ask("DELETE", `${ns}/secrets?labelSelector=a%3Dnothing`);
  assert.equal(selected.status, 200);
  const all = await ask("DELETE", `${ns}/secrets`);
  assert.equal(all.status, 500);
  assert.equal(all.at("reason"), "StorageReadError");
  assert.equal((await ask("GET", `${ns}/secrets/good`)).status, 404);
  assert.equal((await ask("GET", `${ns}/secrets/bad`)).status, 500);
});

test("a namespace waits for what can't be decoded", async () => {
  const ns = "/api/v1/namespaces/going";
  await ask("POST", "/api/v1/namespaces", { metadata: { name: "going" } });
  await fixture.put("/registry/secrets/going/bad", "\u0000garbage");
  assert.equal((await ask("DELETE", ns)).status, 200);
  await eventually("the condition", async () => /can't be decoded/.test((await ask("GET", ns)).text));
  assert.equal((await ask("GET", `${ns}/secrets/bad`)).status, 500);
  assert.equal((await ask("DELETE", `${ns}/secrets/bad?${option}=true`)).status, 200);
  await eventually("the namespace's end", async () => (await ask("GET", ns)).status === 404);
});

test("a definition waits for objects of its that can't be decoded", async () => {
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const made = await ask("POST", crds, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.io" },
    spec: {
      group: "example.io",
      scope: "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [
        { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } },
      ],
    },
  });
  assert.equal(made.status, 201, made.text);
  const widgets = "/apis/example.io/v1/namespaces/default/widgets";
  await eventually("the resource", async () => (await ask("GET", widgets)).status === 200);
  await fixture.put("/registry/example.io/widgets/default/bad", "\u0000garbage");
  await fixture.put(
    "/registry/example.io/widgets/other/good",
    '{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"good","namespace":"other","uid":"w"}}',
  );
  assert.equal((await ask("DELETE", `${crds}/widgets.example.io`)).status, 200);
  const good = "/apis/example.io/v1/namespaces/other/widgets/good";
  await eventually("the good one's end", async () => (await ask("GET", good)).status === 404);
  assert.equal((await ask("GET", `${crds}/widgets.example.io`)).status, 200);
  assert.equal((await ask("GET", `${widgets}/bad`)).status, 500);
  assert.equal((await ask("DELETE", `${widgets}/bad?${option}=true`)).status, 200);
  await eventually(
    "the definition's end",
    async () => (await ask("GET", `${crds}/widgets.example.io`)).status === 404,
  );
});

/** A secret owned by the config map of that name. */
async function dependent(owner: string, uid: string): Promise<void> {
  const made = await ask("POST", secrets, {
    metadata: {
      name: `of-${owner}`,
      ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: owner, uid }],
    },
  });
  assert.equal(made.status, 201, made.text);
}

const collected = (owner: string): Promise<void> =>
  eventually(
    `the secret of ${owner} to go`,
    async () => (await ask("GET", `${secrets}/of-${owner}`)).status === 404,
  );

test("dependents of an owner that was never decodable go with it, and stay while it is there", async () => {
  await dependent("never-read", "u1");
  // One whose owner is absent shows that the collector has come this far.
  await dependent("nobody", "u2");
  await collected("nobody");
  assert.equal((await ask("GET", `${secrets}/of-never-read`)).status, 200);
  assert.equal((await ask("DELETE", `${cms}/never-read?${option}=true`)).status, 200);
  await collected("never-read");
});

test("dependents of an owner that broke go with it", async () => {
  const uid = String((await ask("POST", cms, { metadata: { name: "breaks" } })).at("metadata", "uid"));
  await dependent("breaks", uid);
  await fixture.put(keyOf("breaks"), strange(uid));
  assert.equal((await ask("GET", `${cms}/breaks`)).status, 500);
  await dependent("nobody", "u3");
  await collected("nobody");
  assert.equal((await ask("GET", `${secrets}/of-breaks`)).status, 200);
  await ask("DELETE", `${cms}/breaks`, { [option]: true, preconditions: { uid } });
  await collected("breaks");
});

test("owners removed past the server are noticed, decodable or not", async () => {
  const uid = String((await ask("POST", cms, { metadata: { name: "plain" } })).at("metadata", "uid"));
  await fixture.put(keyOf("rubbish"), "\u0000garbage");
  await dependent("plain", uid);
  await dependent("rubbish", "u4");
  for (const name of ["plain", "rubbish"])
    await fixture.store.txn({ success: [{ type: "delete", key: keyOf(name) }] });
  await collected("plain");
  await collected("rubbish");
});

test("the collector deletes no dependent it can't decode", async () => {
  const uid = String((await ask("POST", cms, { metadata: { name: "parent" } })).at("metadata", "uid"));
  await fixture.put(
    "/registry/secrets/default/unread",
    `{"apiVersion":"v1","kind":"Strange","metadata":{"name":"unread","uid":"u5","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"parent","uid":"${uid}"}]}}`,
  );
  await dependent("parent", uid);
  await ask("DELETE", `${cms}/parent`);
  await collected("parent");
  assert.equal((await ask("GET", `${secrets}/unread`)).status, 500);
});
