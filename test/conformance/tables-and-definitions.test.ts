/**
 * K061–K072: tables, partial metadata, custom resource definitions.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { at } from "@kontinuum/std";
import { waitFor } from "../services/service.ts";
import { Cluster, configMap, skip, widget, widgets } from "./cluster.ts";

const wgs = "/apis/example.io/v1/namespaces/kt/widgets";
const cms = "/api/v1/namespaces/kt/configmaps";
const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const merge = "application/merge-patch+json";

describe("tables and definitions", { skip }, () => {
  let c: Cluster;
  const n = ["-n", "kt"];
  before(async () => {
    c = await Cluster.start();
    await c.ok(["apply", "-f", "-"], widgets);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
    await c.namespace("kt");
  });
  after(() => c.stop());

  test("K062 columns of a custom resource", async () => {
    await c.ask("POST", wgs, { body: widget("w62", { blob: "b" }) });
    assert.match(await c.ok([...n, "get", "wg", "w62"]), /^NAME\s+SIZE\s+READY\s+AGE\nw62\s+m\s+\d+s\n$/);
    assert.match(await c.ok([...n, "get", "wg", "w62", "-o", "wide"]), /^NAME\s+SIZE\s+READY\s+BLOB\s+AGE\n/);
    await c.ask("PATCH", `${wgs}/w62/status`, {
      type: merge,
      body: { status: { conditions: [{ type: "Ready", status: "True" }] } },
    });
    assert.match(await c.ok([...n, "get", "wg", "w62"]), /w62\s+m\s+True/);
    assert.match(await c.ok(["get", "wg", "-A", "--show-labels"]), /NAMESPACE\s+NAME.*LABELS/);
  });

  test("K063 one list, five ways to print it", async () => {
    for (const name of ["a63", "b63", "c63"])
      await c.ask("POST", cms, { body: configMap(name, {}, { labels: { t: "63" } }) });
    const l = ["-l", "t=63"];
    const expected = ["a63", "b63", "c63"];
    const names = (out: string): string[] => out.match(/[abc]63/g) ?? [];
    assert.deepEqual(names(await c.ok([...n, "get", "cm", ...l, "--sort-by=.metadata.name"])), expected);
    assert.deepEqual(
      names(await c.ok([...n, "get", "cm", ...l, "-o", "custom-columns=N:.metadata.name"])),
      expected,
    );
    assert.deepEqual(
      names(await c.ok([...n, "get", "cm", ...l, "-o", "jsonpath={.items[*].metadata.name}"])),
      expected,
    );
    assert.deepEqual(names(await c.ok([...n, "get", "cm", ...l, "-o", "name"])), expected);
    assert.deepEqual(names(await c.ok([...n, "get", "cm", ...l, "--chunk-size=2"])), expected);
  });

  test("K064 partial metadata", async () => {
    await c.ask("POST", cms, { body: configMap("a64", { k: "v" }) });
    const list = await c.ask("GET", cms, {
      headers: { accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" },
    });
    assert.equal(list.at("kind"), "PartialObjectMetadataList");
    for (const item of list.at("items") as object[])
      assert.deepEqual(Object.keys(item).sort(), ["apiVersion", "kind", "metadata"]);
    const accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const one = await c.ask("GET", `${cms}/a64`, { headers: { accept } });
    assert.equal(one.at("kind"), "PartialObjectMetadata");
    const watch = await c.watch(`${cms}?watch=1&fieldSelector=metadata.name%3Da64`, { headers: { accept } });
    const event = await watch.next(({ type }) => type === "ADDED");
    assert.deepEqual(Object.keys(event.object).sort(), ["apiVersion", "kind", "metadata"]);
    watch.close();
  });

  test("tables and partial metadata of the version before", async () => {
    const form = (as: string) => ({
      headers: { accept: `application/json;as=${as};v=v1beta1;g=meta.k8s.io` },
    });
    const table = await c.ask("GET", cms, form("Table"));
    assert.equal(table.at("apiVersion"), "meta.k8s.io/v1beta1");
    assert.equal(table.at("rows", 0, "object", "apiVersion"), "meta.k8s.io/v1beta1");
    const partial = await c.ask("GET", cms, form("PartialObjectMetadataList"));
    assert.equal(partial.at("apiVersion"), "meta.k8s.io/v1beta1");
  });

  test("K065 a definition is served once it is established (10 of 50 rounds)", async () => {
    const manifest = widgets.replaceAll("example.io", "again.io").replaceAll("[wg]", "[wga]");
    for (let round = 0; round < 10; round++) {
      await c.ok(["apply", "-f", "-"], manifest);
      await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.again.io"]);
      await c.ok([...n, "create", "-f", "-"], JSON.stringify({ ...widget("w"), apiVersion: "again.io/v1" }));
      await c.ok(["delete", "crd", "widgets.again.io"]);
    }
  });

  test("K066 pruning and defaults", async () => {
    const answer = await c.ask("POST", `${wgs}?fieldValidation=Warn`, {
      body: widget("w66", { blob: null, bogus: 1, free: { any: 1 }, limit: "5%" }),
    });
    assert.equal(answer.status, 201);
    assert.deepEqual(answer.at("spec"), {
      blob: null,
      free: { any: 1 },
      limit: "5%",
      replicas: 1,
      size: "m",
      min: 0,
      max: 100,
    });
    assert.match(String(answer.headers["warning"]), /unknown field \\"spec\.bogus\\"/);
  });

  test("K067 schema errors", async () => {
    const refuse = async (spec: Record<string, unknown>): Promise<string> => {
      const answer = await c.ask("POST", wgs, { body: widget("w67", spec) });
      assert.equal(answer.status, 422, answer.text);
      return String(answer.at("message"));
    };
    assert.match(await refuse({ replicas: 11 }), /should be less than or equal to 10/);
    assert.match(await refuse({ size: "xl" }), /Unsupported value: "xl": supported values: "s", "m", "l"/);
    assert.match(await refuse({ replicas: "x" }), /must be of type integer/);
    assert.match(await refuse({ ports: [{ name: "a" }, { name: "a" }] }), /Duplicate value/);
  });

  test("K068 rules", async () => {
    const bad = await c.ask("POST", wgs, { body: widget("w68", { min: 5, max: 1 }) });
    assert.equal(bad.status, 422);
    assert.match(bad.text, /min must not exceed max/);
    assert.equal((await c.ask("POST", wgs, { body: widget("l68", { size: "l" }) })).status, 201);
    const changed = await c.ask("PATCH", `${wgs}/l68`, { type: merge, body: { spec: { size: "m" } } });
    assert.equal(changed.status, 422);
    assert.match(changed.text, /l is final/);
  });

  test("K069 refused definitions", async () => {
    const define = (schema: unknown, versions: Record<string, unknown>[] = []) =>
      c.ask("POST", crds, {
        body: {
          apiVersion: "apiextensions.k8s.io/v1",
          kind: "CustomResourceDefinition",
          metadata: { name: "bads.bad.io" },
          spec: {
            group: "bad.io",
            scope: "Namespaced",
            names: { plural: "bads", kind: "Bad" },
            versions: [
              { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } },
              ...versions,
            ],
          },
        },
      });
    const cases: [string, unknown, Record<string, unknown>[]?][] = [
      ["schema", { type: "object", properties: { spec: {} } }],
      ["schema", { type: "object", properties: { spec: { $ref: "#/x" } } }],
      [
        "versions",
        { type: "object" },
        [{ name: "v2", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
      ],
      ["rule", { type: "object", "x-kubernetes-validations": [{ rule: "self.nope > 1" }] }],
    ];
    for (const [word, schema, versions] of cases) {
      const answer = await define(schema, versions);
      assert.equal(answer.status, 422, answer.text);
      assert.match(answer.text, new RegExp(`spec\\.versions.*${word === "versions" ? "" : word}`));
    }
  });

  test("K070 another version", async () => {
    const made = await c.ask("POST", wgs, { body: widget("w70") });
    const yaml = await c.ok([...n, "get", "widgets.v1beta1.example.io", "w70", "-o", "yaml"]);
    assert.match(yaml, /apiVersion: example\.io\/v1beta1/);
    assert.ok(yaml.includes(String(made.at("metadata", "uid"))));
    assert.ok(yaml.includes(`resourceVersion: "${String(made.at("metadata", "resourceVersion"))}"`));
    await c.ask("PATCH", "/apis/example.io/v1beta1/namespaces/kt/widgets/w70", {
      type: merge,
      body: { spec: { replicas: 3 } },
    });
    assert.equal((await c.ask("GET", `${wgs}/w70`)).at("spec", "replicas"), 3);
  });

  test("K071 selectable fields", async () => {
    await c.ask("POST", wgs, { body: widget("m71", { size: "m" }) });
    await c.ask("POST", wgs, { body: widget("s71", { size: "s" }) });
    const out = await c.ok([...n, "get", "wg", "--field-selector", "spec.size=s", "-o", "name"]);
    assert.match(out, /s71/);
    assert.doesNotMatch(out, /m71/);
    assert.match(
      (await c.k([...n, "get", "wg", "--field-selector", "spec.replicas=1"])).stderr,
      /field label not supported/,
    );
    const watch = await c.watch(`${wgs}?watch=1&fieldSelector=spec.size%3Dl`);
    await c.ask("PATCH", `${wgs}/m71`, { type: merge, body: { spec: { size: "l" } } });
    const event = await watch.next(({ object }) => at(object, "metadata", "name") === "m71");
    assert.equal(event.type, "ADDED");
    watch.close();
  });

  test("K072 deleting a definition", async () => {
    const manifest = widgets.replaceAll("example.io", "gone.io").replaceAll("[wg]", "[wgg]");
    const url = "/apis/gone.io/v1/namespaces/kt/widgets";
    const one = (name: string, metadata = {}) => ({
      ...widget(name, {}, metadata),
      apiVersion: "gone.io/v1",
    });
    await c.ok(["apply", "-f", "-"], manifest);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.gone.io"]);
    for (let i = 0; i < 20; i++) await c.ask("POST", url, { body: one(`w${i}`) });
    await c.ask("POST", url, { body: one("held", { finalizers: ["example.io/f"] }) });
    await c.ok(["delete", "crd", "widgets.gone.io", "--wait=false"]);
    await waitFor("Terminating", async () =>
      (await c.ask("GET", `${crds}/widgets.gone.io`)).text.includes("InstanceDeletionInProgress"),
    );
    const refused = await c.ask("POST", url, { body: one("new") });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /create not allowed while custom resource definition is terminating/);
    await waitFor(
      "the free ones to go",
      async () => ((await c.ask("GET", url)).at("items") as unknown[]).length === 1,
    );
    await c.ask("PATCH", `${url}/held`, { type: merge, body: { metadata: { finalizers: null } } });
    await waitFor(
      "the definition to go",
      async () => (await c.ask("GET", `${crds}/widgets.gone.io`)).status === 404,
      10_000,
    );
    await waitFor(
      "discovery without it",
      async () => (await c.ask("GET", "/apis/gone.io/v1")).status === 404,
      2000,
    );
    await c.ok(["apply", "-f", "-"], manifest);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.gone.io"]);
    assert.deepEqual((await c.ask("GET", url)).at("items"), []);
  });

  test("a definition whose names are taken waits for them", async () => {
    const rival = widgets
      .replaceAll("widgets.example.io", "wodgets.example.io")
      .replace("plural: widgets", "plural: wodgets");
    await c.ok(["apply", "-f", "-"], rival);
    const names = async () => (await c.ask("GET", `${crds}/wodgets.example.io`)).text;
    await waitFor("the refusal", async () =>
      /SingularConflict|ShortNamesConflict|KindConflict/.test(await names()),
    );
    await c.ok(["delete", "crd", "widgets.example.io"]);
    await waitFor("the acceptance", async () => (await names()).includes("InitialNamesAccepted"));
  });
});
