/**
 * Whether an object is accepted, compared with Kubernetes itself: `verdicts.json` holds what the create
 * strategies of release 1.35.0 said of each object of `objects.yaml` and of each of its mutations (`a` accepted,
 * `r` refused, `-` not judged). Made by running those strategies (k8s.io/kubernetes, pkg/registry) on the same
 * mutations.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isCoded, isObject, type JsonObject } from "@kontinuum/std";
import { parseAllDocuments } from "yaml";
import { metadataErrors, normalizeMetadata } from "../registry/metadata.ts";
import { mutations } from "./mutations.fixture.ts";
import { context, resourceOf, texts } from "./strategy.fixture.ts";

const folder = new URL("../../testdata/verdicts/", import.meta.url);
const recorded: unknown = JSON.parse(readFileSync(new URL("verdicts.json", folder), "utf8"));
assert.ok(isObject(recorded) && isObject(recorded["verdicts"]));
const verdicts = recorded["verdicts"];

/** What is wrong with an object, by our rules. */
function complaints(object: JsonObject): string[] {
  const resource = resourceOf(String(object["apiVersion"]), String(object["kind"]));
  try {
    normalizeMetadata(object);
    resource.prune(object);
    resource.applyDefaults(object);
    resource.prepareForCreate(object, context);
    return texts([...metadataErrors(object, resource), ...resource.validateCreate(object, context)]);
  } catch (error) {
    if (isCoded(error)) return [error.message];
    throw error;
  }
}

/**
 * Mutations that are refused upstream and taken here. Five are judged by the checks alone: a whole server fills in the
 * address and the port before it checks, upstream as here. Two are an empty list of policies, taken for none.
 */
const tolerated = 7;

test("what Kubernetes accepts is accepted, and nearly all it refuses is refused", () => {
  const refused: string[] = [];
  const taken: string[] = [];
  let judged = 0;
  for (const document of parseAllDocuments(readFileSync(new URL("objects.yaml", folder), "utf8"))) {
    const object: unknown = document.toJS();
    assert.ok(isObject(object) && isObject(object["metadata"]));
    const title = `${String(object["apiVersion"])} ${String(object["kind"])} ${String(object["metadata"]["name"])}`;
    const expected = verdicts[title];
    if (typeof expected !== "string") continue;
    const resource = resourceOf(String(object["apiVersion"]), String(object["kind"]));
    if (resource.namespaced) object["metadata"]["namespace"] ??= "default";
    let index = 0;
    for (const mutation of mutations(object)) {
      const verdict = expected[index++];
      if (verdict !== "a" && verdict !== "r") continue;
      judged++;
      const found = complaints(mutation.object);
      if (verdict === "a" && found.length > 0)
        refused.push(`${title}, ${mutation.name}: ${found.join("; ")}`);
      if (verdict === "r" && found.length === 0) taken.push(`${title}, ${mutation.name}`);
    }
    assert.equal(index, expected.length, `${title}: the mutations are not those that were judged`);
  }
  assert.deepEqual(refused, [], "refused here, accepted by Kubernetes");
  assert.ok(
    taken.length <= tolerated,
    `${taken.length} are accepted here and refused by Kubernetes:\n${taken.join("\n")}`,
  );
  assert.ok(judged > 2500, `only ${judged} were judged`);
});
