import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { generate } from "../../scripts/generate-kubernetes-tables.ts";
import { message, messageOf, tablesFolder } from "./messages.ts";

test("the committed tables are what the generator makes of the facts", () => {
  for (const [name, text] of Object.entries(generate())) {
    assert.equal(readFileSync(new URL(name, tablesFolder), "utf8"), text, `${name}: run the generator`);
  }
});

test("messages resolve, inlined fields included", () => {
  const pod = message("api.core.v1.Pod");
  assert.equal(pod, message("api.core.v1.Pod"));
  assert.deepEqual(
    pod.fields.map(({ json, number }) => `${number}:${json}`),
    ["1:metadata", "2:spec", "3:status"],
  );
  const volume = message("api.core.v1.Volume");
  assert.ok(volume.byJson.has("emptyDir"));
  assert.ok(volume.byJson.has("name"));
  assert.throws(() => message("api.core.v1.Nope"), /no Kubernetes API type is named/);
  assert.equal(messageOf("v1", "constructor"), undefined);
  assert.equal(messageOf("__proto__", "Pod"), undefined);
});
