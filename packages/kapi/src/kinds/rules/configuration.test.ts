import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { create, resourceOf, update } from "../strategy.fixture.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("a Secret's plain form is folded in and gone", () => {
  const { object, errors } = create("v1", "Secret", {
    data: { a: base64("1"), b: base64("2") },
    stringData: { b: "3" },
  });
  assert.deepEqual(errors, []);
  assert.equal(object["type"], "Opaque");
  assert.deepEqual(object["data"], { a: base64("1"), b: base64("3") });
  assert.ok(!("stringData" in object));
});

test("Secret types need their keys", () => {
  assert.deepEqual(create("v1", "Secret", { type: "kubernetes.io/tls", data: { "tls.crt": "" } }).errors, [
    "data[tls.key]: Required value",
  ]);
  assert.deepEqual(create("v1", "Secret", { type: "kubernetes.io/basic-auth" }).errors, [
    "data[username]: Required value",
    "data[password]: Required value",
  ]);
  assert.deepEqual(create("v1", "Secret", { type: "kubernetes.io/dockerconfigjson" }).errors, [
    "data[.dockerconfigjson]: Required value",
  ]);
  const broken = { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": base64("{") } };
  const [error] = create("v1", "Secret", broken).errors;
  assert.match(error ?? "", /^data\[\.dockerconfigjson\]: Invalid value: "<secret contents redacted>"/);
  assert.deepEqual(create("v1", "Secret", { type: "kubernetes.io/ssh-auth" }).errors, [
    "data[ssh-privatekey]: Required value",
  ]);
  assert.deepEqual(create("v1", "Secret", { type: "example.com/own" }).errors, []);
});

test("the type of a Secret stays", () => {
  const { object: old } = create("v1", "Secret", {});
  assert.deepEqual(update(old, { ...old, type: "example.com/x" }).errors, [
    'type: Invalid value: "example.com/x": field is immutable',
  ]);
});

test("keys and sizes", () => {
  assert.match(
    create("v1", "ConfigMap", { data: { "a b": "" } }).errors.join(),
    /^data\[a b\]: Invalid value: "a b": a valid config key must consist/,
  );
  assert.match(create("v1", "ConfigMap", { data: { "..": "" } }).errors.join(), /must not be '\.\.'/);
  assert.match(
    create("v1", "ConfigMap", { data: { a: "" }, binaryData: { a: "" } }).errors.join(),
    /duplicate of key present in binaryData/,
  );
  const big = "x".repeat(1024 * 1024);
  assert.deepEqual(create("v1", "ConfigMap", { data: { a: big } }).errors, []);
  assert.deepEqual(create("v1", "ConfigMap", { data: { a: `${big}x` } }).errors, [
    "Too long: may not be more than 1048576 bytes",
  ]);
  assert.deepEqual(create("v1", "Secret", { data: { a: base64(`${big}x`) } }).errors, [
    "data: Too long: may not be more than 1048576 bytes",
  ]);
});

test("an immutable ConfigMap stays as it is", () => {
  const { object: old } = create("v1", "ConfigMap", { data: { a: "1" }, immutable: true });
  assert.deepEqual(update(old, { ...old, data: { a: "2" } }).errors, [
    "data: Forbidden: field is immutable when `immutable` is set",
  ]);
  const { immutable: _immutable, ...open } = old;
  assert.deepEqual(update(old, open).errors, [
    "immutable: Forbidden: field is immutable when `immutable` is set",
  ]);
  const labelled = structuredClone(old);
  Object.assign(labelled["metadata"] as JsonObject, { labels: { a: "b" } });
  assert.deepEqual(update(old, labelled).errors, []);
});

test("a Namespace is active, labelled and finalized", () => {
  const { object, errors } = create("v1", "Namespace", {
    metadata: { name: "n" },
    status: { phase: "Terminating" },
  });
  assert.deepEqual(errors, []);
  assert.deepEqual(object["spec"], { finalizers: ["kubernetes"] });
  assert.deepEqual(object["status"], { phase: "Active" });
  assert.deepEqual(at(object, "metadata", "labels"), { "kubernetes.io/metadata.name": "n" });
});

test("a Namespace's finalizers go only through finalize", () => {
  const { object: old } = create("v1", "Namespace", { metadata: { name: "n" } });
  const wanted = { ...structuredClone(old), spec: {} };
  assert.deepEqual(update(old, wanted).object["spec"], { finalizers: ["kubernetes"] });
  assert.deepEqual(update(old, wanted, "finalize").object["spec"], {});
});

test("configuration kinds have no generation", () => {
  const { object } = create("v1", "ConfigMap", {});
  assert.equal(at(object, "metadata", "generation"), undefined);
  assert.deepEqual(resourceOf("v1", "Namespace").verbs.includes("deletecollection"), false);
});
