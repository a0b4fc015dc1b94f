/**
 * Rules of HorizontalPodAutoscalers and PodDisruptionBudgets.
 */
import { at, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../../resource.ts";
import { forbidden, invalid, required } from "../../schema/field-error.ts";
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
    const target = child(source, "target");
    const values = ["value", "averageValue", "averageUtilization"].filter((name) => has(target, name));
    if (values.length === 0) {
      errors.push(
        required(`${here}.${key}.target`, "must set either a target raw value or a target utilization"),
      );
    }
    if (has(target, "averageUtilization") && number(target, "averageUtilization") < 1) {
      errors.push(
        invalid(
          `${here}.${key}.target.averageUtilization`,
          number(target, "averageUtilization"),
          "must be greater than 0",
        ),
      );
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
    checkMetrics(spec, errors);
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
