/**
 * Version texts and what they decide.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded } from "@kontinuum/std";
import fc from "fast-check";
import {
  kubernetesRange,
  kubernetesVersion,
  parseVersionContract,
  supportedContract,
} from "./version-contract.ts";

test("only major and minor count", () => {
  for (const text of ["v1.13", "1.13", "v1.13.8", "v1.13.0-rc.1", "1.13.0+build.5"]) {
    assert.equal(parseVersionContract(text).minor, 13);
  }
});

test("what is no version is refused, in bounded words", () => {
  for (const text of ["", "v2.0", "1", "v1.x", "v1.13.0-", "latest", "v1.13 ", `v1.${"9".repeat(50)}`]) {
    assert.throws(
      () => parseVersionContract(text),
      (error) => isCoded(error, "invalid_argument"),
    );
  }
  fc.assert(
    fc.property(fc.string({ maxLength: 2000 }), (text) => {
      try {
        parseVersionContract(text);
      } catch (error) {
        assert(isCoded(error, "invalid_argument") && error.message.length < 600);
      }
    }),
  );
});

test("configurations are made for 1.11 to 1.14", () => {
  assert.throws(
    () => supportedContract("v1.10.5"),
    (error) => isCoded(error, "unsupported"),
  );
  assert.throws(
    () => supportedContract("v1.15.0"),
    (error) => isCoded(error, "unsupported"),
  );
  assert.equal(supportedContract("v1.14.0-rc.1").minor, 14);
  assert.deepEqual(kubernetesRange({ major: 1, minor: 13 }), [31, 36]);
  assert.equal(kubernetesRange({ major: 1, minor: 10 }), undefined);
});

test("a Kubernetes version loses its v", () => {
  assert.equal(kubernetesVersion("v1.34.0"), "1.34.0");
  assert.equal(kubernetesVersion("1.34.0-rc.1"), "1.34.0-rc.1");
  for (const text of ["1.34", "stable", "2.0.0", "1.34.0@sha"]) {
    assert.throws(
      () => kubernetesVersion(text),
      (error) => isCoded(error, "invalid_argument"),
    );
  }
});
