/**
 * Checks that follow from the published types alone, for every built-in kind: required texts that are empty,
 * and enumerated fields with a value outside their enumeration. Status is not checked: its writers are the
 * cluster's own components.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { enumValues, type Field, type Message } from "../../codec/messages.ts";
import { specialMessages } from "../../codec/special.ts";
import { notSupported, required } from "../../schema/field-error.ts";
import type { Errors } from "./checks.ts";

/** Enumerations whose values are not a closed set, or where empty and other values are legal. */
const open: ReadonlySet<string> = new Set([
  "api.core.v1.ResourceName",
  "api.core.v1.SecretType",
  "api.core.v1.FinalizerName",
  "api.core.v1.HostPathType",
  "api.core.v1.NodeConditionType",
  "api.core.v1.PodConditionType",
  "api.core.v1.Signal",
  "api.core.v1.LimitType",
  "api.core.v1.TaintEffect",
  "api.core.v1.StorageMedium",
  "api.core.v1.TolerationOperator",
  "api.core.v1.NodeSelectorOperator",
  "api.core.v1.PersistentVolumeAccessMode",
  "api.core.v1.UniqueVolumeName",
  "api.core.v1.NodeInclusionPolicy",
  "apiextensions-apiserver.pkg.apis.apiextensions.v1.ResourceScope",
  "apimachinery.pkg.apis.meta.v1.StatusReason",
  "apimachinery.pkg.apis.meta.v1.LabelSelectorOperator",
]);

/** Required texts, and enumerated ones, that may be empty all the same. */
const mayBeEmpty: ReadonlySet<string> = new Set([
  "api.core.v1.EndpointAddress.ip",
  "api.core.v1.ObjectReference.name",
  "api.core.v1.Sysctl.value",
  "api.core.v1.HTTPHeader.value",
  "api.core.v1.HTTPHeader.name",
  "api.core.v1.PreferAvoidPodsEntry.podSignature",
  "api.core.v1.Taint.effect",
  "api.core.v1.ResourceClaim.name",
  "api.rbac.v1.RoleRef.apiGroup",
  "apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule.message",
  "apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement.operator",
  "api.core.v1.NodeSelectorRequirement.operator",
  "api.core.v1.NodeSelectorRequirement.key",
  "api.core.v1.LimitRangeItem.type",
  "api.rbac.v1.RoleRef.kind",
  "api.storage.v1.StorageClass.reclaimPolicy",
  "api.rbac.v1.Subject.kind",
  "api.core.v1.TopologySpreadConstraint.whenUnsatisfiable",
]);

/** What is said besides `Required value`. */
const details: Readonly<Record<string, string>> = {
  "api.core.v1.PodAffinityTerm.topologyKey": "can not be empty",
  "api.core.v1.SeccompProfile.type": "type is required when seccompProfile is set",
  "api.autoscaling.v2.MetricIdentifier.name": "must specify a metric name",
  "api.autoscaling.v2.MetricSpec.type": "must specify a metric source type",
  "api.autoscaling.v2.MetricTarget.type": "must specify a metric target type",
  "api.admissionregistration.v1.MutatingWebhook.sideEffects": "must specify one of None, NoneOnDryRun",
  "api.admissionregistration.v1.ValidatingWebhook.sideEffects": "must specify one of None, NoneOnDryRun",
  "api.networking.v1.HTTPIngressPath.pathType": "pathType must be specified",
  "api.flowcontrol.v1.PriorityLevelConfigurationReference.name": "must reference a priority level",
  "api.batch.v1.PodFailurePolicyRule.action": 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
};

/** Enumerated fields where empty is answered as an unsupported value, not as a missing one. */
const emptyIsUnsupported: ReadonlySet<string> = new Set([
  "api.flowcontrol.v1.Subject.kind",
  "api.flowcontrol.v1.PriorityLevelConfigurationSpec.type",
  "api.flowcontrol.v1.LimitResponse.type",
]);

/** Enumerations that Kubernetes lists in their own order instead of the alphabet's. */
const ownOrder: ReadonlySet<string> = new Set([
  "api.core.v1.DNSPolicy",
  "api.core.v1.RestartPolicy",
  "api.networking.v1.PolicyType",
]);

const enumOf = (field: Field): readonly string[] | undefined => {
  const name = field.merge.enum;
  return name === undefined || open.has(name) ? undefined : enumValues(name);
};

const isText = (field: Field): boolean => "scalar" in field.value && field.value.scalar === "string";

/** Whether a message, or any below it, has something to check. Remembered: types are recursive and many. */
const relevant = new Map<Message, boolean>();
function isRelevant(message: Message): boolean {
  const known = relevant.get(message);
  if (known !== undefined) return known;
  relevant.set(message, false);
  const found = message.fields.some((field) => {
    if ("message" in field.value)
      return !specialMessages.has(field.value.message.name) && isRelevant(field.value.message);
    return enumOf(field) !== undefined || (field.required && isText(field));
  });
  relevant.set(message, found);
  return found;
}

/** Checks an object of a type, appending to `errors`. */
export function checkStructure(message: Message, object: JsonObject, errors: Errors): void {
  walk(message, object, "", errors);
}

function walk(message: Message, object: JsonObject, path: string, errors: Errors): void {
  for (const field of message.fields) {
    if (field.json === null) {
      if (field.inline && "message" in field.value && isRelevant(field.value.message)) {
        walk(field.value.message, object, path, errors);
      }
      continue;
    }
    if (path === "" && (field.json === "status" || field.json === "metadata")) continue;
    const value = object[field.json];
    const here = path === "" ? field.json : `${path}.${field.json}`;
    if ("message" in field.value) {
      const inner = field.value.message;
      if (value === undefined || value === null || specialMessages.has(inner.name) || !isRelevant(inner))
        continue;
      if (field.shape === "single") descend(inner, value, here, errors);
      else if (field.shape === "list") {
        if (Array.isArray(value))
          for (const [index, item] of value.entries()) descend(inner, item, `${here}[${index}]`, errors);
      } else if (isObject(value)) {
        for (const [key, item] of Object.entries(value)) descend(inner, item, `${here}[${key}]`, errors);
      }
    } else checkText(message, field, value, here, errors);
  }
}

function descend(message: Message, value: unknown, path: string, errors: Errors): void {
  if (isObject(value)) walk(message, value, path, errors);
}

function checkText(message: Message, field: Field, value: unknown, path: string, errors: Errors): void {
  if (field.shape === "single") {
    if (value === "" && field.pointer && !field.required) {
      const values = enumOf(field);
      const isFree =
        values === undefined || values.includes("") || mayBeEmpty.has(`${message.name}.${field.json}`);
      if (values !== undefined && !isFree) errors.push(notSupported(path, "", supported(field, values)));
      return;
    }
    if (value === undefined || value === null || value === "") {
      const name = `${message.name}.${field.json}`;
      if (!field.required || !isText(field) || mayBeEmpty.has(name)) return;
      const values = emptyIsUnsupported.has(name) ? enumOf(field) : undefined;
      errors.push(
        values === undefined
          ? required(path, details[name])
          : notSupported(path, "", supported(field, values)),
      );
      return;
    }
    const values = enumOf(field);
    if (values !== undefined && typeof value === "string" && !values.includes(value)) {
      errors.push(notSupported(path, value, supported(field, values)));
    }
    return;
  }
  const values = enumOf(field);
  if (values === undefined || !Array.isArray(value)) return;
  for (const [index, item] of value.entries()) {
    if (typeof item === "string" && !values.includes(item)) {
      errors.push(notSupported(`${path}[${index}]`, item, supported(field, values)));
    }
  }
}

function supported(field: Field, values: readonly string[]): string[] {
  const listed = values.filter((value) => value !== "");
  return ownOrder.has(field.merge.enum ?? "") ? listed : listed.toSorted();
}
