/**
 * Values nobody expects, at every place of a request that quotes them: integers beyond 2^53, and objects that can't be
 * made into a string. The answer is the client's error, never the server's, and speaks of numbers.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startServer, type Reply, type ServerFixture } from "../server.fixture.ts";

const core = "/api/v1/namespaces/default";
const apps = "/apis/apps/v1/namespaces/default";
let fixture: ServerFixture;

before(async () => {
  fixture = await startServer({});
  const made = await fixture.ask("POST", `${apps}/deployments`, {
    metadata: { name: "d" },
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  });
  assert.equal(made.status, 201, made.text);
  await fixture.ask("POST", `${core}/serviceaccounts`, { metadata: { name: "s" } });
});
after(() => fixture.stop());

const merge = "application/merge-patch+json";
const strategic = "application/strategic-merge-patch+json";
const json = "application/json-patch+json";
const apply = "application/apply-patch+yaml";
const deployment = `${apps}/deployments/d`;

/** Requests with a hole for the value. */
const requests: readonly (readonly [method: string, path: string, type: string, body: string])[] = [
  ["PATCH", deployment, strategic, '{"$patch":?}'],
  ["PATCH", deployment, strategic, '{"spec":{"$patch":?}}'],
  ["PATCH", deployment, strategic, '{"spec":{"$retainKeys":?}}'],
  ["PATCH", deployment, strategic, '{"spec":{"template":{"spec":{"containers":[{"$patch":?,"name":"c"}]}}}}'],
  ["PATCH", deployment, strategic, '{"spec":{"template":{"spec":{"$setElementOrder/containers":?}}}}'],
  ["PATCH", deployment, strategic, '{"metadata":{"$deleteFromPrimitiveList/finalizers":?}}'],
  ["PATCH", deployment, strategic, '{"metadata":{"finalizers":?}}'],
  ["PATCH", deployment, json, '[{"op":?,"path":"/a"}]'],
  ["PATCH", deployment, json, '[{"op":"add","path":?,"value":1}]'],
  ["PATCH", deployment, json, '[{"op":"move","path":"/a","from":?}]'],
  ["PATCH", deployment, json, '[{"op":"test","path":"/spec/replicas","value":?}]'],
  ["PATCH", deployment, json, '[{"op":"replace","path":"/metadata/name","value":?}]'],
  ["PATCH", deployment, json, '[{"op":"replace","path":"/spec","value":?}]'],
  ["PATCH", deployment, json, "[?]"],
  ["PATCH", deployment, merge, '{"metadata":{"name":?}}'],
  ["PATCH", deployment, merge, '{"metadata":{"labels":{"a":?}}}'],
  ["PATCH", deployment, merge, '{"metadata":{"annotations":?}}'],
  [
    "PATCH",
    deployment,
    merge,
    '{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":?,"name":"a","uid":"b"}]}}',
  ],
  ["PATCH", deployment, merge, '{"metadata":{"managedFields":?}}'],
  ["PATCH", deployment, merge, '{"spec":{"replicas":?}}'],
  ["PATCH", deployment, merge, '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":?}}}}'],
  ["PATCH", deployment, merge, '{"spec":{"template":{"spec":{"containers":?}}}}'],
  [
    "PATCH",
    `${deployment}?fieldManager=m`,
    apply,
    '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":?}}',
  ],
  [
    "PATCH",
    `${deployment}?fieldManager=m`,
    apply,
    '{"apiVersion":?,"kind":"Deployment","metadata":{"name":"d"}}',
  ],
  [
    "PATCH",
    `${deployment}?fieldManager=m`,
    apply,
    '{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":?}}',
  ],
  ["PATCH", `${deployment}?fieldManager=m`, apply, '{"apiVersion":"apps/v1","kind":"Deployment","spec":?}'],
  ["PUT", deployment, "application/json", '{"apiVersion":?,"metadata":{"name":"d"}}'],
  ["PUT", deployment, "application/json", '{"kind":?,"metadata":{"name":"d"}}'],
  ["PUT", deployment, "application/json", '{"metadata":{"name":?}}'],
  ["PUT", `${deployment}/scale`, "application/json", '{"kind":?}'],
  ["PUT", `${deployment}/scale`, "application/json", '{"kind":"Scale","spec":{"replicas":?}}'],
  ["PATCH", `${deployment}/scale`, merge, '{"spec":{"replicas":?}}'],
  ["POST", `${core}/configmaps`, "application/json", '{"metadata":{"name":?}}'],
  ["POST", `${core}/configmaps`, "application/json", '{"metadata":{"name":"x","namespace":?}}'],
  ["POST", `${core}/configmaps`, "application/json", '{"metadata":{"name":"x"},"data":{"a":?}}'],
  ["POST", `${core}/secrets`, "application/json", '{"metadata":{"name":"x"},"stringData":{"a":?}}'],
  ["POST", `${core}/services`, "application/json", '{"metadata":{"name":"x"},"spec":{"ports":[{"port":?}]}}'],
  ["POST", `${core}/pods`, "application/json", '{"metadata":{"name":"x","finalizers":[?]},"spec":{}}'],
  ["POST", `${core}/serviceaccounts/s/token`, "application/json", '{"spec":{"expirationSeconds":?}}'],
  ["POST", `${core}/serviceaccounts/s/token`, "application/json", '{"spec":{"boundObjectRef":{"kind":?}}}'],
  ["POST", "/api/v1/nodes", "application/json", '{"metadata":{"name":"x"},"spec":{"taints":?}}'],
  ["DELETE", deployment, "application/json", '{"propagationPolicy":?}'],
  ["DELETE", deployment, "application/json", '{"kind":?}'],
  [
    "POST",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "application/json",
    '{"kind":?,"spec":{}}',
  ],
  [
    "POST",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "application/json",
    '{"metadata":{"name":"a.b"},"spec":{"group":?,"versions":[{"name":?}]}}',
  ],
];

for (const value of ["99999999999999999999", "-9007199254740993", '{"toString":1,"valueOf":1}']) {
  for (const [method, path, type, body] of requests) {
    test(`${method} ${path} ${body} with ${value}`, async () => {
      const answer: Reply = await fixture.ask(method, path, body.replaceAll("?", value), {
        "content-type": type,
      });
      assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.text.slice(0, 400)}`);
      assert.doesNotMatch(answer.text, /bigint|\[object Object\]/i);
    });
  }
}

test("reviews answer whatever they are asked", async () => {
  const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
  const body =
    '{"spec":{"groups":[{"toString":1},99999999999999999999],"extra":{"a":[{"toString":1}]},"nonResourceAttributes":{}}}';
  assert.equal((await fixture.ask("POST", path, body)).status, 201);
});
