/**
 * Rules of ResourceQuotas and LimitRanges.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { duplicate, forbidden, invalid, required } from "../../schema/field-error.ts";
import { quantityNano } from "../quantity.ts";
import { child, entries, has, items, text, texts } from "../read.ts";
import { labelKey, nonNegativeQuantity, type Errors } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const quota: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    for (const [name, amount] of entries(object, "spec", "hard")) {
      labelKey(name, `spec.hard[${name}]`, errors);
      nonNegativeQuantity(amount, `spec.hard[${name}]`, errors);
      const countable =
        /^(pods|services|secrets|configmaps|replicationcontrollers|resourcequotas|persistentvolumeclaims|services\..+|count\/.+)$/;
      if (countable.test(name) && (quantityNano(amount) ?? 0n) % 1_000_000_000n !== 0n) {
        errors.push(invalid(`spec.hard[${name}]`, amount, "must be an integer"));
      }
    }
    checkScopes(object, errors);
    return errors;
  },
  validateUpdate(object, old) {
    const errors: FieldError[] = [];
    if (!equalJson(texts(object, "spec", "scopes").toSorted(), texts(old, "spec", "scopes").toSorted())) {
      errors.push(invalid("spec.scopes", texts(object, "spec", "scopes"), "field is immutable"));
    }
    return errors;
  },
};

const podKeys = /^(pods|(requests\.|limits\.)?(cpu|memory|ephemeral-storage))$/;

/** Scopes choose pods, so a scoped quota may count nothing else. */
function checkScopes(object: JsonObject, errors: Errors): void {
  for (const scope of texts(object, "spec", "scopes")) {
    for (const [key] of entries(object, "spec", "hard")) {
      const fits = key.startsWith("count/") || (scope === "BestEffort" ? key === "pods" : podKeys.test(key));
      if (!fits) {
        errors.push(
          invalid("spec.scopes", texts(object, "spec", "scopes"), "unsupported scope applied to resource"),
        );
      }
    }
  }
}

function limitDefaults(object: JsonObject): void {
  for (const limit of items(object, "spec", "limits")) {
    if (text(limit, "type") !== "Container") continue;
    const usual = { ...child(limit, "default") };
    for (const [name, amount] of entries(limit, "max")) usual[name] ??= amount;
    const request = { ...child(limit, "defaultRequest") };
    for (const [name, amount] of Object.entries(usual)) request[name] ??= amount;
    for (const [name, amount] of entries(limit, "min")) request[name] ??= amount;
    if (Object.keys(usual).length > 0) limit.default = usual;
    if (Object.keys(request).length > 0) limit.defaultRequest = request;
  }
}

function checkLimits(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const types = new Set<string>();
  for (const [index, limit] of items(object, "spec", "limits").entries()) {
    const here = `spec.limits[${index}]`;
    const type = text(limit, "type");
    const before = errors.length;
    labelKey(type, `${here}.type`, errors);
    if (
      errors.length === before &&
      !type.includes("/") &&
      !["Pod", "Container", "PersistentVolumeClaim"].includes(type)
    ) {
      errors.push(invalid(`${here}.type`, type, "must be a standard limit type or fully qualified"));
    }
    if (types.has(type)) errors.push(duplicate(`${here}.type`, type));
    types.add(type);
    for (const key of ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"]) {
      if (type === "Pod" && (key === "default" || key === "defaultRequest") && has(limit, key)) {
        errors.push(forbidden(`${here}.${key}`, "may not be specified when `type` is 'Pod'"));
      }
      for (const [name, amount] of entries(limit, key))
        nonNegativeQuantity(amount, `${here}.${key}[${name}]`, errors);
    }
    ordered(limit, "min", "max", here, errors);
    ordered(limit, "min", "default", here, errors);
    ordered(limit, "default", "max", here, errors);
    ordered(limit, "defaultRequest", "default", here, errors);
    if (type === "PersistentVolumeClaim" && !has(limit, "min", "storage") && !has(limit, "max", "storage")) {
      errors.push(
        required(here, "either minimum or maximum storage value is required, but neither was provided"),
      );
    }
  }
  return errors;
}

/** The amounts of one list do not exceed those of another. */
function ordered(limit: JsonObject, low: string, high: string, path: string, errors: Errors): void {
  for (const [name, amount] of entries(limit, low)) {
    const other = at(limit, high, name);
    const [least, most] = [quantityNano(amount), quantityNano(other)];
    if (least !== undefined && most !== undefined && least > most) {
      errors.push(
        invalid(
          `${path}.${low}[${name}]`,
          amount,
          `${low} value ${String(amount)} is greater than ${high} value ${String(other)}`,
        ),
      );
    }
  }
}

/** Rules of quotas and limits. */
export const quotaRules: RuleTable = {
  "v1/ResourceQuota": quota,
  "v1/LimitRange": { defaults: limitDefaults, validate: checkLimits },
};
