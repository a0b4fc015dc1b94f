/**
 * What the released server was seen to answer, where one might guess otherwise.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { widgetCrd } from "../crd/widget.fixture.ts";
import { startServer, type Reply, type ServerFixture } from "../server.fixture.ts";

const cms = "/api/v1/namespaces/default/configmaps";
const quotas = "/api/v1/namespaces/default/resourcequotas";
const pods = "/api/v1/namespaces/default/pods";
const deployments = "/apis/apps/v1/namespaces/default/deployments";
let fixture: ServerFixture;
const merge = "application/merge-patch+json";
const ask = (method: string, path: string, body?: unknown, type?: string): Promise<Reply> =>
  fixture.ask(method, path, body, type === undefined ? {} : { "content-type": type });

const deployment = (name: string): object => ({
  metadata: { name, labels: { mine: "1" } },
  spec: {
    selector: { matchLabels: { a: "b" } },
    template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
  },
});

before(async () => {
  fixture = await startServer({
    kinds: [
      "namespaces",
      "configmaps",
      "pods",
      "resourcequotas",
      "deployments.apps",
      "ingresses.networking.k8s.io",
      "flowschemas.flowcontrol.apiserver.k8s.io",
      "leases.coordination.k8s.io",
      "customresourcedefinitions.apiextensions.k8s.io",
    ],
    crds: [widgetCrd()],
  });
  await ask("POST", cms, { metadata: { name: "a" } });
});
after(() => fixture.stop());

test("whoever writes a status may mark the object, but for kinds that say otherwise", async () => {
  const marks = { labels: { zz: "1" }, annotations: { zz: "1" }, finalizers: ["a.b/c"] };
  const marked = async (collection: string, body: object): Promise<unknown> => {
    const made = await ask("POST", collection, body);
    assert.equal(made.status, 201, made.text);
    const name = String(made.at("metadata", "name"));
    const patched = await ask("PATCH", `${collection}/${name}/status`, { metadata: marks }, merge);
    assert.equal(patched.status, 200, patched.text);
    const seen = [
      patched.at("metadata", "labels", "zz") === "1",
      patched.at("metadata", "annotations", "zz") === "1",
      Array.isArray(patched.at("metadata", "finalizers")),
    ];
    await ask("PATCH", `${collection}/${name}`, { metadata: { finalizers: null } }, merge);
    return seen;
  };
  assert.deepEqual(await marked(quotas, { metadata: { name: "q" }, spec: {} }), [true, true, true]);
  assert.deepEqual(await marked(deployments, deployment("d")), [false, true, true]);
  const schema = { metadata: { name: "f" }, spec: { priorityLevelConfiguration: { name: "x" } } };
  assert.deepEqual(await marked("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", schema), [
    false,
    false,
    false,
  ]);
  const namespace = await ask(
    "PATCH",
    "/api/v1/namespaces/default/status",
    { metadata: { annotations: { zz: "1" } } },
    merge,
  );
  assert.equal(namespace.at("metadata", "annotations", "zz"), "1");
});

test("methods without a name, negative limits, names and uids in patches", async () => {
  for (const method of ["PUT", "PATCH"]) {
    const answer = await ask(
      method,
      cms,
      { metadata: { name: "a" } },
      method === "PATCH" ? merge : undefined,
    );
    assert.equal(answer.status, 405);
    assert.equal(answer.at("message"), "the server does not allow this method on the requested resource");
  }
  assert.equal((await ask("GET", `${cms}?limit=-1`)).status, 200);
  assert.equal((await ask("GET", `${cms}?limit=x`)).status, 400);
  const renamed = await ask("PATCH", `${cms}/a`, { metadata: { name: "b" } }, merge);
  assert.equal(renamed.status, 400);
  assert.equal(renamed.at("message"), "the name of the object (b) does not match the name on the URL (a)");
  const other = await ask("PATCH", `${cms}/a`, { metadata: { uid: "x" } }, merge);
  assert.equal(other.status, 422);
  assert.equal(other.at("details", "causes", 0, "field"), "metadata.uid");
});

test("what the address says need not be said in an eviction or binding", async () => {
  const missing = await ask("POST", `${pods}/zz/eviction`, { metadata: { name: "zz" } });
  assert.equal(missing.status, 404);
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } };
  assert.equal((await ask("POST", pods, pod)).status, 201);
  const bound = await ask("POST", `${pods}/p/binding`, { target: { kind: "Node", name: "n" } });
  assert.equal(bound.status, 201, bound.text);
});

test("strictness names what a kind does not know before what stands twice; an apply names lines", async () => {
  const text =
    '{"metadata":{"name":"x"},"spec":{"unknownField":1,"replicas":1,"replicas":2,"selector":{"matchLabels":{"a":"b"}}}}';
  const strict = await ask("POST", `${deployments}?fieldValidation=Strict`, text);
  assert.equal(strict.status, 400);
  assert.match(
    String(strict.at("message")),
    /strict decoding error: unknown field "spec\.unknownField", duplicate field "spec\.replicas"/,
  );
  const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\ndata:\n  foo: a\n  foo: b\n";
  const apply = (validation: string): Promise<Reply> =>
    ask(
      "PATCH",
      `${cms}/two?fieldManager=m&fieldValidation=${validation}`,
      yaml,
      "application/apply-patch+yaml",
    );
  const refused = await apply("Strict");
  assert.equal(refused.status, 400);
  assert.match(String(refused.at("message")), /line 7: key "foo" already set in map/);
  const kept = await apply("Ignore");
  assert.equal(kept.status, 201, kept.text);
});

test("finalizers of custom kinds, and of some built-in ones, need no prefix", async () => {
  const widgets = "/apis/example.io/v1/namespaces/default/widgets";
  const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  for (const [collection, finalizer, status] of [
    [widgets, "plain", 201],
    [leases, "plain", 201],
    [cms, "plain", 422],
    [cms, "with.dots", 422],
    [cms, "a.b/c", 201],
    [widgets, "no name", 422],
  ] as const) {
    const name = { apiVersion: "example.io/v1", kind: "Widget", spec: {} };
    const body = {
      ...(collection === widgets ? name : {}),
      metadata: { name: "f", finalizers: [finalizer] },
    };
    const answer = await ask("POST", `${collection}?dryRun=All`, body);
    assert.equal(answer.status, status, `${collection} ${finalizer}: ${answer.text}`);
  }
});
