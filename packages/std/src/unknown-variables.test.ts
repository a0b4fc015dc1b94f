/**
 * Unknown variables: a misspelling is named with what was meant, and nothing else is complained about.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownVariables } from "./unknown-variables.ts";

const known = ["APP_ADDR", "APP_STORAGE", "APP_LOG_LEVEL"];

test("a misspelled name is reported with the likely one, a strange one without, and never a value", () => {
  const lines = unknownVariables(
    { APP_STORGE: "secret", APP_COLOUR_OF_SKY: "x", APP_ADDR: "y" },
    "APP_",
    known,
  );
  assert.deepEqual(lines, [
    "APP_STORGE is not a variable of this program and is ignored; did you mean APP_STORAGE?",
    "APP_COLOUR_OF_SKY is not a variable of this program and is ignored",
  ]);
});

test("other prefixes and what Kubernetes puts beside a Service are left alone", () => {
  const environment = {
    PATH: "/bin",
    APPLE: "1",
    APP_SERVICE_HOST: "10.0.0.1",
    APP_SERVICE_PORT: "80",
    APP_SERVICE_PORT_HTTP: "80",
    APP_PORT: "tcp://10.0.0.1:80",
    APP_PORT_80_TCP: "tcp://10.0.0.1:80",
    APP_PORT_80_TCP_ADDR: "10.0.0.1",
  };
  assert.deepEqual(unknownVariables(environment, "APP_", known), []);
  assert.equal(unknownVariables({ APP_PORT: "80" }, "APP_", known).length, 1);
});

test("a flood of names is bounded", () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`APP_NUMBER_${index}`, ""]));
  const lines = unknownVariables(many, "APP_", known);
  assert.equal(lines.length, 21);
  assert.equal(lines.at(-1), "30 more variables that begin with APP_ are ignored");
});
