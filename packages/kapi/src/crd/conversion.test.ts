import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { cloneJson } from "../schema/json-value.ts";
import { reviewVersionOf, webhookConverter } from "./conversion.ts";

const object = (name: string, version: string): JsonObject => ({
  apiVersion: `example.io/${version}`,
  kind: "Widget",
  metadata: { name, namespace: "ns", uid: `uid-${name}`, labels: { a: "1" }, finalizers: ["keep/me"] },
  spec: { replicas: 1 },
});

const asObject = (value: unknown): JsonObject => {
  assert.ok(isObject(value));
  return value;
};

/** A webhook that converts rightly; `spoil` changes its answer. */
function convert(
  spoil: (response: JsonObject, objects: JsonObject[], review: JsonObject) => void = () => undefined,
) {
  const reviews: JsonObject[] = [];
  const call = (review: JsonObject): Promise<unknown> => {
    reviews.push(review);
    const request = asObject(review["request"]);
    const objects = (request["objects"] as JsonObject[]).map((o) => ({
      ...cloneJson(o),
      apiVersion: request["desiredAPIVersion"],
      spec: { size: at(o, "spec", "replicas") },
    }));
    const response: JsonObject = {
      uid: request["uid"],
      result: { status: "Success" },
      convertedObjects: objects,
    };
    const answer: JsonObject = { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", response };
    spoil(response, objects, answer);
    return Promise.resolve(answer);
  };
  return { reviews, run: webhookConverter(call, () => "review-uid") };
}

describe("conversion by webhook", () => {
  test("the review is of the version the definition prefers", async () => {
    const prefers = (versions: readonly string[]): string =>
      reviewVersionOf({ spec: { conversion: { webhook: { conversionReviewVersions: versions } } } });
    assert.deepEqual(
      [prefers(["v9", "v1beta1"]), prefers(["v1", "v1beta1"]), prefers([])],
      ["v1beta1", "v1", "v1"],
    );
    const asked: unknown[] = [];
    const run = webhookConverter(
      (review) => {
        asked.push(review["apiVersion"]);
        const request = asObject(review["request"]);
        const convertedObjects = (request["objects"] as JsonObject[]).map((o) => ({
          ...o,
          apiVersion: "example.io/v2",
        }));
        const response = { uid: request["uid"], result: { status: "Success" }, convertedObjects };
        return Promise.resolve({ apiVersion: review["apiVersion"], kind: "ConversionReview", response });
      },
      () => "review-uid",
      "v1beta1",
    );
    assert.equal((await run([object("a", "v1")], "example.io/v2"))[0]?.["apiVersion"], "example.io/v2");
    assert.deepEqual(asked, ["apiextensions.k8s.io/v1beta1"]);
  });

  test("one call for all objects that need it, order kept", async () => {
    const { reviews, run } = convert();
    const result = await run([object("a", "v1"), object("b", "v2"), object("c", "v1")], "example.io/v2");
    assert.deepEqual(
      result.map((o) => [at(o, "metadata", "name"), o["apiVersion"]]),
      [
        ["a", "example.io/v2"],
        ["b", "example.io/v2"],
        ["c", "example.io/v2"],
      ],
    );
    assert.deepEqual(at(result[0], "spec"), { size: 1 });
    assert.equal(reviews.length, 1);
    assert.equal(at(reviews[0], "request", "desiredAPIVersion"), "example.io/v2");
    assert.equal((at(reviews[0], "request", "objects") as unknown[]).length, 2);
  });

  test("no call when nothing needs it", async () => {
    const { reviews, run } = convert();
    const objects = [object("a", "v2")];
    assert.equal(await run(objects, "example.io/v2"), objects);
    assert.equal(reviews.length, 0);
  });

  test("of the metadata only labels and annotations are taken", async () => {
    const { run } = convert((_response, objects) => {
      for (const o of objects)
        Object.assign(asObject(o["metadata"]), {
          labels: { b: "2" },
          annotations: { c: "3" },
          finalizers: [],
          generation: 9,
        });
    });
    const [result] = await run([object("a", "v1")], "example.io/v2");
    assert.deepEqual(result?.["metadata"], {
      name: "a",
      namespace: "ns",
      uid: "uid-a",
      labels: { b: "2" },
      annotations: { c: "3" },
      finalizers: ["keep/me"],
    });
  });

  const spoiled: [string, Parameters<typeof convert>[0], RegExp][] = [
    ["another uid", (r) => (r["uid"] = "x"), /uid is not the request's/],
    ["a failure", (r) => (r["result"] = { status: "Failure", message: "no way" }), /failed: no way$/],
    ["too few objects", (_r, o) => o.pop(), /holds 0 objects, expected 1/],
    ["another name", (_r, o) => (asObject(o[0]?.["metadata"])["name"] = "evil"), /changed metadata\.name/],
    [
      "another uid of the object",
      (_r, o) => (asObject(o[0]?.["metadata"])["uid"] = "evil"),
      /changed metadata\.uid/,
    ],
    ["another kind", (_r, o) => (asObject(o[0])["kind"] = "Secret"), /changed its kind/],
    [
      "the old version",
      (_r, o) => (asObject(o[0])["apiVersion"] = "example.io/v1"),
      /has apiVersion "example\.io\/v1", expected example\.io\/v2/,
    ],
    [
      "labels that are no strings",
      (_r, o) => (asObject(o[0]?.["metadata"])["labels"] = { a: 1 }),
      /not a map of strings/,
    ],
    ["another review", (_r, _o, answer) => (answer["kind"] = "Pod"), /not a ConversionReview/],
  ];
  for (const [name, spoil, message] of spoiled) {
    test(`refuses an answer with ${name}`, async () => {
      await assert.rejects(convert(spoil).run([object("a", "v1")], "example.io/v2"), (error: Error) => {
        assert.match(error.message, /^conversion webhook for example\.io\/v1, Kind=Widget failed: /);
        assert.match(error.message, message);
        return true;
      });
    });
  }
});
