/**
 * The cells of workloads: Deployments, ReplicaSets, Jobs and their relatives.
 */
import type { JsonObject } from "@kontinuum/std";
import { humanDuration } from "../../crd/human-duration.ts";
import { child, has, isTrue, items, number, text } from "../read.ts";
import type { Cell, CellTable } from "./cell.ts";
import { age, containerImages, containerNames, hasCondition, labels, none, selector } from "./format.ts";

const template = (object: JsonObject): JsonObject | undefined => child(object, "spec", "template", "spec");
const spec =
  (field: string): Cell =>
  (object) =>
    number(object, "spec", field);
const status =
  (field: string): Cell =>
  (object) =>
    number(object, "status", field);

const templated: Readonly<Record<string, Cell>> = {
  Containers: (object) => containerNames(template(object)),
  Images: (object) => containerImages(template(object)),
  Selector: (object) => selector(child(object, "spec", "selector")),
};

const readyOf: Cell = (object) =>
  `${number(object, "status", "readyReplicas")}/${number(object, "spec", "replicas")}`;

const replicas: Readonly<Record<string, Cell>> = {
  Desired: spec("replicas"),
  Current: status("replicas"),
  Ready: status("readyReplicas"),
};

function jobStatus(job: JsonObject): string {
  if (hasCondition(job, "Complete")) return "Complete";
  if (hasCondition(job, "Failed")) return "Failed";
  if (has(job, "metadata", "deletionTimestamp")) return "Terminating";
  for (const type of ["Suspended", "FailureTarget", "SuccessCriteriaMet"])
    if (hasCondition(job, type)) return type;
  return "Running";
}

function completions(job: JsonObject): string {
  const done = number(job, "status", "succeeded");
  if (has(job, "spec", "completions")) return `${done}/${number(job, "spec", "completions")}`;
  const parallel = number(job, "spec", "parallelism");
  return parallel > 1 ? `${done}/1 of ${parallel}` : `${done}/1`;
}

function duration(job: JsonObject, now: number): string {
  const started = Date.parse(text(job, "status", "startTime"));
  if (Number.isNaN(started)) return "";
  const completed = Date.parse(text(job, "status", "completionTime"));
  return humanDuration((Number.isNaN(completed) ? now : completed) - started);
}

function controller(revision: JsonObject): string {
  const owner = items(revision, "metadata", "ownerReferences").find((reference) =>
    isTrue(reference, "controller"),
  );
  if (owner === undefined) return none;
  const apiVersion = text(owner, "apiVersion");
  const group = apiVersion.includes("/") ? `.${apiVersion.slice(0, apiVersion.indexOf("/"))}` : "";
  return `${text(owner, "kind").toLowerCase()}${group}/${text(owner, "name")}`;
}

const cronPod = (object: JsonObject): JsonObject | undefined =>
  child(object, "spec", "jobTemplate", "spec", "template", "spec");

/** Cells of workloads. */
export const workloadCells: CellTable = {
  "apps/v1/Deployment": {
    ...templated,
    Ready: readyOf,
    "Up-to-date": status("updatedReplicas"),
    Available: status("availableReplicas"),
  },
  "apps/v1/ReplicaSet": { ...templated, ...replicas },
  "v1/ReplicationController": {
    ...templated,
    ...replicas,
    Selector: (object) => labels(child(object, "spec", "selector")),
  },
  "apps/v1/StatefulSet": { ...templated, Ready: readyOf },
  "apps/v1/DaemonSet": {
    ...templated,
    Desired: status("desiredNumberScheduled"),
    Current: status("currentNumberScheduled"),
    Ready: status("numberReady"),
    "Up-to-date": status("updatedNumberScheduled"),
    Available: status("numberAvailable"),
    "Node Selector": (object) => labels(child(template(object), "nodeSelector")),
  },
  "apps/v1/ControllerRevision": { Controller: controller, Revision: (object) => number(object, "revision") },
  "batch/v1/Job": { ...templated, Status: jobStatus, Completions: completions, Duration: duration },
  "batch/v1/CronJob": {
    Schedule: (object) => text(object, "spec", "schedule"),
    Timezone: (object) => text(object, "spec", "timeZone") || none,
    Suspend: (object) =>
      !has(object, "spec", "suspend") ? "<unset>" : isTrue(object, "spec", "suspend") ? "True" : "False",
    Active: (object) => items(object, "status", "active").length,
    "Last Schedule": (object, now) =>
      has(object, "status", "lastScheduleTime") ? age(text(object, "status", "lastScheduleTime"), now) : none,
    Containers: (object) => containerNames(cronPod(object)),
    Images: (object) => containerImages(cronPod(object)),
    Selector: (object) => selector(child(object, "spec", "jobTemplate", "spec", "selector")),
  },
  "v1/PodTemplate": {
    Containers: (object) => containerNames(child(object, "template", "spec")),
    Images: (object) => containerImages(child(object, "template", "spec")),
    "Pod Labels": (object) => labels(child(object, "template", "metadata", "labels")),
  },
};
