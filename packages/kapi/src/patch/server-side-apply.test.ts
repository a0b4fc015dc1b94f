import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { compileCrd } from "../crd/compile-crd.ts";
import { widgetCrd } from "../crd/widget.fixture.ts";
import { builtinResources } from "../kinds/index.ts";
import { cloneJson } from "../schema/json-value.ts";
import { serverSideApply, updateManagedFields } from "./server-side-apply.ts";

const [widgets] = compileCrd(widgetCrd());
if (!widgets) throw new Error("no resource");
const resource = widgets;

const early = "2026-01-01T00:00:00Z";
const late = "2026-01-01T01:00:00Z";

const widget = (spec: unknown, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "example.io/v1",
  kind: "Widget",
  metadata: { name: "w", namespace: "ns", ...metadata },
  spec,
});

interface Options {
  readonly force?: boolean;
  readonly now?: string;
  readonly subresource?: string;
}

async function apply(
  live: JsonObject | undefined,
  manager: string,
  applied: JsonObject,
  options: Options = {},
) {
  const { force = false, now = early, subresource = "" } = options;
  return serverSideApply({ resource, live, applied, manager, force, subresource, now });
}

async function applied(
  live: JsonObject | undefined,
  manager: string,
  config: JsonObject,
  options: Options = {},
): Promise<JsonObject> {
  const outcome = await apply(live, manager, config, options);
  if (outcome.conflicts) throw new Error(outcome.conflicts.message);
  return outcome.object;
}

async function write(
  before: JsonObject | undefined,
  manager: string,
  change: (object: JsonObject) => void,
  options: Options = {},
): Promise<JsonObject> {
  const after = before ? cloneJson(before) : widget({});
  change(after);
  const { now = early, subresource = "" } = options;
  return updateManagedFields({ resource, before, after, manager, operation: "Update", subresource, now });
}

function entries(object: JsonObject): readonly JsonObject[] {
  const list = at(object, "metadata", "managedFields");
  return Array.isArray(list) ? list.filter(isObject) : [];
}

const fieldsOf = (object: JsonObject, manager: string, operation = "Apply"): unknown =>
  entries(object).find((e) => e["manager"] === manager && e["operation"] === operation)?.["fieldsV1"];

const spec = (object: JsonObject): JsonObject => {
  const found = object["spec"];
  return isObject(found) ? found : {};
};

describe("server-side apply", () => {
  test("records what the configuration holds and nothing the server owns", async () => {
    const object = await applied(
      undefined,
      "kubectl",
      widget({ replicas: 3, ports: [{ name: "p", port: 1 }], tags: ["x"] }, { labels: { a: "1" } }),
    );
    assert.deepEqual(entries(object), [
      {
        manager: "kubectl",
        operation: "Apply",
        apiVersion: "example.io/v1",
        time: early,
        fieldsType: "FieldsV1",
        fieldsV1: {
          "f:metadata": { "f:labels": { "f:a": {} } },
          "f:spec": {
            "f:ports": { 'k:{"name":"p","protocol":"TCP"}': { ".": {}, "f:name": {}, "f:port": {} } },
            "f:replicas": {},
            "f:tags": { 'v:"x"': {} },
          },
        },
      },
    ]);
  });

  test("the same configuration again changes nothing, not even the time", async () => {
    const config = widget({ replicas: 3, ports: [{ name: "q" }, { name: "p", port: 1 }], tags: ["x", "a"] });
    const first = await applied(undefined, "m", config);
    assert.deepEqual(await applied(first, "m", config, { now: late }), first);
  });

  test("another value of another applier's field conflicts, and force takes it over", async () => {
    const live = await applied(undefined, "m1", widget({ replicas: 3 }));
    const outcome = await apply(live, "m2", widget({ replicas: 5 }));
    assert.deepEqual(outcome, {
      conflicts: {
        message: 'Apply failed with 1 conflict: conflict with "m1": .spec.replicas',
        causes: [{ reason: "FieldManagerConflict", message: 'conflict with "m1"', field: ".spec.replicas" }],
      },
    });
    const forced = await applied(live, "m2", widget({ replicas: 5 }), { force: true, now: late });
    assert.equal(spec(forced)["replicas"], 5);
    assert.equal(fieldsOf(forced, "m1"), undefined);
    assert.deepEqual(fieldsOf(forced, "m2"), { "f:spec": { "f:replicas": {} } });
  });

  test("several conflicts are listed by manager, with version and subresource", async () => {
    let live = await applied(
      undefined,
      "m1",
      widget({ ports: [{ name: "p", port: 1 }], settings: { "a.b": "1" } }),
    );
    live = await write(live, "u", (o) => (spec(o)["replicas"] = 4));
    live = await write(live, "s", (o) => (spec(o)["min"] = 4), { subresource: "scale" });
    const outcome = await apply(
      live,
      "m2",
      widget({ replicas: 5, min: 5, ports: [{ name: "p", port: 2 }], settings: { "a.b": "2" } }),
    );
    assert.equal(
      outcome.conflicts?.message,
      [
        'Apply failed with 4 conflicts: conflicts with "m1":',
        '- .spec.ports[name="p",protocol="TCP"].port',
        "- .spec.settings.a.b",
        'conflicts with "s" with subresource "scale" using example.io/v1:',
        "- .spec.min",
        'conflicts with "u" using example.io/v1:',
        "- .spec.replicas",
      ].join("\n"),
    );
  });

  test("the same value is shared, and goes only with its last owner", async () => {
    const config = (labels: JsonObject): JsonObject => widget({ replicas: 1 }, { labels });
    let live = await applied(undefined, "m1", config({ a: "1" }));
    live = await applied(live, "m2", config({ a: "1" }));
    live = await applied(live, "m1", config({}));
    assert.equal(at(live, "metadata", "labels", "a"), "1");
    live = await applied(live, "m2", config({}));
    assert.equal(at(live, "metadata", "labels", "a"), undefined);
  });

  test("sets and keyed lists merge by item, keys take their defaults", async () => {
    const m1 = widget({ tags: ["x", "y"], ports: [{ name: "p" }] });
    const m2 = widget({ tags: ["y", "z"], ports: [{ name: "q" }, { name: "p", protocol: "UDP" }] });
    let live = await applied(undefined, "m1", m1);
    live = await applied(live, "m2", m2);
    assert.deepEqual(spec(live)["tags"], ["x", "y", "z"]);
    assert.equal((spec(live)["ports"] as unknown[]).length, 3);
    live = await applied(live, "m1", widget({ ports: [{ name: "p" }] }));
    assert.deepEqual(spec(live)["tags"], ["y", "z"]);
    assert.equal((spec(live)["ports"] as unknown[]).length, 3);
    live = await applied(live, "m2", widget({ ports: [{ name: "q" }] }));
    assert.equal(spec(live)["tags"], undefined);
    assert.deepEqual(spec(live)["ports"], [{ name: "p" }, { name: "q" }]);
  });

  test("items come in the configuration's order, other items keep their place", async () => {
    let live = await applied(undefined, "m1", widget({ tags: ["a", "b", "c", "d"] }));
    live = await applied(live, "m2", widget({ tags: ["d", "b"] }));
    const once = spec(live)["tags"];
    assert.deepEqual(
      (once as string[]).filter((t) => t === "d" || t === "b"),
      ["d", "b"],
    );
    live = await applied(live, "m2", widget({ tags: ["d", "b"] }));
    assert.deepEqual(spec(live)["tags"], once);
  });

  test("atomic lists and maps have one owner", async () => {
    const live = await applied(undefined, "m1", widget({ args: ["a"], selector: { a: "1" } }));
    assert.deepEqual(fieldsOf(live, "m1"), { "f:spec": { "f:args": {}, "f:selector": {} } });
    const outcome = await apply(live, "m2", widget({ args: ["b"], selector: { a: "1", b: "2" } }));
    assert.match(
      outcome.conflicts?.message ?? "",
      /2 conflicts: conflicts with "m1":\n- \.spec\.args\n- \.spec\.selector$/,
    );
  });

  test("preserved unknown content: maps granular, lists atomic", async () => {
    let live = await applied(undefined, "m1", widget({ free: { a: { b: 1 }, list: [1, 2] } }));
    live = await applied(live, "m2", widget({ free: { a: { c: 2 } } }));
    assert.deepEqual(spec(live)["free"], { a: { b: 1, c: 2 }, list: [1, 2] });
    const outcome = await apply(live, "m2", widget({ free: { list: [3] } }));
    assert.match(outcome.conflicts?.message ?? "", /"m1": \.spec\.free\.list$/);
  });

  test("an ordinary write takes what it changes from every owner", async () => {
    let live = await applied(undefined, "m1", widget({ replicas: 3, size: "s" }));
    live = await write(live, "u", (o) => (spec(o)["replicas"] = 4), { now: late });
    assert.deepEqual(fieldsOf(live, "m1"), { "f:spec": { "f:size": {} } });
    assert.deepEqual(fieldsOf(live, "u", "Update"), { "f:spec": { "f:replicas": {} } });
    const outcome = await apply(live, "m1", widget({ replicas: 3, size: "s" }));
    assert.equal(
      outcome.conflicts?.message,
      'Apply failed with 1 conflict: conflict with "u" using example.io/v1: .spec.replicas',
    );
    live = await write(live, "v", (o) => delete spec(o)["replicas"]);
    assert.equal(fieldsOf(live, "u", "Update"), undefined);
  });

  test("a create records all it sets, parents included", async () => {
    const live = await write(undefined, "c", (o) => (o["spec"] = { replicas: 1, settings: { a: "b" } }));
    assert.deepEqual(fieldsOf(live, "c", "Update"), {
      "f:spec": { ".": {}, "f:replicas": {}, "f:settings": { ".": {}, "f:a": {} } },
    });
  });

  test("of a built-in kind a create owns what differs from its empty value", async () => {
    const deployments = builtinResources().find((r) => r.kind === "Deployment");
    assert.ok(deployments);
    const after = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "d", labels: { a: "b" } },
      spec: {
        replicas: 1,
        selector: { matchLabels: { a: "b" } },
        strategy: {},
        template: {
          metadata: { labels: { a: "b" } },
          spec: { containers: [{ name: "c", image: "i", resources: {} }] },
        },
      },
      status: {},
    };
    const request = {
      resource: deployments,
      before: undefined,
      after,
      manager: "m",
      operation: "Update",
      subresource: "",
      now: early,
    } as const;
    assert.deepEqual(fieldsOf(await updateManagedFields(request), "m", "Update"), {
      "f:metadata": { "f:labels": { ".": {}, "f:a": {} } },
      "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
          "f:metadata": { "f:labels": { ".": {}, "f:a": {} } },
          "f:spec": {
            "f:containers": { 'k:{"name":"c"}': { ".": {}, "f:image": {}, "f:name": {}, "f:resources": {} } },
          },
        },
      },
    });
  });

  test("objects without a record: their fields belong to before-first-apply", async () => {
    const bare = widget({ replicas: 3 }, { uid: "u" });
    const live = await applied(bare, "m", widget({ replicas: 3, size: "s" }));
    assert.deepEqual(fieldsOf(live, "before-first-apply", "Update"), {
      "f:spec": { ".": {}, "f:replicas": {} },
    });
    const outcome = await apply(bare, "m", widget({ replicas: 5 }));
    assert.match(
      outcome.conflicts?.message ?? "",
      /"before-first-apply" using example.io\/v1: .spec.replicas/,
    );
  });

  test("a client may empty the record; unreadable ones leave it as it was", async () => {
    const live = await applied(undefined, "m", widget({ replicas: 3 }));
    const meta = (o: JsonObject): JsonObject => (isObject(o["metadata"]) ? o["metadata"] : {});
    for (const list of [[], [{}]]) {
      const cleared = await write(live, "u", (o) => (meta(o)["managedFields"] = list));
      assert.equal(meta(cleared)["managedFields"], undefined);
      assert.equal(
        meta(await write(cleared, "u", (o) => (spec(o)["replicas"] = 9)))["managedFields"],
        undefined,
      );
    }
    const kept = await write(
      live,
      "u",
      (o) => (meta(o)["managedFields"] = [{ manager: "x", operation: "Nope" }]),
    );
    assert.deepEqual(kept, live);
    assert.deepEqual(await write(live, "u", (o) => delete meta(o)["managedFields"]), live);
  });

  test("client-side apply's past does not stop kubectl's first server-side apply", async () => {
    const annotated = widget(
      { replicas: 3, size: "s" },
      {
        annotations: {
          "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(
            widget({ replicas: 3, size: "s" }),
          ),
        },
      },
    );
    const live = await write(undefined, "kubectl-client-side-apply", (o) => Object.assign(o, annotated));
    const object = await applied(live, "kubectl", widget({ replicas: 5, size: "s" }));
    assert.equal(spec(object)["replicas"], 5);
    const text = at(object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration");
    assert.match(String(text), /"replicas":5/);
    const other = await apply(live, "someone", widget({ replicas: 5 }));
    assert.ok(other.conflicts);
    const drifted = await write(live, "hpa", (o) => (spec(o)["replicas"] = 7));
    assert.match(
      (await apply(drifted, "kubectl", widget({ replicas: 5 }))).conflicts?.message ?? "",
      /"hpa"/,
    );
  });

  test("status is owned apart", async () => {
    const live = await applied(undefined, "m", { ...widget({ replicas: 1 }), status: { ready: true } });
    assert.deepEqual(fieldsOf(live, "m"), { "f:spec": { "f:replicas": {} } });
    const after = await applied(
      live,
      "m",
      { ...widget({ replicas: 9 }), status: { ready: true } },
      { subresource: "status" },
    );
    const entry = entries(after).find((e) => e["subresource"] === "status");
    assert.deepEqual(entry?.["fieldsV1"], { "f:status": { "f:ready": {} } });
    assert.deepEqual(fieldsOf(after, "m"), { "f:spec": { "f:replicas": {} } });
  });

  test("what generated manifests hold for the server is neither applied nor owned", async () => {
    const stored = { uid: "u", creationTimestamp: "2026-01-01T00:00:00Z", resourceVersion: "7" };
    const config = { ...widget({ replicas: 1 }, { creationTimestamp: null }), status: { ready: false } };
    const first = await applied(undefined, "m", config);
    const live = {
      ...first,
      metadata: { ...(first["metadata"] as JsonObject), ...stored },
      status: { ready: true },
    };
    assert.deepEqual(await applied(live, "m", config, { now: late }), live);
  });

  test("at most ten Update entries, older ones merged by version", async () => {
    let live = await write(undefined, "m0", (o) => (spec(o)["settings"] = { k0: "" }));
    for (let i = 1; i < 15; i++) {
      const now = `2026-01-01T00:00:${String(i).padStart(2, "0")}Z`;
      live = await write(live, `m${i}`, (o) => ((spec(o)["settings"] as JsonObject)[`k${i}`] = ""), { now });
    }
    assert.equal(entries(live).length, 10);
    assert.deepEqual(fieldsOf(live, "ancient-changes", "Update"), {
      "f:spec": {
        ".": {},
        "f:settings": { ".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}, "f:k4": {}, "f:k5": {} },
      },
    });
  });

  test("configurations that cannot be applied are refused by name", async () => {
    const cases: [JsonObject, RegExp][] = [
      [
        widget({ bogus: 1 }),
        /^failed to create typed patch object \(ns\/w; example\.io\/v1, Kind=Widget\): \.spec\.bogus: field not declared in schema$/,
      ],
      [widget({ tags: ["a", "a"] }), /\.spec\.tags: duplicate entries for key \[="a"\]/],
      [
        widget({ ports: [{ name: "a" }, { name: "a", protocol: "TCP" }] }),
        /duplicate entries for key \[name="a",protocol="TCP"\]/,
      ],
      [widget({ ports: [null] }), /element 0: associative list with keys may not have a null element/],
      [
        { ...widget({}), apiVersion: "example.io/v2" },
        /Specified patch version: example\.io\/v2, expected: example\.io\/v1/,
      ],
      [widget({}, { managedFields: [] }), /metadata\.managedFields must be nil/],
    ];
    for (const [config, message] of cases)
      await assert.rejects(apply(undefined, "m", config), { code: "invalid_argument", message });
  });

  test("integers beyond 2^53 are compared and kept exactly", async () => {
    const big = 9223372036854775807n;
    const live = await applied(undefined, "m1", widget({ max: big }));
    assert.equal(spec(live)["max"], big);
    assert.ok((await apply(live, "m2", widget({ max: big - 1n }))).conflicts);
    assert.ok(!(await apply(live, "m2", widget({ max: big }))).conflicts);
  });

  test("an owner recorded in another version keeps what is unchanged there", async () => {
    let live = await applied(undefined, "m1", widget({ replicas: 1, size: "s" }));
    const list = entries(live).map((e) => ({ ...e, apiVersion: "example.io/v0" }));
    live = { ...live, metadata: { ...(live["metadata"] as JsonObject), managedFields: list } };
    const versions = {
      typeOf: (v: string) => (v === "example.io/v1" || v === "example.io/v0" ? resource.type : undefined),
      convert: (o: JsonObject, v: string) => ({ ...o, apiVersion: v }),
    };
    const request = { resource, manager: "m1", force: false, subresource: "", now: late, versions };
    const outcome = await serverSideApply({ ...request, live, applied: widget({ replicas: 1 }) });
    assert.ok(!outcome.conflicts);
    assert.deepEqual(spec(outcome.object), { replicas: 1 });
    assert.equal(outcome.object["apiVersion"], "example.io/v1");
    const unserved = {
      ...versions,
      typeOf: (v: string) => (v === "example.io/v1" ? resource.type : undefined),
    };
    const other = await serverSideApply({
      ...request,
      manager: "m2",
      live,
      applied: widget({ replicas: 2 }),
      versions: unserved,
    });
    assert.deepEqual(other.conflicts, undefined);
  });

  test("a list that became atomic is owned as a whole", async () => {
    const live = await applied(undefined, "m1", widget({ args: ["a"] }));
    const [entry] = entries(live);
    const stale = { ...entry, fieldsV1: { "f:spec": { "f:args": { 'v:"a"': {} } } } };
    const old = { ...live, metadata: { ...(live["metadata"] as JsonObject), managedFields: [stale] } };
    const outcome = await apply(old, "m2", widget({ args: ["b"] }));
    assert.match(outcome.conflicts?.message ?? "", /"m1": \.spec\.args$/);
  });
});
