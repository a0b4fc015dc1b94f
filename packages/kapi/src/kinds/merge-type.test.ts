import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import { message } from "../codec/messages.ts";
import { builtinResources } from "./index.ts";
import { messageNode } from "./merge-type.ts";

// The published OpenAPI definitions say the same as the Go tags the tables were made from: two sources, one truth.
const file: unknown = JSON.parse(
  readFileSync(new URL("../../../../third_party/kubernetes/facts/definitions.json", import.meta.url), "utf8"),
);
assert.ok(isObject(file) && isObject(file["definitions"]));
const definitions = file["definitions"];

test("lists merge as the published definitions say", () => {
  const differences: string[] = [];
  let compared = 0;
  for (const [name, definition] of Object.entries(definitions)) {
    if (!isObject(definition) || !isObject(definition["properties"])) continue;
    let node: TypeNode;
    try {
      node = messageNode(message(name.replace(/^io\.k8s\./, "")));
    } catch {
      continue;
    }
    if (node.type !== "map") continue;
    for (const [property, schema] of Object.entries(definition["properties"])) {
      if (!isObject(schema) || schema["type"] !== "array") continue;
      const list = node.field(property);
      if (list?.type !== "list") {
        differences.push(`${name}.${property} is no list`);
        continue;
      }
      compared++;
      const strategy = String(schema["x-kubernetes-patch-strategy"] ?? "");
      const merges = strategy.split(",").includes("merge");
      if ((list.patchStrategy === "merge") !== merges) differences.push(`${name}.${property} patch strategy`);
      if (list.patchMergeKey !== schema["x-kubernetes-patch-merge-key"])
        differences.push(`${name}.${property} merge key`);
      const type = schema["x-kubernetes-list-type"];
      if (type !== undefined && type !== list.listType) differences.push(`${name}.${property} list type`);
      const keys = schema["x-kubernetes-list-map-keys"];
      if (Array.isArray(keys) && JSON.stringify(keys) !== JSON.stringify(list.keys)) {
        differences.push(`${name}.${property} keys`);
      }
    }
  }
  assert.deepEqual(differences, []);
  assert.ok(compared > 350, `only ${compared} lists were compared`);
});

test("maps are atomic where the published definitions say so", () => {
  const differences: string[] = [];
  for (const [name, definition] of Object.entries(definitions)) {
    if (!isObject(definition) || !isObject(definition["properties"])) continue;
    const atomic = definition["x-kubernetes-map-type"] === "atomic";
    let node: TypeNode;
    try {
      node = messageNode(message(name.replace(/^io\.k8s\./, "")));
    } catch {
      continue;
    }
    if (node.type === "map" && node.atomic !== atomic) differences.push(name);
  }
  assert.deepEqual(differences, []);
});

function walk(node: TypeNode | undefined, ...path: readonly string[]): TypeNode | undefined {
  let current = node;
  for (const key of path) {
    if (current?.type === "map") current = current.field(key);
    else if (current?.type === "list") current = current.item();
  }
  return current;
}

const resource = (kind: string): TypeNode => {
  const found = builtinResources().find((item) => item.kind === kind);
  assert.ok(found);
  return found.type;
};

test("the structure of a Deployment", () => {
  const root = resource("Deployment");
  const containers = walk(root, "spec", "template", "spec", "containers");
  assert.ok(containers?.type === "list");
  assert.equal(containers.listType, "map");
  assert.deepEqual(containers.keys, ["name"]);
  const ports = walk(containers, "item", "ports");
  assert.ok(ports?.type === "list");
  assert.deepEqual(ports.keys, ["containerPort", "protocol"]);
  assert.deepEqual(ports.keyDefaults, { protocol: "TCP" });
  assert.equal(ports.patchMergeKey, "containerPort");
  const selector = walk(root, "spec", "selector");
  assert.ok(selector?.type === "map" && selector.atomic);
  const strategy = walk(root, "spec", "strategy");
  assert.ok(strategy?.type === "map" && strategy.retainKeys === true);
  assert.equal(walk(root, "spec", "nonsense"), undefined);
  assert.deepEqual(walk(root, "kind"), { type: "scalar" });
});

test("recursive types end", () => {
  const schema = walk(
    resource("CustomResourceDefinition"),
    "spec",
    "versions",
    "item",
    "schema",
    "openAPIV3Schema",
  );
  assert.ok(schema?.type === "map");
  const deep = walk(schema, "properties", "a", "properties", "b");
  assert.ok(deep?.type === "map");
});

test("embedded objects may say their own type", () => {
  const claim = walk(resource("StatefulSet"), "spec", "volumeClaimTemplates", "item");
  assert.deepEqual(walk(claim, "kind"), { type: "scalar" });
});
