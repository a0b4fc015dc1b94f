/**
 * Options of writes as clients may send them wrongly: a delete that means something else than it says removes nothing.
 */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { encodeProtobuf } from "../codec/index.ts";
import { startServer, type Reply, type ServerFixture } from "../server.fixture.ts";

const cms = "/api/v1/namespaces/default/configmaps";
const pods = "/api/v1/namespaces/default/pods";
let fixture: ServerFixture;
const ask = (method: string, path: string, body?: unknown, type?: string): Promise<Reply> =>
  fixture.ask(method, path, body, type === undefined ? {} : { "content-type": type });

before(async () => {
  fixture = await startServer({ kinds: ["namespaces", "configmaps", "pods"] });
});
after(() => fixture.stop());
beforeEach(() => ask("POST", cms, { metadata: { name: "kept" } }));

const isThere = async (): Promise<boolean> => (await ask("GET", `${cms}/kept`)).status === 200;

const big = "99999999999999999999";
const wrong: readonly string[] = [
  '{"preconditions":{"uid":5}}',
  '{"preconditions":{"uid":["a"]}}',
  '{"preconditions":{"resourceVersion":1}}',
  '{"preconditions":{"resourceVersion":true}}',
  `{"preconditions":{"resourceVersion":${big}}}`,
  '{"preconditions":"uid"}',
  '{"preconditions":["uid"]}',
  '{"dryRun":"All"}',
  '{"dryRun":true}',
  '{"dryRun":[1]}',
  `{"dryRun":[${big}]}`,
  '{"dryRun":{}}',
  '{"propagationPolicy":5}',
  '{"propagationPolicy":["Orphan"]}',
  `{"propagationPolicy":${big}}`,
  '{"orphanDependents":"true"}',
  '{"orphanDependents":1}',
  '{"gracePeriodSeconds":"0"}',
  '{"gracePeriodSeconds":0.5}',
  `{"gracePeriodSeconds":${big}}`,
  '{"gracePeriodSeconds":1e300}',
  '{"ignoreStoreReadErrorWithClusterBreakingPotential":"no"}',
  '{"ignoreStoreReadErrorWithClusterBreakingPotential":0}',
  '{"kind":"Pod"}',
  '{"kind":{"toString":1}}',
  `{"kind":${big}}`,
];

for (const body of wrong) {
  test(`a delete with ${body} is 400 and removes nothing`, async () => {
    for (const path of [`${cms}/kept`, cms]) {
      const answer = await ask("DELETE", path, body);
      assert.equal(answer.status, 400, answer.text);
      assert.doesNotMatch(answer.text, /bigint/i);
    }
    assert.ok(await isThere());
  });
}

test("values that are not supported are 422", async () => {
  for (const body of [
    { dryRun: ["all"] },
    { dryRun: [""] },
    { propagationPolicy: "background" },
    { propagationPolicy: "Orphan", orphanDependents: false },
  ])
    assert.equal((await ask("DELETE", `${cms}/kept`, body)).status, 422, JSON.stringify(body));
  for (const query of ["dryRun=all", "propagationPolicy=Later"])
    assert.equal((await ask("DELETE", `${cms}/kept?${query}`)).status, 422, query);
  for (const query of ["gracePeriodSeconds=soon", "gracePeriodSeconds=0x1", "gracePeriodSeconds=1e1"])
    assert.equal((await ask("DELETE", `${cms}/kept?${query}`)).status, 400, query);
  assert.ok(await isThere());
});

test("null is no option, and preconditions that hold let the delete through", async () => {
  const uid = (await ask("GET", `${cms}/kept`)).at("metadata", "uid");
  const nothing = { dryRun: null, propagationPolicy: null, preconditions: { uid, resourceVersion: null } };
  assert.equal((await ask("DELETE", `${cms}/kept`, { preconditions: { uid: "" } })).status, 409);
  assert.equal((await ask("DELETE", `${cms}/kept`, nothing)).status, 200);
  assert.ok(!(await isThere()));
});

test("protobuf carries the option to delete what can't be decoded", async () => {
  const sent = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ignoreStoreReadErrorWithClusterBreakingPotential: true,
  };
  const bytes = encodeProtobuf(sent);
  assert.ok(bytes);
  await fixture.put("/registry/configmaps/default/bad", "\u0000");
  const transport = fixture.server.transport(fixture.server.loopback);
  const type = "application/vnd.kubernetes.protobuf";
  const answer = await transport({
    method: "DELETE",
    path: `${cms}/bad`,
    headers: { "content-type": type },
    body: bytes,
  });
  for await (const _ of answer.body);
  assert.equal(answer.status, 200);
});

test("an eviction is dry when either place says so, and its options are checked", async () => {
  const made = await ask("POST", pods, {
    metadata: { name: "p" },
    spec: { containers: [{ name: "c", image: "i" }] },
  });
  assert.equal(made.status, 201, made.text);
  const evict = async (query: string, deleteOptions: unknown): Promise<number> => {
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "p" }, deleteOptions };
    return (await ask("POST", `${pods}/p/eviction${query}`, body)).status;
  };
  assert.equal(await evict("?dryRun=All", {}), 201);
  assert.equal(await evict("", { dryRun: ["All"] }), 201);
  assert.equal(await evict("?dryRun=yes", {}), 422);
  assert.equal(await evict("", { preconditions: { uid: 5 } }), 400);
  assert.equal(await evict("", "All"), 400);
  assert.equal((await ask("GET", `${pods}/p`)).status, 200);
  assert.equal(await evict("", undefined), 201);
  assert.equal((await ask("GET", `${pods}/p`)).status, 404);
});

test("options of creates and patches that say nothing supported change nothing", async () => {
  const version = (await ask("GET", `${cms}/kept`)).at("metadata", "resourceVersion");
  const manager = encodeURIComponent("é".repeat(65));
  for (const query of ["dryRun=all", "dryRun=true", "fieldValidation=strict", `fieldManager=${manager}`]) {
    assert.equal((await ask("POST", `${cms}?${query}`, { metadata: { name: "new" } })).status, 422, query);
    for (const type of ["application/merge-patch+json", "application/strategic-merge-patch+json"]) {
      const answer = await ask("PATCH", `${cms}/kept?${query}`, { data: { a: "b" } }, type);
      assert.equal(answer.status, 422, query);
    }
  }
  const merge = "application/merge-patch+json";
  for (const force of ["true", "false", "True", "yes", ""])
    assert.equal((await ask("PATCH", `${cms}/kept?force=${force}`, {}, merge)).status, 422, force);
  assert.equal((await ask("GET", `${cms}/new`)).status, 404);
  assert.equal((await ask("GET", `${cms}/kept`)).at("metadata", "resourceVersion"), version);
});
