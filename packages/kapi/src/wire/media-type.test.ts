import assert from "node:assert/strict";
import { test } from "node:test";
import { negotiate, parseMediaType } from "./media-type.ts";

const one = { list: false, protobuf: true, yaml: true };

test("the first acceptable form wins", () => {
  assert.deepEqual(negotiate(undefined, one), { encoding: "json", shape: "object" });
  assert.deepEqual(negotiate("application/vnd.kubernetes.protobuf, */*", one), {
    encoding: "protobuf",
    shape: "object",
  });
  assert.deepEqual(
    negotiate("application/vnd.kubernetes.protobuf,application/json", { ...one, protobuf: false }),
    { encoding: "json", shape: "object" },
  );
  const table =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
  assert.deepEqual(negotiate(table, one), { encoding: "json", shape: "table" });
  const old = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
  assert.deepEqual(negotiate(old, one), { encoding: "json", shape: "object" });
  const metadata =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  assert.deepEqual(negotiate(metadata, { ...one, list: true }), { encoding: "json", shape: "metadata" });
  assert.throws(() => negotiate("text/html", one), /only the following media types are accepted/);
});

test("parameters are read leniently", () => {
  assert.deepEqual(
    { ...parseMediaType('Application/JSON; Charset="utf-8"').parameters },
    { charset: "utf-8" },
  );
});
