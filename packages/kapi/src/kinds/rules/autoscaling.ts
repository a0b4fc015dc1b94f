/**
 * Rules of HorizontalPodAutoscalers and PodDisruptionBudgets.
 */
import { at, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../../resource.ts";
import { forbidden, invalid, required } from "../../schema/field-error.ts";
import { quantityNano } from "../quantity.ts";
import { child, ensure, has, items, number, setDefaults, text } from "../read.ts";
import { amountOrPercent, labelSelector, notMoreThanHundred, type Errors } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

/** Utilisation aimed at when nobody says one, in percent. */
const defaultCpu = 80;

function behaviorDefaults(behavior: JsonObject): void {
  setDefaults(ensure(behavior, "scaleUp"), {
    stabilizationWindowSeconds: 0,
    selectPolicy: "Max",
    policies: [
      { type: "Pods", value: 4, periodSeconds: 15 },
      { type: "Percent", value: 100, periodSeconds: 15 },
    ],
  });
  setDefaults(ensure(behavior, "scaleDown"), {
    selectPolicy: "Max",
    policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
  });
}

function checkReplicas(spec: JsonObject | undefined, errors: Errors): void {
  const least = has(spec, "minReplicas") ? number(spec, "minReplicas") : 1;
  const most = number(spec, "maxReplicas");
  if (least < 1) errors.push(invalid("spec.minReplicas", least, "must be greater than or equal to 1"));
  if (most < 1) errors.push(invalid("spec.maxReplicas", most, "must be greater than 0"));
  else if (most < least)
    errors.push(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"));
}

function checkMetrics(spec: JsonObject | undefined, errors: Errors): void {
  for (const [index, metric] of items(spec, "metrics").entries()) {
    const here = `spec.metrics[${index}]`;
    const type = text(metric, "type");
    const key = type.charAt(0).toLowerCase() + type.slice(1);
    const known = ["object", "pods", "resource", "containerResource", "external"];
    if (!known.includes(key)) continue;
    const source = child(metric, key);
    if (source === undefined) {
      errors.push(required(`${here}.${key}`, `must populate information for the given metric source`));
      continue;
    }
    for (const other of known) {
      if (other !== key && has(metric, other)) {
        errors.push(forbidden(`${here}.${other}`, "must populate the given metric source only"));
      }
    }
    checkTarget(key, child(source, "target"), `${here}.${key}.target`, errors);
  }
}

const targetTypes: ReadonlySet<string> = new Set(["Utilization", "Value", "AverageValue"]);

/** Checks what a metric aims at: which of the three amounts it may and must have depends on its source. */
function checkTarget(source: string, target: JsonObject | undefined, path: string, errors: Errors): void {
  const type = text(target, "type");
  if (!targetTypes.has(type)) {
    errors.push(invalid(`${path}.type`, type, "must be either Utilization, Value, or AverageValue"));
  }
  for (const name of ["value", "averageValue"]) {
    if (has(target, name) && (quantityNano(target?.[name]) ?? 0n) <= 0n) {
      errors.push(invalid(`${path}.${name}`, target?.[name], "must be positive"));
    }
  }
  if (has(target, "averageUtilization") && number(target, "averageUtilization") < 1) {
    errors.push(
      invalid(`${path}.averageUtilization`, number(target, "averageUtilization"), "must be greater than 0"),
    );
  }
  const [average, value, utilization] = ["averageValue", "value", "averageUtilization"].map((name) =>
    has(target, name),
  );
  if (source === "pods" && !average) {
    errors.push(required(`${path}.averageValue`, "must specify a positive target averageValue"));
  } else if (source === "object" && !average && !value) {
    errors.push(required(`${path}.averageValue`, "must set either a target value or averageValue"));
  } else if (source === "external" && !average && !value) {
    errors.push(
      required(`${path}.averageValue`, "must set either a target value for metric or a per-pod target"),
    );
  } else if (source.toLowerCase().endsWith("resource") && !average && !utilization) {
    errors.push(
      required(`${path}.averageUtilization`, "must set either a target raw value or a target utilization"),
    );
  }
}

function checkReference(spec: JsonObject | undefined, errors: Errors): void {
  const reference = child(spec, "scaleTargetRef");
  const apiVersion = text(reference, "apiVersion");
  const grouped = apiVersion.includes("/");
  if (!grouped && text(reference, "kind") !== "ReplicationController") {
    errors.push(invalid("spec.scaleTargetRef.apiVersion", apiVersion, "apiVersion must specify API group"));
  }
}

function checkBehavior(spec: JsonObject | undefined, errors: Errors): void {
  for (const direction of ["scaleUp", "scaleDown"]) {
    const rules = child(spec, "behavior", direction);
    if (rules === undefined) continue;
    const path = `spec.behavior.${direction}`;
    if (has(rules, "stabilizationWindowSeconds")) {
      const seconds = number(rules, "stabilizationWindowSeconds");
      const field = `${path}.stabilizationWindowSeconds`;
      if (seconds < 0) errors.push(invalid(field, seconds, "must be greater than or equal to zero"));
      if (seconds > 3600) errors.push(invalid(field, seconds, "must be less than or equal to 3600"));
    }
    const policies = items(rules, "policies");
    if (policies.length === 0) errors.push(required(`${path}.policies`, "must specify at least one Policy"));
    for (const [index, policy] of policies.entries()) {
      const here = `${path}.policies[${index}]`;
      const [value, period] = [number(policy, "value"), number(policy, "periodSeconds")];
      if (value <= 0) errors.push(invalid(`${here}.value`, value, "must be greater than zero"));
      if (period <= 0) errors.push(invalid(`${here}.periodSeconds`, period, "must be greater than zero"));
      if (period > 1800)
        errors.push(invalid(`${here}.periodSeconds`, period, "must be less than or equal to 1800"));
    }
  }
}

const autoscaler: KindRules = {
  defaults(object) {
    const spec = ensure(object, "spec");
    setDefaults(spec, { minReplicas: 1 });
    if (items(spec, "metrics").length === 0) {
      spec.metrics = [
        {
          type: "Resource",
          resource: { name: "cpu", target: { type: "Utilization", averageUtilization: defaultCpu } },
        },
      ];
    }
    const behavior = child(spec, "behavior");
    if (behavior !== undefined) behaviorDefaults(behavior);
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    checkReplicas(spec, errors);
    checkReference(spec, errors);
    checkMetrics(spec, errors);
    checkBehavior(spec, errors);
    return errors;
  },
};

const autoscalerV1: KindRules = {
  defaults(object) {
    const spec = ensure(object, "spec");
    setDefaults(spec, { minReplicas: 1 });
    const others = text(object, "metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics");
    if (others === "") setDefaults(spec, { targetCPUUtilizationPercentage: defaultCpu });
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    checkReplicas(spec, errors);
    checkReference(spec, errors);
    if (has(spec, "targetCPUUtilizationPercentage") && number(spec, "targetCPUUtilizationPercentage") < 1) {
      errors.push(
        invalid(
          "spec.targetCPUUtilizationPercentage",
          number(spec, "targetCPUUtilizationPercentage"),
          "must be greater than 0",
        ),
      );
    }
    return errors;
  },
};

const budget: KindRules = {
  generation: true,
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    const both = has(spec, "minAvailable") && has(spec, "maxUnavailable");
    if (both) {
      errors.push(invalid("spec", spec ?? {}, "minAvailable and maxUnavailable cannot be both set"));
    }
    for (const key of ["minAvailable", "maxUnavailable"]) {
      amountOrPercent(at(spec, key), `spec.${key}`, errors);
      notMoreThanHundred(at(spec, key), `spec.${key}`, errors);
    }
    labelSelector(child(spec, "selector"), "spec.selector", errors);
    return errors;
  },
};

/** Rules of autoscalers and disruption budgets. */
export const autoscalingRules: RuleTable = {
  "autoscaling/v2/HorizontalPodAutoscaler": autoscaler,
  "autoscaling/v1/HorizontalPodAutoscaler": autoscalerV1,
  "policy/v1/PodDisruptionBudget": budget,
};
