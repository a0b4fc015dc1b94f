import assert from "node:assert/strict";
import { test } from "node:test";
import { negotiate, parseMediaType, type Offered } from "./media-type.ts";

const one = { list: false, protobuf: true, yaml: true };

test("the first acceptable form wins", () => {
  const form = (accept: string | undefined, offered: Offered = one): string => {
    const { encoding, shape, metaVersion } = negotiate(accept, offered);
    return `${encoding} ${shape} ${metaVersion}`;
  };
  assert.equal(form(undefined), "json object v1");
  const first = "application/vnd.kubernetes.protobuf";
  assert.equal(form(`${first}, */*`), "protobuf object v1");
  assert.equal(form(`${first},application/json`, { ...one, protobuf: false }), "json object v1");
  const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const old = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
  assert.equal(form(`${table},${old},application/json`), "json table v1");
  assert.equal(form(`${old},application/json`), "json table v1beta1");
  assert.equal(form("application/json;as=Table;v=v2;g=meta.k8s.io,application/json"), "json object v1");
  // Tables have no protobuf form; metadata has one for every kind.
  assert.equal(form(`${first};as=Table;v=v1;g=meta.k8s.io,${table}`), "json table v1");
  const metadata = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  const custom = { list: true, protobuf: false, yaml: true };
  assert.equal(form(`${first};${metadata},application/json;${metadata}`, custom), "protobuf metadata v1");
  assert.throws(() => negotiate(table, { ...one, plain: true }), /only the following media types/);
  assert.equal(form(`${table},application/json`, { ...one, plain: true }), "json object v1");
  assert.throws(() => negotiate("text/html", one), /only the following media types are accepted/);
});

test("parameters are read leniently", () => {
  assert.deepEqual(
    { ...parseMediaType('Application/JSON; Charset="utf-8"').parameters },
    { charset: "utf-8" },
  );
});
