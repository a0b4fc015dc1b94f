/**
 * Rules of Jobs and CronJobs.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { duplicate, invalid, required } from "../../schema/field-error.ts";
import {
  child,
  ensure,
  entries,
  has,
  isTrue,
  items,
  number,
  setDefaults,
  setEmptyDefaults,
  text,
} from "../read.ts";
import {
  immutable,
  labelKey,
  isEmptySelector,
  labelSelector,
  nonNegative,
  selectorMatches,
  type Errors,
} from "./checks.ts";
import { isTimeZone, scheduleError } from "./cron-schedule.ts";
import { podTemplateDefaults } from "./pod-defaults.ts";
import { checkTemplate, podSpecWarnings } from "./pod.ts";
import type { RuleTable } from "./kind-rules.ts";

const maxInt32 = 2_147_483_647;
const uidLabels = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const nameLabels = ["batch.kubernetes.io/job-name", "job-name"];

function jobDefaults(object: JsonObject): void {
  const spec = ensure(object, "spec");
  if (!has(spec, "completions") && !has(spec, "parallelism")) spec.completions = 1;
  const byIndex = has(spec, "backoffLimitPerIndex");
  setDefaults(spec, {
    parallelism: 1,
    backoffLimit: byIndex ? maxInt32 : 6,
    completionMode: "NonIndexed",
    suspend: false,
    podReplacementPolicy: has(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed",
  });
  for (const rule of items(spec, "podFailurePolicy", "rules")) {
    for (const pattern of items(rule, "onPodConditions")) setEmptyDefaults(pattern, { status: "True" });
  }
  const labels = child(spec, "template", "metadata", "labels");
  const metadata = ensure(object, "metadata");
  // One and the same map, so that what is added to the template's labels below is added here, as upstream.
  if (labels !== undefined && entries(metadata, "labels").length === 0) metadata.labels = labels;
  podTemplateDefaults(child(spec, "template"));
}

/** Gives a job the selector and labels that find its pods and nobody else's. */
function generateSelector(object: JsonObject): void {
  const spec = ensure(object, "spec");
  if (isTrue(spec, "manualSelector")) return;
  spec.manualSelector = false;
  const uid = text(object, "metadata", "uid");
  const name = text(object, "metadata", "name");
  const labels = ensure(ensure(ensure(spec, "template"), "metadata"), "labels");
  for (const key of nameLabels) labels[key] ??= name;
  for (const key of uidLabels) labels[key] ??= uid;
  // A job without labels of its own has those of its pods.
  const metadata = ensure(object, "metadata");
  if (entries(metadata, "labels").length === 0) metadata.labels = { ...labels };
  const selector = ensure(spec, "selector");
  ensure(selector, "matchLabels")[uidLabels[0] ?? ""] ??= uid;
}

/** Checks the part that Jobs and the templates of CronJobs share. */
function checkJobSpec(spec: JsonObject | undefined, path: string, errors: Errors): void {
  for (const key of [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
  ]) {
    nonNegative(spec, key, path, errors);
  }
  if (text(spec, "completionMode") === "Indexed") {
    if (!has(spec, "completions")) {
      errors.push(required(`${path}.completions`, "when completion mode is Indexed"));
    }
    const parallelism = number(spec, "parallelism");
    if (parallelism > 100_000) {
      errors.push(
        invalid(
          `${path}.parallelism`,
          parallelism,
          "must be less than or equal to 100000 when completion mode is Indexed",
        ),
      );
    }
  }
  const policy = text(spec, "template", "spec", "restartPolicy");
  if (policy === "" || policy === "Always") {
    errors.push(required(`${path}.template.spec.restartPolicy`, 'valid values: "OnFailure", "Never"'));
  }
  checkTemplate(child(spec, "template"), `${path}.template`, errors);
  checkFailurePolicy(spec, path, errors);
}

function checkFailurePolicy(spec: JsonObject | undefined, path: string, errors: Errors): void {
  const indexed = text(spec, "completionMode") === "Indexed";
  if (has(spec, "backoffLimitPerIndex") && !indexed) {
    errors.push(
      invalid(
        `${path}.backoffLimitPerIndex`,
        number(spec, "backoffLimitPerIndex"),
        "requires indexed completion mode",
      ),
    );
  }
  const names = new Set(
    ["containers", "initContainers"].flatMap((key) =>
      items(spec, "template", "spec", key).map((container) => text(container, "name")),
    ),
  );
  for (const [index, rule] of items(spec, "podFailurePolicy", "rules").entries()) {
    const here = `${path}.podFailurePolicy.rules[${index}]`;
    const codes = child(rule, "onExitCodes");
    const conditions = items(rule, "onPodConditions");
    if (codes !== undefined && conditions.length > 0) {
      errors.push(invalid(here, rule, "specifying both OnExitCodes and OnPodConditions is not supported"));
    } else if (codes === undefined && conditions.length === 0) {
      errors.push(invalid(here, rule, "specifying one of OnExitCodes and OnPodConditions is required"));
    }
    for (const [position, condition] of conditions.entries()) {
      labelKey(text(condition, "type"), `${here}.onPodConditions[${position}].type`, errors);
    }
    if (codes !== undefined) checkExitCodes(codes, names, `${here}.onExitCodes`, errors);
  }
}

function checkExitCodes(codes: JsonObject, names: ReadonlySet<string>, path: string, errors: Errors): void {
  const name = text(codes, "containerName");
  if (has(codes, "containerName") && !names.has(name)) {
    errors.push(
      invalid(
        `${path}.containerName`,
        name,
        "must be one of the container or initContainer names in the pod template",
      ),
    );
  }
  const listed = at(codes, "values");
  const values = Array.isArray(listed) ? listed.filter((value) => typeof value === "number") : [];
  if (values.length === 0) errors.push(invalid(`${path}.values`, values, "at least one value is required"));
  for (const [index, value] of values.entries()) {
    if (values.indexOf(value) < index) errors.push(duplicate(`${path}.values[${index}]`, value));
    if (value === 0 && text(codes, "operator") === "In") {
      errors.push(invalid(`${path}.values[${index}]`, value, "must not be 0 for the In operator"));
    }
  }
}

function checkJob(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const spec = child(object, "spec");
  checkJobSpec(spec, "spec", errors);
  const selector = child(spec, "selector");
  if (selector === undefined || isEmptySelector(selector)) errors.push(required("spec.selector"));
  else {
    labelSelector(selector, "spec.selector", errors);
    const labels = child(spec, "template", "metadata", "labels");
    if (!selectorMatches(selector, labels)) {
      errors.push(
        invalid("spec.template.metadata.labels", labels ?? {}, "`selector` does not match template `labels`"),
      );
    }
  }
  return errors;
}

/** The scheduling parts of a template may change while the job is suspended and has not started. */
function templateForUpdate(object: JsonObject, mayChange: boolean): unknown {
  const template = cloneJson(child(object, "spec", "template") ?? {});
  if (!mayChange) return template;
  const spec = child(template, "spec");
  for (const key of ["nodeSelector", "affinity", "tolerations", "schedulingGates"]) delete spec?.[key];
  for (const container of [...items(spec, "containers"), ...items(spec, "initContainers")])
    delete container.resources;
  delete template.metadata;
  return template;
}

function checkJobUpdate(object: JsonObject, old: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  for (const key of [
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
  ]) {
    immutable(object, old, ["spec", key], equalJson, errors);
  }
  if (
    text(object, "spec", "completionMode") !== "Indexed" ||
    at(object, "spec", "completions") !== at(object, "spec", "parallelism")
  ) {
    immutable(object, old, ["spec", "completions"], equalJson, errors);
  }
  const open = isTrue(old, "spec", "suspend") && !has(old, "status", "startTime");
  if (!equalJson(templateForUpdate(object, open), templateForUpdate(old, open))) {
    errors.push(invalid("spec.template", child(object, "spec", "template"), "field is immutable"));
  }
  return errors;
}

function checkCronJob(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const spec = child(object, "spec");
  const schedule = text(spec, "schedule");
  if (schedule !== "") {
    const why = scheduleError(schedule);
    if (why !== undefined) errors.push(invalid("spec.schedule", schedule, why));
    if (schedule.includes("TZ")) {
      errors.push(
        invalid(
          "spec.schedule",
          schedule,
          "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ),
      );
    }
  }
  if (has(spec, "timeZone") && !isTimeZone(text(spec, "timeZone"))) {
    const zone = text(spec, "timeZone");
    errors.push(
      invalid(
        "spec.timeZone",
        zone,
        zone === "" ? "must be nil or non-empty string" : `unknown time zone ${zone}`,
      ),
    );
  }
  for (const key of ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"]) {
    nonNegative(spec, key, "spec", errors);
  }
  checkJobSpec(child(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec", errors);
  const name = text(object, "metadata", "name");
  if (name.length > 52) errors.push(invalid("metadata.name", name, "must be no more than 52 characters"));
  return errors;
}

/** Rules of Jobs and CronJobs. */
export const jobRules: RuleTable = {
  "batch/v1/Job": {
    generation: true,
    defaults: jobDefaults,
    prepareCreate: generateSelector,
    validate: checkJob,
    validateUpdate: checkJobUpdate,
    warnings: (object) => podSpecWarnings(child(object, "spec", "template", "spec"), "spec.template.spec"),
  },
  "batch/v1/CronJob": {
    generation: true,
    defaults(object) {
      const spec = ensure(object, "spec");
      setDefaults(spec, {
        concurrencyPolicy: "Allow",
        suspend: false,
        successfulJobsHistoryLimit: 3,
        failedJobsHistoryLimit: 1,
      });
      podTemplateDefaults(child(spec, "jobTemplate", "spec", "template"));
    },
    validate: checkCronJob,
    warnings: (object) =>
      podSpecWarnings(
        child(object, "spec", "jobTemplate", "spec", "template", "spec"),
        "spec.jobTemplate.spec.template.spec",
      ),
  },
};
