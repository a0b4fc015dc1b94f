/**
 * Applying a chart without a release: what leaves the chart leaves the cluster, and nothing else does.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isCoded, type JsonObject } from "@kontinuum/std";
import { startTestServer, type TestServer } from "../server.fixture.ts";
import { applyDocuments } from "./addon.apply.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer({ kinds: "builtin" });
});
after(() => server.close());

const { signal } = new AbortController();
const apply = (documents: readonly JsonObject[]): Promise<void> =>
  applyDocuments({ client: server.client, kubeconfig: "" }, "web", documents, "apps", signal);
const configMap = (name: string, namespace?: string): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  data: { a: "b" },
});
const definition: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "things.web.example" },
  spec: {
    group: "web.example",
    scope: "Namespaced",
    names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
};
const place = (name: string, namespace = "apps"): string =>
  `/api/v1/namespaces/${namespace}/configmaps/${name}`;
async function exists(path: string): Promise<boolean> {
  return server.client.request("GET", path).then(
    () => true,
    (error: unknown) => {
      assert.ok(isCoded(error, "not_found"));
      return false;
    },
  );
}

test("what left the chart is removed; definitions, and what others took over, stay", async () => {
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } };
  await apply([
    namespace,
    configMap("one"),
    configMap("two"),
    configMap("three", "other"),
    configMap("taken"),
    definition,
  ]);
  // Somebody made it theirs: another manager owns every field.
  await server.client.request("DELETE", place("taken"));
  await server.client.request(
    "POST",
    "/api/v1/namespaces/apps/configmaps?fieldManager=someone",
    {},
    configMap("taken"),
  );
  await server.client.request("POST", "/api/v1/namespaces/apps/configmaps", {}, configMap("by-hand"));
  await apply([configMap("one")]);
  assert.deepEqual(
    await Promise.all(
      [place("one"), place("two"), place("three", "other"), place("taken"), place("by-hand")].map(exists),
    ),
    [true, false, false, true, true],
  );
  assert.ok(await exists("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.web.example"));
  assert.ok(await exists("/api/v1/namespaces/other"));
});

test("a list that can't be read deletes nothing and is written anew", async () => {
  await apply([configMap("one"), configMap("two")]);
  const list = place("kontinuum-addon-web");
  await server.client.request(
    "PATCH",
    list,
    {},
    { data: { objects: "nonsense" } },
    "application/merge-patch+json",
  );
  await apply([configMap("one")]);
  assert.ok(await exists(place("two")));
  await apply([]);
  assert.ok(!(await exists(place("one"))));
});
