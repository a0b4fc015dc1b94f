/**
 * One autoscaler in two versions: `autoscaling/v1` knows a CPU target, `autoscaling/v2` any metric. Objects
 * are stored as v2; what v1 cannot say travels in annotations, under the names Kubernetes uses.
 */
import { isCoded, isObject, type JsonObject } from "@kontinuum/std";
import { parseJson, stringifyJson } from "../json/json.ts";
import { message } from "../codec/messages.ts";
import { normalize } from "./normalize.ts";
import { child, has, items, text } from "./read.ts";

const prefix = "autoscaling.alpha.kubernetes.io/";
const annotation = {
  metrics: `${prefix}metrics`,
  currentMetrics: `${prefix}current-metrics`,
  conditions: `${prefix}conditions`,
  behavior: `${prefix}behavior`,
} as const;

/** Keys of an object that are set, under new names. */
function pick(source: JsonObject | undefined, names: Readonly<Record<string, string>>): JsonObject {
  const made: JsonObject = {};
  for (const [from, to] of Object.entries(names)) if (has(source, from)) made[to] = source?.[from];
  return made;
}

/** Whether a metric is the one that v1 has a field for. */
const isCpu = (metric: JsonObject): boolean =>
  text(metric, "type") === "Resource" &&
  text(metric, "resource", "name") === "cpu" &&
  text(metric, "resource", "target", "type") === "Utilization";

const amountOld = {
  averageUtilization: "targetAverageUtilization",
  averageValue: "targetAverageValue",
  value: "targetValue",
};
const currentOld = {
  averageUtilization: "currentAverageUtilization",
  averageValue: "currentAverageValue",
  value: "currentValue",
};

/** A v2 metric (spec or status) in the words of v1's annotation. */
function metricToV1(
  metric: JsonObject,
  amounts: Readonly<Record<string, string>>,
  holder: string,
): JsonObject {
  const type = text(metric, "type");
  const key = type.charAt(0).toLowerCase() + type.slice(1);
  const source = child(metric, key);
  const amount = pick(child(source, holder), amounts);
  const { averageValue } = amounts;
  if (type === "Object" && averageValue !== undefined && Object.hasOwn(amount, averageValue)) {
    amount.averageValue = amount[averageValue];
    delete amount[averageValue];
  }
  const made = {
    ...pick(source, { name: "name", container: "container", describedObject: "target" }),
    ...pick(child(source, "metric"), {
      name: "metricName",
      selector: type === "External" ? "metricSelector" : "selector",
    }),
    ...amount,
  };
  return { type, [key]: made };
}

/** The reverse of {@link metricToV1}. */
function metricToV2(
  metric: JsonObject,
  amounts: Readonly<Record<string, string>>,
  holder: string,
): JsonObject {
  const type = text(metric, "type");
  const key = type.charAt(0).toLowerCase() + type.slice(1);
  const source = child(metric, key);
  const back = Object.fromEntries(Object.entries(amounts).map(([to, from]) => [from, to]));
  const amount = pick(source, { ...back, averageValue: "averageValue" });
  const targetType = has(amount, "averageUtilization")
    ? "Utilization"
    : has(amount, "value") && !has(amount, "averageValue")
      ? "Value"
      : "AverageValue";
  const identifier = pick(source, { metricName: "name", selector: "selector", metricSelector: "selector" });
  const made: JsonObject = {
    ...pick(source, { name: "name", container: "container", target: "describedObject" }),
    ...(Object.keys(identifier).length > 0 ? { metric: identifier } : {}),
    [holder]: holder === "target" ? { type: targetType, ...amount } : amount,
  };
  return { type, [key]: made };
}

function annotationsOf(object: JsonObject): JsonObject {
  return { ...child(object, "metadata", "annotations") };
}

function withAnnotations(object: JsonObject, annotations: JsonObject): JsonObject {
  const metadata: JsonObject = { ...child(object, "metadata") };
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations;
  else delete metadata.annotations;
  return metadata;
}

/** Brings an object into the form its type prints; content of a broken annotation is left as it is. */
function completed(object: JsonObject, version: "v1" | "v2"): JsonObject {
  try {
    normalize(message(`api.autoscaling.${version}.HorizontalPodAutoscaler`), object);
  } catch (error) {
    if (!isCoded(error)) throw error;
  }
  return object;
}

/** The value of an annotation that holds JSON; `undefined` when it is missing or broken. */
function decoded(annotations: JsonObject, key: string): unknown {
  const found = annotations[key];
  if (typeof found !== "string") return undefined;
  try {
    return parseJson(found);
  } catch {
    return undefined;
  }
}

const decodedList = (annotations: JsonObject, key: string): JsonObject[] => {
  const found = decoded(annotations, key);
  return Array.isArray(found) ? found.filter(isObject) : [];
};

/** The v2 form of an autoscaler of either version. */
export function toAutoscalerV2(object: JsonObject): JsonObject {
  if (object.apiVersion === "autoscaling/v2") return object;
  const annotations = annotationsOf(object);
  const { targetCPUUtilizationPercentage: cpu, ...spec } = child(object, "spec") ?? {};
  const { currentCPUUtilizationPercentage: currentCpu, ...status } = child(object, "status") ?? {};
  const metrics = decodedList(annotations, annotation.metrics).map((metric) =>
    metricToV2(metric, amountOld, "target"),
  );
  if (cpu !== undefined && cpu !== null) {
    metrics.push({
      type: "Resource",
      resource: { name: "cpu", target: { type: "Utilization", averageUtilization: cpu } },
    });
  }
  const current = decodedList(annotations, annotation.currentMetrics).map((metric) =>
    metricToV2(metric, currentOld, "current"),
  );
  if (current.length === 0 && currentCpu !== undefined && currentCpu !== null) {
    current.push({
      type: "Resource",
      resource: { name: "cpu", current: { averageUtilization: currentCpu } },
    });
  }
  const conditions = decodedList(annotations, annotation.conditions);
  const behavior = decoded(annotations, annotation.behavior);
  for (const key of Object.values(annotation)) delete annotations[key];
  const made: JsonObject = {
    ...object,
    apiVersion: "autoscaling/v2",
    metadata: withAnnotations(object, annotations),
    spec: {
      ...spec,
      ...(metrics.length > 0 ? { metrics } : {}),
      ...(isObject(behavior) ? { behavior } : {}),
    },
    status: {
      ...status,
      ...(current.length > 0 ? { currentMetrics: current } : {}),
      ...(conditions.length > 0 ? { conditions } : {}),
    },
  };
  return completed(made, "v2");
}

/** The v1 form of an autoscaler of either version. */
export function toAutoscalerV1(object: JsonObject): JsonObject {
  if (object.apiVersion === "autoscaling/v1") return object;
  const annotations = annotationsOf(object);
  const { metrics: _metrics, behavior, ...spec } = child(object, "spec") ?? {};
  const { currentMetrics: _currentMetrics, conditions, ...status } = child(object, "status") ?? {};
  const all = items(object, "spec", "metrics");
  const cpu = all.find(isCpu);
  const rest = all
    .filter((metric) => metric !== cpu)
    .map((metric) => metricToV1(metric, amountOld, "target"));
  if (rest.length > 0) annotations[annotation.metrics] = stringifyJson(rest);
  if (isObject(behavior)) annotations[annotation.behavior] = stringifyJson(behavior);
  if (Array.isArray(conditions) && conditions.length > 0)
    annotations[annotation.conditions] = stringifyJson(conditions);
  const current = items(object, "status", "currentMetrics");
  if (current.length > 0) {
    annotations[annotation.currentMetrics] = stringifyJson(
      current.map((metric) => metricToV1(metric, currentOld, "current")),
    );
  }
  const currentCpu = current.find((metric) => text(metric, "resource", "name") === "cpu");
  const used = child(currentCpu, "resource", "current")?.averageUtilization;
  const wanted = child(cpu, "resource", "target")?.averageUtilization;
  const made: JsonObject = {
    ...object,
    apiVersion: "autoscaling/v1",
    metadata: withAnnotations(object, annotations),
    spec: { ...spec, ...(wanted === undefined ? {} : { targetCPUUtilizationPercentage: wanted }) },
    status: { ...status, ...(used === undefined ? {} : { currentCPUUtilizationPercentage: used }) },
  };
  return completed(made, "v1");
}
