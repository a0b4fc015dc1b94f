import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type JsonObject } from "@kontinuum/std";
import { create, update } from "../strategy.fixture.ts";
import { isTimeZone, scheduleError } from "./cron-schedule.ts";

const template = (): JsonObject => ({
  spec: { containers: [{ name: "c", image: "i" }], restartPolicy: "Never" },
});

test("a Job gets a selector of its own", () => {
  const { object, errors } = create("batch/v1", "Job", { spec: { template: template() } });
  assert.deepEqual(errors, []);
  const spec = object["spec"] as JsonObject;
  assert.deepEqual(
    { ...spec, template: undefined },
    {
      backoffLimit: 6,
      completionMode: "NonIndexed",
      completions: 1,
      manualSelector: false,
      parallelism: 1,
      podReplacementPolicy: "TerminatingOrFailed",
      selector: { matchLabels: { "batch.kubernetes.io/controller-uid": "uid-1" } },
      suspend: false,
      template: undefined,
    },
  );
  assert.deepEqual(at(spec, "template", "metadata", "labels"), {
    "batch.kubernetes.io/controller-uid": "uid-1",
    "batch.kubernetes.io/job-name": "x",
    "controller-uid": "uid-1",
    "job-name": "x",
  });
});

test("parallelism alone leaves completions open", () => {
  const { object } = create("batch/v1", "Job", { spec: { parallelism: 3, template: template() } });
  assert.equal(at(object, "spec", "completions"), undefined);
});

test("a Job's pods must end", () => {
  const body = template();
  delete (body["spec"] as JsonObject)["restartPolicy"];
  assert.deepEqual(create("batch/v1", "Job", { spec: { template: body } }).errors, [
    'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
  ]);
});

test("a Job's template and selector stay; suspend may change", () => {
  const { object: old } = create("batch/v1", "Job", { spec: { template: template() } });
  const image = structuredClone(old);
  Object.assign(at(image, "spec", "template", "spec", "containers", 0) as JsonObject, { image: "other" });
  assert.match(update(old, image).errors.join(), /^spec.template: Invalid value: .*: field is immutable$/);
  const suspended = structuredClone(old);
  Object.assign(suspended["spec"] as JsonObject, { suspend: true, parallelism: 2 });
  assert.deepEqual(update(old, suspended).errors, []);
});

test("a CronJob", () => {
  const spec = { schedule: "*/5 * * * *", jobTemplate: { spec: { template: template() } } };
  const { object, errors } = create("batch/v1", "CronJob", { spec });
  assert.deepEqual(errors, []);
  assert.equal(at(object, "spec", "concurrencyPolicy"), "Allow");
  assert.equal(at(object, "spec", "successfulJobsHistoryLimit"), 3);
  assert.equal(at(object, "spec", "failedJobsHistoryLimit"), 1);
  assert.deepEqual(create("batch/v1", "CronJob", { spec: { ...spec, schedule: "" } }).errors, [
    "spec.schedule: Required value",
  ]);
  assert.deepEqual(create("batch/v1", "CronJob", { spec: { ...spec, timeZone: "Mars/Base" } }).errors, [
    'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base',
  ]);
  assert.deepEqual(create("batch/v1", "CronJob", { spec: { ...spec, concurrencyPolicy: "x" } }).errors, [
    'spec.concurrencyPolicy: Unsupported value: "x": supported values: "Allow", "Forbid", "Replace"',
  ]);
});

test("cron schedules", () => {
  for (const good of [
    "* * * * *",
    "0 0 1 1 0",
    "*/15 1-5 * JAN,feb MON-fri",
    "@hourly",
    "@every 1h30m",
    "0 22 * * 1-5",
    "? * ? * ?",
  ]) {
    assert.equal(scheduleError(good), undefined, good);
  }
  for (const [bad, why] of [
    ["* * * *", /expected exactly 5 fields, found 4/],
    ["60 * * * *", /end of range \(60\) above maximum \(59\)/],
    ["* * 0 * *", /beginning of range \(0\) below minimum \(1\)/],
    ["5-1 * * * *", /beyond end of range/],
    ["*/0 * * * *", /step of range should be a positive number/],
    ["a * * * *", /failed to parse int from a/],
    ["@often", /unrecognized descriptor/],
    ["@every x", /failed to parse duration/],
    ["", /found 0/],
  ] as const) {
    assert.match(scheduleError(bad) ?? "", why, bad);
  }
});

test("time zones are those of the database", () => {
  for (const good of ["Etc/UTC", "Europe/Berlin", "UTC"]) assert.ok(isTimeZone(good), good);
  for (const bad of ["", "Local", "+01:00", "Nope/Nope"]) assert.ok(!isTimeZone(bad), bad);
});
