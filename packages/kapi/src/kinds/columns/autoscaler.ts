/**
 * The cells of HorizontalPodAutoscalers (in the form of `autoscaling/v2`).
 */
import type { JsonObject } from "@kontinuum/std";
import { child, has, items, number, text } from "../read.ts";
import type { Cell } from "./cell.ts";
import { none, shortened } from "./format.ts";

const unknown = "<unknown>";

/** `current/target` of a metric that compares averages or values. */
function amounts(target: JsonObject | undefined, current: JsonObject | undefined): string {
  if (has(target, "averageValue")) {
    return `${text(current, "averageValue") || unknown}/${text(target, "averageValue")} (avg)`;
  }
  return `${text(current, "value") || unknown}/${text(target, "value")}`;
}

/** A resource metric: an average amount or a percentage. */
function resource(spec: JsonObject | undefined, current: JsonObject | undefined): string {
  const target = child(spec, "target");
  const name = text(spec, "name");
  if (has(target, "averageValue")) {
    return `${name}: ${text(current, "averageValue") || unknown}/${text(target, "averageValue")}`;
  }
  const now = has(current, "averageUtilization") ? `${number(current, "averageUtilization")}%` : unknown;
  const wanted = has(target, "averageUtilization") ? `${number(target, "averageUtilization")}%` : "<auto>";
  return `${name}: ${now}/${wanted}`;
}

function metric(spec: JsonObject, status: JsonObject | undefined): string {
  switch (text(spec, "type")) {
    case "External":
      return amounts(child(spec, "external", "target"), child(status, "external", "current"));
    case "Object":
      return amounts(child(spec, "object", "target"), child(status, "object", "current"));
    case "Pods": {
      const now = text(status, "pods", "current", "averageValue") || unknown;
      return `${now}/${text(spec, "pods", "target", "averageValue")}`;
    }
    case "Resource":
      return resource(child(spec, "resource"), child(status, "resource", "current"));
    case "ContainerResource":
      return resource(child(spec, "containerResource"), child(status, "containerResource", "current"));
    default:
      return "<unknown type>";
  }
}

function targets(object: JsonObject): string {
  const metrics = items(object, "spec", "metrics");
  if (metrics.length === 0) return none;
  const current = items(object, "status", "currentMetrics");
  return shortened(
    metrics.map((spec, index) => metric(spec, current[index])),
    2,
    ", ",
  );
}

/** Cells of autoscalers. */
export const autoscalerCells: Readonly<Record<string, Cell>> = {
  Reference: (object) =>
    `${text(object, "spec", "scaleTargetRef", "kind")}/${text(object, "spec", "scaleTargetRef", "name")}`,
  Targets: targets,
  MinPods: (object) =>
    has(object, "spec", "minReplicas") ? String(number(object, "spec", "minReplicas")) : "<unset>",
  MaxPods: (object) => number(object, "spec", "maxReplicas"),
  Replicas: (object) => number(object, "status", "currentReplicas"),
};
