import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { isCoded, isObject, type JsonObject } from "@kontinuum/std";
import { decodeProtobuf } from "../codec/index.ts";
import { message, messageOf } from "../codec/messages.ts";
import { parseJson } from "../json/json.ts";
import { normalize } from "./normalize.ts";

const roundtrip = new URL("../../../../third_party/kubernetes/testdata/roundtrip/", import.meta.url);
const samples = new URL("../../testdata/protobuf-samples/", import.meta.url);

/** Fields of the vectors that came after the served release: reported as unknown. */
const newer =
  /\.(schedulingGroup|nodeAllocatableResourceClaimStatuses|volumeStatus|nodeAllocatableResourceMappings|ints|bools|strings|versions|preventPodSchedulingIfMissing|shardInfo)$|allocatedResourcesStatus\[\d+\]\.resources\[\d+\]\.message$/;

const read = (url: URL): JsonObject => {
  const value = parseJson(readFileSync(url, "utf8"));
  assert.ok(isObject(value));
  return value;
};

for (const name of readdirSync(roundtrip).filter((file) => file.endsWith(".json"))) {
  const original = read(new URL(name, roundtrip));
  const type = messageOf(String(original["apiVersion"]), String(original["kind"]));
  if (type === undefined) continue;
  test(`a populated ${name} stays as it is`, () => {
    const object = structuredClone(original);
    const unknown = normalize(type, object);
    assert.deepEqual(
      unknown.filter((path) => !newer.test(path)),
      [],
    );
    if (unknown.length === 0) assert.deepEqual(object, original);
    const again = structuredClone(object);
    assert.deepEqual(normalize(type, again), []);
    assert.deepEqual(again, object);
  });
}

test("the JSON form of every recorded body normalises to what its protobuf form decodes to", () => {
  for (const name of readdirSync(samples).filter((file) => file.endsWith(".bin"))) {
    const decoded = decodeProtobuf(readFileSync(new URL(name, samples)));
    const json = read(new URL(name.replace(".bin", ".json"), samples));
    const type = messageOf(String(json["apiVersion"]), String(json["kind"]));
    assert.ok(type !== undefined);
    assert.deepEqual(normalize(type, json), [], name);
    assert.deepEqual(json, decoded, name);
  }
});

const deployment = message("api.apps.v1.Deployment");
const config = message("api.core.v1.ConfigMap");

test("unknown fields are taken out and named by path", () => {
  const object: JsonObject = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    spec: { replica: 1, template: { spec: { containers: [{ name: "a" }, { name: "b", port: 1 }] } } },
  };
  assert.deepEqual(normalize(deployment, object), ["spec.replica", "spec.template.spec.containers[1].port"]);
  assert.ok(!JSON.stringify(object).includes('replica"'));
});

test("nulls and empty optional values vanish, values that Go always prints appear", () => {
  const object: JsonObject = {
    metadata: { name: "x", creationTimestamp: null, labels: {}, annotations: null },
    spec: { replicas: null, paused: false, selector: null, template: { spec: { containers: [] } } },
  };
  normalize(deployment, object);
  assert.deepEqual(object, {
    metadata: { name: "x" },
    spec: { selector: null, strategy: {}, template: { metadata: {}, spec: { containers: [] } } },
    status: {},
  });
});

test("quantities, times and base64 become canonical", () => {
  const pod: JsonObject = {
    metadata: { creationTimestamp: "2026-01-02T03:04:05.678+01:00" },
    spec: { containers: [{ name: "a", resources: { limits: { cpu: 0.5, memory: "1024Mi", x: "1000m" } } }] },
  };
  normalize(message("api.core.v1.Pod"), pod);
  assert.deepEqual(pod["metadata"], { creationTimestamp: "2026-01-02T02:04:05Z" });
  assert.deepEqual(
    JSON.stringify(pod["spec"]).match(/"limits":(\{[^}]*\})/)?.[1],
    '{"cpu":"500m","memory":"1024Mi","x":"1"}',
  );
  const lease: JsonObject = { spec: { renewTime: "2026-01-02T03:04:05.1Z" } };
  normalize(message("api.coordination.v1.Lease"), lease);
  assert.deepEqual(lease["spec"], { renewTime: "2026-01-02T03:04:05.100000Z" });
});

function refusal(type: Parameters<typeof normalize>[0], object: JsonObject): string {
  try {
    normalize(type, object);
  } catch (error) {
    assert.ok(isCoded(error, "invalid_argument"), String(error));
    return error.message;
  }
  return assert.fail("nothing was refused");
}

test("a wrong type is refused in the decoder's words", () => {
  assert.equal(
    refusal(deployment, { spec: { replicas: "1" } }),
    "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
  );
  assert.equal(
    refusal(deployment, { spec: { replicas: 1.5 } }),
    "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
  );
  assert.equal(
    refusal(deployment, { spec: { replicas: 2 ** 40 } }),
    "json: cannot unmarshal number 1099511627776 into Go struct field DeploymentSpec.spec.replicas of type int32",
  );
  assert.equal(
    refusal(config, { data: { a: 1 } }),
    "json: cannot unmarshal number into Go struct field ConfigMap.data.a of type string",
  );
  assert.equal(
    refusal(config, { data: [] }),
    "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
  );
  assert.match(refusal(config, { binaryData: { a: "?" } }), /^illegal base64 data at input byte 0$/);
  assert.match(
    refusal(message("api.core.v1.LimitRange"), { spec: { limits: [{ max: { cpu: "1x" } }] } }),
    /^quantities must match the regular expression/,
  );
  assert.match(
    refusal(message("api.core.v1.Event"), { firstTimestamp: "yesterday" }),
    /^parsing time "yesterday" as "2006-01-02T15:04:05Z07:00"/,
  );
});

test("integers beyond 2^53 survive", () => {
  const object: JsonObject = { metadata: { generation: 9_007_199_254_740_993n } };
  normalize(config, object);
  assert.deepEqual(object["metadata"], { generation: 9_007_199_254_740_993n });
});

test("a key named __proto__ is data", () => {
  const object = parseJson('{"data":{"__proto__":"x"}}');
  assert.ok(isObject(object));
  normalize(config, object);
  assert.equal(JSON.stringify(object["data"]), '{"__proto__":"x"}');
  assert.equal(({} as { x?: unknown }).x, undefined);
});

test("a body that nests without end is refused", () => {
  let schema: JsonObject = { type: "object" };
  for (let depth = 0; depth < 300; depth++) schema = { type: "object", properties: { a: schema } };
  const definition: JsonObject = {
    spec: { versions: [{ name: "v1", schema: { openAPIV3Schema: schema } }] },
  };
  assert.match(
    refusal(
      message("apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"),
      definition,
    ),
    /nested deeper than/,
  );
});
