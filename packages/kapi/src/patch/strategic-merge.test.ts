import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { builtinResources } from "../kinds/index.ts";
import { cloneJson } from "../schema/json-value.ts";
import { applyStrategicMergePatch } from "./strategic-merge.ts";

function typeOf(kind: string) {
  const found = builtinResources().find((resource) => resource.kind === kind);
  if (!found) throw new Error(`no kind ${kind}`);
  return found.type;
}

const deploymentType = typeOf("Deployment");

const pod = (spec: JsonObject): JsonObject => ({ spec: { template: { spec } } });
const podSpec = (object: JsonObject): unknown => at(object, "spec", "template", "spec");
const names = (list: unknown, key = "name"): unknown =>
  Array.isArray(list) ? list.map((item) => at(item, key)) : undefined;

function patchPod(live: JsonObject, patch: JsonObject): unknown {
  const object = pod(live);
  const before = cloneJson(object);
  const result = podSpec(applyStrategicMergePatch(deploymentType, object, pod(patch)));
  assert.deepEqual(object, before, "the live object is not changed");
  return result;
}

const containers = (...list: JsonObject[]): JsonObject => ({ containers: list });

describe("strategic merge patch", () => {
  test("lists merge by their merge key; a new item comes before what the patch does not name", () => {
    const live = containers(
      { name: "a", image: "1", env: [{ name: "X", value: "1" }] },
      { name: "b", image: "1" },
    );
    const patch = containers({ name: "b", image: "2" }, { name: "a", env: [{ name: "Y", value: "2" }] });
    const result = patchPod(live, {
      ...patch,
      "$setElementOrder/containers": [{ name: "b" }, { name: "a" }],
    });
    assert.deepEqual(result, {
      containers: [
        { name: "b", image: "2" },
        {
          name: "a",
          image: "1",
          env: [
            { name: "Y", value: "2" },
            { name: "X", value: "1" },
          ],
        },
      ],
    });
  });

  test("the order directive interleaves items only the server has", () => {
    const live = containers({ name: "a" }, { name: "side" }, { name: "b" });
    const order = (...list: string[]): JsonObject => ({
      "$setElementOrder/containers": list.map((name) => ({ name })),
    });
    const one = patchPod(live, order("a", "b"));
    assert.deepEqual(names(at(one, "containers")), ["a", "side", "b"]);
    const swapped = patchPod(live, order("b", "a"));
    assert.deepEqual(names(at(swapped, "containers")), ["side", "b", "a"]);
    const added = patchPod(live, { ...order("a", "c", "b"), ...containers({ name: "c", image: "x" }) });
    assert.deepEqual(names(at(added, "containers")), ["a", "c", "side", "b"]);
    assert.throws(() => patchPod(live, { ...order("a"), ...containers({ name: "c" }) }), {
      code: "invalid_argument",
      message: /doesn't match \$setElementOrder\/containers/,
    });
  });

  test("delete and replace directives in lists and maps", () => {
    const live = containers({ name: "a", resources: { limits: { cpu: "1" } } }, { name: "b" });
    assert.deepEqual(patchPod(live, containers({ name: "a", $patch: "delete" })), containers({ name: "b" }));
    assert.deepEqual(
      patchPod(live, { containers: [{ name: "c" }, { $patch: "replace" }] }),
      containers({ name: "c" }),
    );
    const replaced = patchPod(
      live,
      containers({ name: "a", resources: { $patch: "replace", requests: { cpu: "2" } } }),
    );
    assert.deepEqual(at(replaced, "containers", 0, "resources"), { requests: { cpu: "2" } });
    const emptied = patchPod(live, containers({ name: "a", resources: { $patch: "delete" } }));
    assert.deepEqual(at(emptied, "containers", 0, "resources"), {});
    assert.throws(
      () => patchPod(live, containers({ name: "a", $patch: "explode" })),
      /unknown patch type: explode/,
    );
    assert.throws(
      () => patchPod(live, containers({ image: "x" })),
      /does not contain declared merge key: name/,
    );
  });

  test("null deletes, and never reaches the result", () => {
    const live = { nodeSelector: { a: "1", b: "2" }, hostNetwork: true };
    assert.deepEqual(
      patchPod(live, {
        nodeSelector: { a: null },
        hostNetwork: null,
        dnsPolicy: null,
        securityContext: { runAsUser: null },
      }),
      {
        nodeSelector: { b: "2" },
        securityContext: {},
      },
    );
  });

  test("primitive lists with strategy merge are sets, others are replaced", () => {
    const meta = (finalizers: unknown, extra: JsonObject = {}): JsonObject => ({
      metadata: { finalizers, ...extra },
    });
    const live = meta(["a/x", "a/y"]);
    assert.deepEqual(
      applyStrategicMergePatch(deploymentType, live, meta(["a/z", "a/y"])),
      meta(["a/z", "a/x", "a/y"]),
    );
    const removed = { metadata: { "$deleteFromPrimitiveList/finalizers": ["a/x"] } };
    assert.deepEqual(applyStrategicMergePatch(deploymentType, live, removed), meta(["a/y"]));
    assert.deepEqual(
      patchPod(containers({ name: "a", args: ["1", "2"] }), containers({ name: "a", args: ["3"] })),
      containers({ name: "a", args: ["3"] }),
    );
    const tolerations = patchPod({ tolerations: [{ key: "a" }] }, { tolerations: [{ key: "b" }] });
    assert.deepEqual(tolerations, { tolerations: [{ key: "b" }] });
  });

  test("retainKeys drops every other key of the map", () => {
    const live = { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } } } };
    const patch = { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } };
    assert.deepEqual(applyStrategicMergePatch(deploymentType, live, patch), {
      spec: { strategy: { type: "Recreate" } },
    });
    const bad = { spec: { strategy: { $retainKeys: ["type"], rollingUpdate: { maxSurge: 2 } } } };
    assert.throws(
      () => applyStrategicMergePatch(deploymentType, live, bad),
      /invalid patch format of retainKeys/,
    );
    const volumes = patchPod(
      { volumes: [{ name: "v", emptyDir: {} }] },
      { volumes: [{ name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/" } }] },
    );
    assert.deepEqual(volumes, { volumes: [{ name: "v", hostPath: { path: "/" } }] });
  });

  test("service ports merge by port; stored duplicates are tolerated", () => {
    const type = typeOf("Service");
    const live = {
      spec: {
        ports: [
          { port: 53, protocol: "TCP" },
          { port: 53, protocol: "UDP" },
        ],
      },
    };
    const result = applyStrategicMergePatch(type, live, { spec: { ports: [{ port: 53, name: "dns" }] } });
    assert.deepEqual(at(result, "spec", "ports", 0), { port: 53, protocol: "TCP", name: "dns" });
    assert.deepEqual(at(result, "spec", "ports", 1), { port: 53, protocol: "UDP" });
  });

  test("directives inside new maps vanish, and __proto__ is a plain key", () => {
    const patch: unknown = JSON.parse('{"metadata":{"annotations":{"__proto__":"x","$patch":"merge"}}}');
    const result = applyStrategicMergePatch(deploymentType, { metadata: {} }, patch);
    assert.equal(JSON.stringify(result), '{"metadata":{"annotations":{"__proto__":"x"}}}');
    assert.equal(({} as JsonObject)["x"], undefined);
  });
});
