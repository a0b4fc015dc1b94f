/**
 * Policies and match conditions that ask who may do what, and expressions that are refused when they are written.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { UserInfo } from "../contract.ts";
import { eventually, startServer, type ServerFixture } from "../server.fixture.ts";

const admissions = "/apis/admissionregistration.k8s.io/v1";
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const cms = "/api/v1/namespaces/default/configmaps";
let fixture: ServerFixture;

before(async () => {
  fixture = await startServer({
    kinds: [
      "namespaces",
      "configmaps",
      ...["clusterroles", "clusterrolebindings"].map((kind) => `${kind}.rbac.authorization.k8s.io`),
      ...[
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
      ].map((kind) => `${kind}.admissionregistration.k8s.io`),
    ],
    auth: {
      authenticators: [{ name: "nobody", authenticate: () => Promise.resolve(undefined) }],
      authorizers: [],
    },
  });
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["create"] }];
  await fixture.ask("POST", `${rbac}/clusterroles`, { metadata: { name: "writer" }, rules });
  const more = [
    ...rules,
    { apiGroups: [""], resources: ["configmaps"], verbs: ["approve"], resourceNames: ["right"] },
    { nonResourceURLs: ["/special"], verbs: ["get"] },
  ];
  await fixture.ask("POST", `${rbac}/clusterroles`, { metadata: { name: "approver" }, rules: more });
  for (const [name, subject] of [
    ["writer", { kind: "User", name: "u" }],
    ["approver", { kind: "User", name: "v" }],
    ["approver", { kind: "ServiceAccount", name: "sa", namespace: "default" }],
  ] as const) {
    const body = {
      metadata: { generateName: "b-" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [subject],
    };
    assert.equal((await fixture.ask("POST", `${rbac}/clusterrolebindings`, body)).status, 201);
  }
});
after(() => fixture.stop());

const policy = (name: string, spec: object): object => ({
  metadata: { name },
  spec: {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] },
      ],
    },
    ...spec,
  },
});

/** Creates a ConfigMap as somebody; answers the status code. */
async function create(user: string, name: string): Promise<number> {
  const as: UserInfo = { name: user, groups: ["system:authenticated"] };
  const response = await fixture.server.transport(as)({
    method: "POST",
    path: `${cms}?dryRun=All`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ metadata: { name } }),
  });
  for await (const _chunk of response.body);
  return response.status;
}

const expressions = [
  "authorizer.requestResource.check('approve').allowed()",
  "authorizer.group('').resource('configmaps').namespace('default').name(object.metadata.name).check('approve').allowed()",
  "authorizer.path('/special').check('get').allowed() && object.metadata.name == 'right'",
  "!has(object.data) && variables.may.allowed() && !variables.may.errored() && variables.may.reason() != 'x'",
];

for (const [index, expression] of expressions.entries()) {
  test(`a policy asks for the user: ${expression}`, async () => {
    const name = `p${index}`;
    const variables = [{ name: "may", expression: "authorizer.requestResource.check('approve')" }];
    const made = await fixture.ask(
      "POST",
      `${admissions}/validatingadmissionpolicies`,
      policy(name, { variables, validations: [{ expression }] }),
    );
    assert.equal(made.status, 201, made.text);
    const bindings = `${admissions}/validatingadmissionpolicybindings`;
    const spec = { policyName: name, validationActions: ["Deny"] };
    assert.equal((await fixture.ask("POST", bindings, { metadata: { name }, spec })).status, 201);
    await eventually("the refusal", async () => (await create("u", "right")) === 422);
    assert.equal(await create("v", "right"), 201);
    assert.equal(await create("v", "wrong"), 422);
    await fixture.ask("DELETE", `${bindings}/${name}`);
    await fixture.ask("DELETE", `${admissions}/validatingadmissionpolicies/${name}`);
    await eventually("the end of the policy", async () => (await create("u", "right")) === 201);
  });
}

test("a policy asks for a service account", async () => {
  const check = "group('').resource('configmaps').name('right').check('approve').allowed()";
  const expression = `authorizer.serviceAccount('default', 'sa').${check} && !authorizer.serviceAccount('default', 'other').${check}`;
  await fixture.ask(
    "POST",
    `${admissions}/validatingadmissionpolicies`,
    policy("account", { validations: [{ expression: `!(${expression})` }] }),
  );
  const spec = { policyName: "account", validationActions: ["Deny"] };
  const bindings = `${admissions}/validatingadmissionpolicybindings`;
  await fixture.ask("POST", bindings, { metadata: { name: "account" }, spec });
  await eventually("the refusal", async () => (await create("u", "any")) === 422);
  await fixture.ask("DELETE", `${bindings}/account`);
});

const wrong: readonly (readonly [string, object, RegExp])[] = [
  [
    "syntax",
    { validations: [{ expression: "a b" }] },
    /spec\.validations\[0\]\.expression: Invalid value: "a b": compilation failed: ERROR: <input>:1:3/,
  ],
  ["no boolean", { validations: [{ expression: "1" }] }, /must evaluate to bool but got int/],
  ["no parameters", { validations: [{ expression: "params.x" }] }, /undeclared reference to 'params'/],
  ["unknown variable", { validations: [{ expression: "variables.x == 1" }] }, /undefined field 'x'/],
  [
    "unknown part of the request",
    { validations: [{ expression: "request.nope == 1" }] },
    /undefined field 'nope'/,
  ],
  [
    "no text",
    { validations: [{ expression: "true", messageExpression: "1" }] },
    /messageExpression: .*must evaluate to string/,
  ],
  [
    "a variable before its time",
    {
      variables: [
        { name: "a", expression: "variables.b" },
        { name: "b", expression: "1" },
      ],
      validations: [{ expression: "true" }],
    },
    /spec\.variables\[0\]\.expression: .*undefined field 'b'/s,
  ],
  [
    "a condition",
    { matchConditions: [{ name: "a", expression: "variables.x" }], validations: [{ expression: "true" }] },
    /spec\.matchConditions\[0\]\.expression: .*undeclared reference to 'variables'/s,
  ],
];

for (const [what, spec, expected] of wrong) {
  test(`a policy that can't be used is refused: ${what}`, async () => {
    const url = `${admissions}/validatingadmissionpolicies`;
    const answer = await fixture.ask("POST", url, policy("bad", spec));
    assert.equal(answer.status, 422);
    assert.match(String(answer.at("message")), expected);
  });
}

test("a webhook's condition that can't be used is refused", async () => {
  const webhook = (expression: string): object => ({
    metadata: { name: "hook" },
    webhooks: [
      {
        name: "a.example.io",
        clientConfig: { url: "https://127.0.0.1/" },
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        matchConditions: [{ name: "a", expression }],
      },
    ],
  });
  const url = `${admissions}/validatingwebhookconfigurations?dryRun=All`;
  const answer = await fixture.ask("POST", url, webhook("invalid("));
  assert.equal(answer.status, 422);
  assert.match(
    String(answer.at("message")),
    /webhooks\[0\]\.matchConditions\[0\]\.expression: .*compilation failed/s,
  );
  const asks = "authorizer.requestResource.check('create').allowed()";
  assert.equal((await fixture.ask("POST", url, webhook(asks))).status, 201);
});
